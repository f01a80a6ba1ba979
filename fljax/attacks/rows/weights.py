"""Targets of rows, and how often each is in the batch.

In a sum of matrices `sum_i u_i v_i^T` whose ranks add up, the matrix `u v^T` has the
weight `1 / (v^T G^+ u)`; both are known but for the target.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import forward, span
from fljax.attacks.rows.forward import Hidden
from fljax.attacks.rows.network import Network
from fljax.attacks.rows.span import Sent

_NEAR = 1e-2  # of a delta to the span
_TINY = 1e-30


class Weights(NamedTuple):
    """The target `[n]` of each row, and how often `[n]` it is there."""

    y: np.ndarray
    counts: np.ndarray


def first(network: Network, sent: Sent, x, targets, rows: int) -> Weights:
    """From the first layer's gradient, for encoded rows `[n, D]`."""
    ones = span.with_ones(x)

    def deltas(target):
        return network.deltas(x, target)

    return _weights(sent.gradient, sent.rank, ones, deltas, targets, rows)


def second(network: Network, hidden: Hidden, x, targets, rows: int) -> Weights:
    """From the second layer's, whose ranks add up even where the rows' do not."""

    def deltas(target):
        return network.deltas(x, target, forward.SECOND)

    shown = hidden.shown(x)
    return _weights(hidden.gradient, hidden.rank, shown, deltas, targets, rows)


def _weights(
    gradient: np.ndarray,
    rank: int,
    inputs: np.ndarray,
    deltas: Callable,
    targets: np.ndarray,
    rows: int,
) -> Weights:
    left, values, right = np.linalg.svd(gradient, full_matrices=False)
    behind = (inputs @ left[:, :rank]) @ (right[:rank].T / values[:rank]).T
    counts = []
    for target in targets:
        each = deltas(target)
        unit = each / np.maximum(np.linalg.norm(each, axis=1, keepdims=True), _TINY)
        outside = unit - (unit @ right[:rank].T) @ right[:rank]
        far = np.linalg.norm(outside, axis=1) > _NEAR
        along = np.einsum("nh,nh->n", each, behind)
        count = rows / np.where(np.abs(along) > _TINY, along, _TINY)
        counts.append(np.where(far & (len(targets) > 2), np.inf, count))
    many = np.stack(counts)
    off = np.abs(many - np.clip(np.round(many), 1, rows))
    chosen = np.where(np.isfinite(off), off, np.inf).argmin(axis=0)
    nearest = np.clip(np.round(many[chosen, np.arange(len(inputs))]), 1, rows)
    counted = np.ones(len(inputs), int) if rank == rows else nearest.astype(int)
    return Weights(targets[chosen], counted)
