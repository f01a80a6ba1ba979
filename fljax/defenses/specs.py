"""The vocabulary of defenses: text <-> `Spec` <-> `Defense`.

    spec = specs.parse("fed_cdp(clip=4, sigma=6, mode=per_batch) + pruning(ratio=0.3)")
    str(spec)                                  # the same text, canonical
    defense = specs.bind(spec, setting)        # adds the noise that its text says

A text names defenses that act at different places, joined by `+`; `none` is no defense.
`sigma=` may be a budget, `epsilon=`, in its place: `fljax.privacy.numbers_for` then
chooses sigma. A number with alternatives, `clip=1|2|4`, stands for several specs. A
defense of one's own is called `module:attribute`, of a `Definition`.

`structure` is what one compiled program has in common: names, words, and which numbers
are given. The numbers themselves may be traced: `bind(spec, setting, numbers)`.
"""

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from fljax.defenses import own
from fljax.defenses.composition import compose
from fljax.defenses.definition import (
    BUDGET,
    Choice,
    Setting,
)
from fljax.defenses.parts import Part, SpecError, definition, trimmed
from fljax.defenses.parts import parse as parse_part
from fljax.types import Array, Defense

Numbers = tuple[dict[str, Array | float], ...]  # of each part, by name

_APART = r"{}(?![^()]*\))"  # a separator outside parentheses


