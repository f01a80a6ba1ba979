"""Fields of a configuration as flags see them: type, bounds, and what they are of."""

import dataclasses
import operator
import types
import typing
from typing import Any, NamedTuple

NOUNS = {  # one value, several
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "true or false"),
    str: ("text", "texts"),
}
BOUNDS = {
    "min": (">=", operator.ge),
    "above": (">", operator.gt),
    "max": ("<=", operator.le),
    "below": ("<", operator.lt),
}


class Spec(NamedTuple):
    """One field as a flag.

    Attributes:
      of: fields beside it, each with the values that it has an effect with; none: any
        but its default.
    """

    name: str
    flag: str
    help: str
    default: Any
    kind: type
    choices: tuple[Any, ...]
    many: bool
    optional: bool
    bounds: tuple[tuple[str, float], ...]
    distinct: bool
    of: dict[str, tuple[Any, ...]]


def specs(cls: type, prefix: str) -> list[Spec]:
    """Every field of a frozen keyword-only dataclass.

    Raises:
      TypeError: naming what no flag can express.
    """
    if not getattr(getattr(cls, "__dataclass_params__", None), "frozen", False):
        raise TypeError(f"{cls.__name__}: expected a frozen keyword-only dataclass")
    hints = typing.get_type_hints(cls)
    found = [_spec(cls, f, hints[f.name], prefix) for f in dataclasses.fields(cls)]
    choices = {spec.name: set(spec.choices) for spec in found}
    for spec in found:
        for name, values in spec.of.items():
            if choices[name] and (unknown := set(values) - choices[name]):
                raise TypeError(f"{cls.__name__}.{spec.name}: is of {name} {unknown}")
    return found


def _spec(cls: type, field: dataclasses.Field, hint: Any, prefix: str) -> Spec:
    where, metadata = f"{cls.__name__}.{field.name}", dict(field.metadata)
    if not field.kw_only or field.default_factory is not dataclasses.MISSING:
        raise TypeError(f"{where}: expected a keyword-only field without factory")
    help_ = metadata.pop("help", None)
    if not help_:
        raise TypeError(f'{where}: expected metadata with a "help" text')
    distinct, of = metadata.pop("distinct", False), metadata.pop("of", {})
    if unknown := of.keys() - {other.name for other in dataclasses.fields(cls)}:
        raise TypeError(f"{where}: is of {sorted(unknown)}, which there is not")
    if unknown := metadata.keys() - BOUNDS.keys():
        raise TypeError(f"{where}: unknown metadata {sorted(unknown)}")
    shape = _shape(where, hint)
    default = None if field.default is dataclasses.MISSING else field.default
    return Spec(
        name=field.name,
        flag=f"{prefix}_{field.name}" if prefix else field.name,
        help=help_,
        default=exact(shape["kind"], default),
        distinct=distinct,
        of=of,
        bounds=tuple((key, metadata[key]) for key in BOUNDS if key in metadata),
        **shape,
    )


def _shape(where: str, hint: Any) -> dict[str, Any]:
    """The annotation taken apart: optional, many, choices, kind of one value."""
    inner, optional, many = hint, False, False
    if typing.get_origin(inner) in (typing.Union, types.UnionType):
        members = [m for m in typing.get_args(inner) if m is not types.NoneType]
        inner, optional = members[0] if len(members) == 1 else None, True
    if typing.get_origin(inner) is tuple and typing.get_args(inner)[1:] == (...,):
        inner, many = typing.get_args(inner)[0], True
    literal = typing.get_origin(inner) is typing.Literal
    choices = typing.get_args(inner) if literal else ()
    kinds = {type(choice) for choice in choices} or {inner}
    kind = kinds.pop()
    if kinds or kind not in NOUNS:
        raise TypeError(f"{where}: no flag can hold {hint}")
    return {"kind": kind, "choices": choices, "many": many, "optional": optional}


def exact(kind: type, value: Any) -> Any:
    """Turns a whole number into a float where the annotation says float."""
    if isinstance(value, tuple):
        return tuple(exact(kind, item) for item in value)
    return float(value) if kind is float and type(value) is int else value
