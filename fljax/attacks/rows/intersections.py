"""Rows behind sums of many clients' updates over several rounds: secure aggregation.

Whatever a client does in a round, its update of a first dense layer is `sum_i (1, x_i)
m_i^T` over its rows; the sum over clients is, too. Its columns span the rows of the round,
as long as these are fewer than the layer's inputs and outputs. The spans of two rounds
share the rows that are in both and nothing else, if all rows together are fewer than the
inputs. So a row is what the rounds that it is in have in common, unless another one is in
all of them as well: rows that always come together stay together. No neuron has to be a
single row's, as Marchand et al., "SRATTA: Sample Re-ATTribution Attack of Secure
Aggregation in Federated Learning", 2023, https://arxiv.org/abs/2306.07644, need it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_RANK = 1e-5  # of the largest singular value, above which one is no rounding
_SINE = 1e-2  # between directions that are the same
_TRIES = 4  # orders of the rounds, one after another, in which nothing is found


class Common(NamedTuple):
    """Rows that were told apart.

    Attributes:
      x: `[n, D]`.
      rounds: `[n, R]` bool, which rounds each is in.
      left: `[R]` rows of each round that were not told from others.
    """

    x: np.ndarray
    rounds: np.ndarray
    left: np.ndarray


def recover(updates: Sequence[np.ndarray], seed: int = 0) -> Common:
    """Rows from the updates of the first layer.

    Args:
      updates: of every round the change `[1 + D, H]` of bias and kernel, the bias first.
      seed: of the order in which rounds are tried.
    """
    spans = [_span(np.asarray(update, np.float64)) for update in updates]
    draws = np.random.default_rng(seed)
    rows = np.zeros((0, spans[0].shape[0]))
    inside = np.zeros((0, len(spans)), bool)
    for first, span in enumerate(spans):
        failed = 0
        while inside[:, first].sum() < span.shape[1] and failed < _TRIES:
            narrow = _narrowed(spans, first, inside, draws)
            if narrow.shape[1] != 1:
                failed += 1
                continue
            row = narrow[:, 0]
            there = np.array([_sine(each, row) < _SINE for each in spans])
            rows = np.concatenate([rows, row[None]])
            inside = np.concatenate([inside, there[None]])
            failed = 0
    kept = np.abs(rows[:, 0]) > np.finfo(np.float32).eps
    left = np.array([span.shape[1] for span in spans]) - inside[kept].sum(axis=0)
    return Common(rows[kept, 1:] / rows[kept, :1], inside[kept], left)


def _span(update: np.ndarray) -> np.ndarray:
    """What the columns span, `[1 + D, k]` orthonormal."""
    small = (
        np.abs(update) < np.abs(update).max(initial=0) * np.finfo(np.float32).eps ** 2
    )
    update = np.where(small, 0, update)  # such numbers are slow to multiply
    values, right = np.linalg.eigh(update.T @ update)
    kept = values > (_RANK**2) * values[-1]
    return np.linalg.qr(update @ right[:, kept])[0]


def _narrowed(
    spans: Sequence[np.ndarray], first: int, inside: np.ndarray, draws
) -> np.ndarray:
    """A part of one round's span with rows that are not known yet, `[1 + D, k]`."""
    left, used = spans[first], [first]
    for other in draws.permutation(len(spans)):
        if other == first or left.shape[1] == 1:
            continue
        shared = _intersection(left, spans[other])
        known = inside[:, [*used, other]].all(axis=1).sum()
        if known < shared.shape[1] < left.shape[1]:
            left = shared
            used.append(int(other))
    return left


def _intersection(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Directions in both, `[1 + D, k]` orthonormal."""
    turned, cosines, _ = np.linalg.svd(left.T @ right, full_matrices=False)
    return left @ turned[:, cosines**2 > 1 - _SINE**2]


def _sine(span: np.ndarray, row: np.ndarray) -> float:
    return float(np.linalg.norm(row - span @ (span.T @ row)))