@dataclasses.dataclass(frozen=True)
class Spec:
    """Defenses that act together; hashable, and printed canonically."""

    parts: tuple[Part, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    @property
    def has_alternatives(self) -> bool:
        """Whether it stands for several specs; they are not made."""
        return any(isinstance(v, tuple) for part in self.parts for _, v in part.given)

    @property
    def has_budget(self) -> bool:
        """Whether any part's sigma is left to an epsilon."""
        return any(part.has_budget for part in self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __str__(self) -> str:
        return " + ".join(map(str, self.parts)) or "none"


NONE = Spec()


def parse(text: str) -> Spec:
    """The spec of a text.

    Raises:
      SpecError: for a name, parameter or value that is not known or out of bounds.

    Example:
      >>> str(parse("pruning( ratio = 3e-1 )+dp_sgd(epsilon=8,clip=1)"))
      'pruning(ratio=0.3) + dp_sgd(clip=1, epsilon=8)'
    """
    if text.strip() == "none":
        return NONE
    parts = (parse_part(each) for each in re.split(_APART.format(r"\+"), text))
    return _said(Spec(tuple(parts)))


def parse_all(text: str) -> tuple[Spec, ...]:
    """Every alternative of every spec between semicolons.

    Raises:
      SpecError: as `parse`, or for a spec that is there twice.
    """
    found = [alternatives(parse(each)) for each in text.split(";")]
    specs = tuple(itertools.chain.from_iterable(found))
    for spec in map(_said, specs):
        if specs.count(spec) > 1:
            raise SpecError(f"{spec}: expected each defense once, got it twice")
    return specs


def _said(spec: Spec) -> Spec:
    """The same, if what it says of its effects can be simulated.

    Raises:
      SpecError: it cannot.
    """
    for part in spec.parts:  # of alternatives the first, for there may be many
        first = {n: v[0] if isinstance(v, tuple) else v for n, v in part.given}
        _ = trimmed(part.name, first).effects
    return spec


def alternatives(spec: Spec) -> tuple[Spec, ...]:
    """One spec for each combination of alternatives, the last varying fastest.

    Example:
      >>> [str(each) for each in alternatives(parse("dp_sgd(clip=1|2, sigma=1)"))]
      ['dp_sgd(clip=1, sigma=1)', 'dp_sgd(clip=2, sigma=1)']
    """
    choices = [
        [(name, each) for each in (value if isinstance(value, tuple) else (value,))]
        for part in spec.parts
        for name, value in part.given
    ]
    found = []
    for chosen in itertools.product(*choices):
        values = iter(chosen)
        found.append(
            Spec(
                tuple(
                    trimmed(p.name, dict(next(values) for _ in p.given))
                    for p in spec.parts
                )
            )
        )
    return tuple(found)


def replaced(spec: Spec, changes: Sequence[Mapping[str, float]]) -> Spec:
    """The same with other values of some numbers, of each part; a sigma for a budget."""
    found = []
    for part, new in zip(spec.parts, changes, strict=True):
        gone = BUDGET if "sigma" in new else ()
        kept = {name: value for name, value in part.given if name not in gone}
        found.append(trimmed(part.name, kept | dict(new)))
    return Spec(tuple(found))


def structure(spec: Spec) -> tuple:
    """What specs must share to be compiled as one: all but their numbers."""
    parts = []
    for part in spec.parts:
        words = {p.name for p in definition(part.name).parameters if _is_word(p)}
        kept = [(n, v) for n, v in part.values.items() if n in words - {*BUDGET}]
        traced = tuple(_numbers(part, budget=True))
        parts.append((part.name, tuple(kept), traced))
    return tuple(parts)


def skeleton(spec: Spec) -> Spec:
    """The spec of a `structure`: every number is 1, a sigma is in a budget's place.

    Example:
      >>> str(skeleton(parse("dp_sgd(clip=0.3|3, epsilon=8)")))
      'dp_sgd(clip=1, sigma=1)'
    """
    return Spec(
        tuple(
            Part(name, (*words, *((each, 1.0) for each in traced)))
            for name, words, traced in structure(spec)
        )
    )


def numbers(spec: Spec) -> Numbers:
    """The numbers of each part, without a sigma that is left to a budget."""
    return tuple(_numbers(part) for part in spec.parts)


def bind(spec: Spec, setting: Setting, given: Numbers | None = None) -> Defense:
    """The defense of a spec in a training; pure, and all numbers may be traced.

    Args:
      spec: without alternatives.
      setting: the training.
      given: in place of the spec's own numbers, with every sigma.

    Raises:
      ValueError: for a sigma that is left to a budget, two parts at one place, batches
        that do not fit, or concrete numbers out of range.
    """
    if spec.has_alternatives:
        raise ValueError(f"{spec}: expected one value of each number (alternatives())")
    if given is None:
        given = numbers(spec)
    if needs_poisson(spec) and setting.batches != "poisson":
        raise ValueError(f"{spec}: expected batches that are Poisson samples")
    parts = zip(spec.parts, given, strict=True)
    return compose(*(_bind(part, setting, values) for part, values in parts))


def needs_poisson(spec: Spec) -> bool:
    """Whether batches must be Poisson samples."""
    for part in spec.parts:
        when = definition(part.name).poisson
        if isinstance(when, tuple):
            when = part.values[when[0]] == when[1]
        if when:
            return True
    return False


def clips_examples(spec: Spec) -> bool:
    """Whether any of its parts clips examples one by one."""
    return any(definition(part.name).clips_examples for part in spec.parts)


def has_noise(spec: Spec) -> bool:
    """Whether any of its parts has a sigma, or a budget: the noise that promises."""
    return any(name in (*BUDGET, "sigma") for p in spec.parts for name, _ in p.given)


def acts_on(spec: Spec) -> set[str]:
    """Fields of `Defense` that a spec fills."""
    setting = Setting(_no_loss, 1, num_rounds=1, batches="poisson")
    given = tuple(
        {"sigma": 1.0} | values if "epsilon" in part.values else values
        for part, values in zip(spec.parts, numbers(spec), strict=True)
    )
    built = bind(spec, setting, given)
    seams = ("gradient", "encode", "receive")
    return {name for name in seams if getattr(built, name) is not None}


def unpromised(spec: Spec) -> str:
    """Why there is no guarantee, of the parts that have none."""
    reasons = ((part.name, definition(part.name).promise) for part in spec.parts)
    return "; ".join(f"{name}: {reason}" for name, reason in reasons if reason)


def may_prune(spec: Spec) -> bool:
    """Whether a part leaves numbers of a message out, or does not say what it does."""
    facts = [part.effects for part in spec.parts]
    return any(does is None or does.share < 1 for does in facts)


def without_effects(spec: Spec) -> list[str]:
    """Names of the parts that do not say what they do, which nobody can simulate."""
    return [name for name in spec.names if definition(name).effects is None]


def _no_loss(params, x, y) -> jax.Array:
    del params, x, y
    return jnp.zeros(())


def _numbers(part: Part, budget: bool = False) -> dict[str, Any]:
    """Numbers that `build` is given; with `budget` also sigma in place of a budget."""
    values = part.values
    if budget and part.has_budget:
        values["sigma"] = values["epsilon"]
    return {
        each.name: values[each.name]
        for each in definition(part.name).parameters
        if not _is_word(each)
        and each.name not in BUDGET
        and values[each.name] is not None
    }


def _bind(part: Part, setting: Setting, given: dict[str, Any]) -> Defense:
    missing = _numbers(part, budget=True).keys() - given.keys()
    if missing:
        raise ValueError(f"{part}: {missing.pop()} is left to a budget")
    known = definition(part.name)
    words = part.values
    values = {
        each.name: words[each.name] if _is_word(each) else given.get(each.name)
        for each in known.parameters
        if each.name not in BUDGET
    }
    return own.built(part.name, known, setting, values)


def _is_word(parameter) -> bool:
    return isinstance(parameter, Choice)
