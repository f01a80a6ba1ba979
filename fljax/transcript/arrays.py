"""Arrays of any framework, copied under the names of a transcript.

PyTorch's `state_dict` and the arrays of `.numpy()` are the very memory that training
goes on to write; what is recorded is a copy.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fljax.transcript.views import TranscriptError

Arrays = Mapping[str, Any]
# Layer -> arrays by name, or further layers, be it by their place in a list; or
# `LAYER/NAME` -> array.


def from_torch(state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """A PyTorch `state_dict` under the names and axes of flax, copied.

    Args:
      state: tensors, or their arrays, by name: `layers.0.weight` `[outputs, inputs, ...]`.

    Returns:
      `layers/0/kernel` `[..., inputs, outputs]` in its place, and likewise of every
      other weight with two axes or more (an embedding's, too). Other arrays keep their
      own name and axes: `layers.0.bias` is `layers/0/bias`.

    Raises:
      TranscriptError: it is no `state_dict`, a tensor is of a kind that NumPy lacks, or
        two would have one name.
    """
    if not isinstance(state, Mapping):
        raise TranscriptError(
            "from_torch: expected a state_dict, tensors by name, got "
            f"{type(state).__name__}; a module has one: module.state_dict()"
        )
    found: dict[str, np.ndarray] = {}
    for name, leaf in state.items():
        *layers, own = str(name).split(".")
        try:
            array = copied(leaf)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TranscriptError(f"from_torch: {name!r}: {error}") from error
        if own == "weight" and array.ndim > 1:
            own, array = "kernel", np.moveaxis(array, (1, 0), (-2, -1))
        path = "/".join([*layers, own])
        if path in found:
            raise TranscriptError(
                f"from_torch: {name!r} would be a second {path!r}, as a weight with two "
                "axes is called; rename one"
            )
        found[path] = array
    return found


def copied(leaf: Any) -> np.ndarray:
    """A copy in main memory, in a type that a transcript may have.

    What NumPy's format lacks (bfloat16) becomes float32, what is wider than 64 bits float64.
    """
    if hasattr(leaf, "detach"):  # PyTorch's: of a graph, or on another device
        leaf = leaf.detach().cpu()
        leaf = (leaf.float() if str(leaf.dtype) == "torch.bfloat16" else leaf).numpy()
    array = np.array(leaf)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def named(tree: Arrays, where: str) -> dict[str, np.ndarray]:
    """`LAYER/NAME` -> a copy in main memory, of floating point or integers.

    Raises:
      TranscriptError: there is another thing in it, or nothing.
    """
    found: dict[str, np.ndarray] = {}
    for name, leaf in leaves(tree):
        if name in found:
            raise TranscriptError(f"{where}: {name!r} is the name of two arrays")
        found[name] = copied(leaf)
    for name, array in found.items():
        if array.dtype.kind not in "fbiu":
            raise TranscriptError(
                f"{where}: {name!r} is of type {array.dtype}, not of floating point"
            )
    if not found:
        raise TranscriptError(f"{where}: expected arrays by name, got none")
    return dict(sorted(found.items()))


def shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    """Shape of each array by its name."""
    return {name: array.shape for name, array in arrays.items()}


def integers(arrays: Mapping[str, np.ndarray]) -> set[str]:
    """Names of those that are not trained: counters, masks."""
    return {name for name, array in arrays.items() if array.dtype.kind in "biu"}


def leaves(tree: Arrays, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every array as it was given, by `LAYER/NAME`."""
    if not isinstance(tree, Mapping):
        raise TranscriptError(
            f"{prefix or 'model'}: expected arrays by name, got {type(tree).__name__}"
        )
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, list | tuple) and any(map(_is_layer, value)):
            value = {str(place): each for place, each in enumerate(value)}
        if isinstance(value, Mapping):
            yield from leaves(value, f"{name}/")
        else:
            yield name, value


def _is_layer(value: Any) -> bool:
    """Whether it is an array or holds some, and no number of one."""
    if isinstance(value, list | tuple):
        return any(map(_is_layer, value))
    return isinstance(value, Mapping) or len(getattr(value, "shape", ())) > 0
