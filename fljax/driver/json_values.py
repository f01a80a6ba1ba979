"""Results as JSON and back, to the bit: NumPy arrays, and NamedTuples of stated types."""

import base64
import math
from typing import Any

import numpy as np


def encode(value: Any) -> Any:
    """What `json.dumps` takes.

    Args:
      value: numbers, texts, None, NumPy and JAX arrays; lists, tuples, NamedTuples and dicts
        with texts as keys, of such.

    Raises:
      TypeError: for anything else.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case _ if hasattr(value, "__array__"):
            array = np.asarray(value)
            if array.dtype.hasobject or array.dtype.kind == "V":  # bfloat16, say
                raise TypeError(f"expected an array of numbers, got {array.dtype}")
            text = base64.b64encode(array.tobytes()).decode()
            return {"array": [array.dtype.str, list(array.shape), text]}
        case tuple() if hasattr(value, "_fields"):
            return {"named": [type(value).__name__, [encode(each) for each in value]]}
        case tuple():
            return {"tuple": [encode(each) for each in value]}
        case list():
            return [encode(each) for each in value]
        case dict():
            pairs = [[_text(name), encode(each)] for name, each in value.items()]
            return {"dict": pairs}
    raise TypeError(f"cannot be kept as JSON: {type(value).__name__}")


def decode(value: Any, types: tuple[type, ...] = ()) -> Any:
    """The inverse of `encode`; arrays come back as NumPy's.

    Args:
      value: from `json.loads`.
      types: NamedTuples that may be in it.

    Raises:
      ValueError: it is not what `encode` makes.
    """
    if isinstance(value, list):
        return [decode(each, types) for each in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("float", str(text))]:
            return float(text)
        case [("array", [str(dtype), list(shape), str(text)])]:
            flat = np.frombuffer(base64.b64decode(text), np.dtype(dtype))
            return flat.reshape(shape).copy()
        case [("tuple", list(items))]:
            return tuple(decode(each, types) for each in items)
        case [("named", [str(name), list(items)])]:
            known = {each.__name__: each for each in types}
            if name in known:
                return known[name](*(decode(each, types) for each in items))
        case [("dict", list(pairs))]:
            return {name: decode(each, types) for name, each in pairs}
    raise ValueError(f"expected a result kept as JSON, got {value!s:.60}")


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"expected texts as keys, got {name!r}")
    return name
