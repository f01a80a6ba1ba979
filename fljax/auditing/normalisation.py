"""Normalisation layers among the arrays of a transcript, told by their names.

A layer has a `scale` (PyTorch: `weight`) of one axis beside a `bias` of the same shape.
Batch norm also has running statistics, which no gradient changes: they are no trained
parameters, although a `state_dict` has them among those.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import jax
import numpy as np

from fljax.types import Params, PyTree, Transcript

_PARTS = re.compile(r"[./]")
_STATISTICS = {"running_mean", "running_var", "moving_mean", "moving_variance"}
_SCALES = {"weight", "scale", "gamma", "kernel"}  # the last, as READMEs rename weights
_BIASES = {"bias", "beta"}
_ROUNDING = 1e-5  # of a statistic, in float32 and more
_Shapes = Mapping[str, tuple[int, ...]]


def is_statistic(name: str) -> bool:
    """Whether an array holds what batch norm counts, not what is trained."""
    *layers, own = _PARTS.split(name)
    flax = own in ("mean", "var") and bool(layers) and "BatchNorm" in layers[-1]
    return own in _STATISTICS or "batch_stats" in layers or flax


def freeze(params: Params, still: Collection[str] = ()) -> Params:
    """Without gradients for running statistics, and for arrays of these names."""

    def one(path, leaf):
        name = name_of(path)
        held = is_statistic(name) or name in still
        return jax.lax.stop_gradient(leaf) if held else leaf

    return jax.tree_util.tree_map_with_path(one, params)


def name_of(path) -> str:
    """`LAYER/NAME` of a leaf."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def notes(seen: Transcript) -> list[str]:
    """What a reader has to know about an audit of batch norm."""
    if not any(is_statistic(name) for name, _ in _named(seen.params)):
        return []
    moving = (
        "Batch norm: attacks take its running statistics in place of each batch's own, "
        "so that those which imitate clients find less than they might."
    )
    still = (
        "Batch norm whose running statistics never move: attacks take them as they are, "
        "which is right if they were frozen in training; if each batch's own were used, "
        "those which imitate clients find less than they might."
    )
    return [moving if counts(seen) else still]


def counts(seen: Transcript) -> bool:
    """Whether running statistics move: from round to round, or while clients train."""
    both = zip(_named(seen.params), _named(seen.delta), strict=True)
    return any(_moves(a, d) for (name, a), (_, d) in both if is_statistic(name))


def _moves(sent: np.ndarray, delta: np.ndarray) -> bool:
    """Whether a statistic does, from round to round or, but for rounding, at clients.

    Where updates were recorded in place of models, a difference is all that was sent.
    """
    if np.any(sent != sent[0]):
        return True
    models = np.broadcast_to(np.expand_dims(sent, 1), delta.shape)
    far = np.abs(delta) > _ROUNDING * np.abs(models)
    return bool(np.any(far & (delta != models)))


def _named(tree: PyTree) -> Iterator[tuple[str, np.ndarray]]:
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        yield name_of(path), np.asarray(leaf)


def hint(wanted: Iterable[str], found: _Shapes) -> str:
    """What to do about layers that are in a transcript and not in the model; or empty."""
    statistics = [name for name in found if is_statistic(name)]
    layers = [name for name in found if name in statistics or _of_layer(name, found)]
    if not layers or set(layers) <= set(wanted):
        return ""
    kind = "BatchNorm" if statistics else "LayerNorm or GroupNorm"
    also = ", running statistics too, which are held constant" if statistics else ""
    return (
        f"; {', '.join(layers)} are of normalisation layers ({kind}), which linear and "
        "mlp:WIDTH do not have: write the network as a fljax.types.Model whose params have "
        f"the names found{also}, and name it with --model=package.module:attribute"
    )


def _of_layer(name: str, found: _Shapes) -> bool:
    shape = found[name]
    own = _PARTS.split(name)[-1]
    beside = {
        _PARTS.split(each)[-1]: found[each]
        for each in found
        if each.removesuffix(_PARTS.split(each)[-1]) == name.removesuffix(own)
    }
    scales = [each for each in beside if each in _SCALES and len(beside[each]) == 1]
    biases = [each for each in beside if each in _BIASES and beside[each] == shape]
    return bool(scales and biases and own in (*scales, *biases))
