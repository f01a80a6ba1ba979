"""Whether an attack could see the truth: what it is handed, and what it imports.

`leaks(received, truth)` names the places at which an array of the truth can be reached
from what an attack receives; `imports(module, package)` names all modules of a package
that a module imports, directly or through others of the package.
"""

import ast
import functools
import importlib.util
import pathlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
import pandas as pd

_FEWEST = 8  # entries that an array of the truth needs to be told from chance
_ATOMS = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType)


def leaks(received: Any, truth: Mapping[str, Any]) -> list[str]:
    """Where the truth can be reached: `name at path`, nothing if nowhere.

    An array of the truth is found as a whole, or as one item of its leading axis (e.g.
    one client's), in any contiguous part or column of an array that is reachable, in
    any shape and type. Items of fewer than 8 entries, or of equal ones, could be there
    by chance and are not looked for.

    Args:
      received: anything: arrays, trees, objects, functions with what they close over.
      truth: name -> array, e.g. `[C, N, ...]`.

    Raises:
      ValueError: an array of the truth has nothing that could be looked for.
    """
    wanted = {name: _pieces(name, np.asarray(leaf)) for name, leaf in truth.items()}
    found = []
    for path, array in arrays(received):
        columns = np.moveaxis(array, -1, 0) if array.ndim > 1 else array
        haystacks = _bytes(array), _bytes(columns)
        found += [
            f"{name} at {path or 'itself'}"
            for name, pieces in wanted.items()
            if any(piece in text for piece in pieces for text in haystacks)
        ]
    return found


def arrays(root: Any) -> Iterator[tuple[str, np.ndarray]]:
    """`(path, array)` of every numeric array that can be reached from an object.

    Enters containers, attributes, slots, closures, defaults, bound and partial
    functions, and what is wrapped by `jax.jit`; no modules, classes or globals.
    """
    todo, seen, kept = [("", root)], set(), []
    while todo:
        path, value = todo.pop()
        if isinstance(value, _ATOMS) or id(value) in seen:
            continue
        seen.add(id(value))
        kept.append(value)  # an object that is freed would give its id to another
        array = _array(value)
        if array is not None:
            yield path, array
        else:
            todo += [(path + step, part) for step, part in _parts(value)]


def imports(
    module: types.ModuleType, package: str, *, direct: bool = False
) -> set[str]:
    """Modules of a package that a module imports, the module itself left out.

    Args:
      module: whose.
      package: name.
      direct: only by statements of its own, not through others.
    """
    first = module.__name__
    if direct:
        return set(_imported(first, package)) - {first}
    todo, found = [first], set()
    while todo:
        for name in _imported(todo.pop(), package):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found - {first}


def _pieces(name: str, array: np.ndarray) -> list[bytes]:
    items = [array, *(array if array.ndim > 1 else [])]
    told = [i for i in items if i.size >= _FEWEST and np.ptp(i.astype(float))]
    if not told:
        raise ValueError(f"{name}: nothing in it could be told from chance")
    return [_bytes(item) for item in told]


def _bytes(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array, np.float64).tobytes()


def _array(value: Any) -> np.ndarray | None:
    """Its numbers, None for what is no array of numbers."""
    if isinstance(value, pd.Series | pd.Index) and value.dtype.kind in "biuf":
        return value.to_numpy()
    if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
        if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        return np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return value
    if not isinstance(value, list | tuple) or not value:
        return None
    numbers = all(isinstance(item, int | float | np.number) for item in value)
    return np.asarray(value) if numbers else None


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Steps into an object, each with what lies there."""
    if isinstance(value, pd.DataFrame):
        yield from ((f"[{name!r}]", value[name]) for name in value)
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{name}", getattr(value, name)) for name in value._fields)
    elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
        yield from ((f"[{at}]", item) for at, item in enumerate(value))
    elif isinstance(value, types.MethodType):
        yield ".__self__", value.__self__
        yield ".__func__", value.__func__
    elif isinstance(value, functools.partial):
        yield ".func", value.func
        yield ".args", value.args
        yield ".keywords", value.keywords
    else:
        yield from _of_function(value)
        yield from (
            (f".{n}", item) for n, item in getattr(value, "__dict__", {}).items()
        )
        for cls in type(value).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    yield f".{name}", getattr(value, name)


def _of_function(value: Any) -> Iterator[tuple[str, Any]]:
    wrapped = getattr(value, "__wrapped__", None)
    if wrapped is not None:
        yield ".__wrapped__", wrapped
    for name in ("__defaults__", "__kwdefaults__"):
        yield f".{name}", getattr(value, name, None)
    for at, cell in enumerate(getattr(value, "__closure__", None) or ()):
        try:
            yield f".closure[{at}]", cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _imported(name: str, package: str) -> Iterator[str]:
    """Modules of the package that are named by import statements of one module."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None, name
    for node in ast.walk(ast.parse(pathlib.Path(spec.origin).read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [
                node.module or "",
                *(f"{node.module}.{a.name}" for a in node.names),
            ]
        for each in names:
            if each.startswith(f"{package}.") and _is_module(each):
                yield each


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # a name in a module
        return False
