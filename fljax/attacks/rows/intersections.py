"""What the updates of several rounds have in common, under secure aggregation.

However many steps of SGD a client takes in a round, without noise or weight decay its update
of a first dense layer is `sum_i (1, x_i) m_i^T` over its rows; the sum over clients is, too.
(Adam scales entry by entry, and its updates are not.) Its columns span the rows of the round,
as long as these are fewer than the layer's inputs and outputs. The spans of two rounds
share the rows that are in both and nothing else, if all rows together are fewer than the
inputs. So a row is what the rounds that it is in have in common, unless another one is in
all of them as well.
"""

from collections.abc import Sequence

import numpy as np

_RANK = 1e-5  # of the largest singular value, above which one is no rounding
_SINE = 1e-2  # between directions that are the same
_GRAM = 1e-7  # of the largest singular value, below which squares do not tell one


def span(update: np.ndarray, noise: float = 0.0) -> np.ndarray:
    """What the columns of an update `[1 + D, H]` span, `[1 + D, k]` orthonormal.

    Args:
      update: of a round.
      noise: standard deviation of its rounding, where it is more than that of floats.
    """
    values, right = np.linalg.eigh(update.T @ update)
    least = noise * sum(np.sqrt(update.shape))
    kept = values > max(_RANK**2 * values[-1], least**2)
    return np.linalg.qr(update @ right[:, kept])[0]


def span_around(update: np.ndarray, rows: np.ndarray, noise: float) -> np.ndarray:
    """The same, where some of the rows are known exactly.

    What they leave of the update is told from rounding however weak it is beside them.

    Args:
      update: `[1 + D, H]`.
      rows: `[n, 1 + D]`, each with its leading 1.
      noise: standard deviation of the update's rounding.
    """
    known = np.linalg.qr(rows.T)[0]
    left = without(update, known)
    values, right = np.linalg.eigh(left.T @ left)
    least = max(noise * sum(np.sqrt(update.shape)), _GRAM * np.linalg.norm(update))
    kept = values > least**2
    return np.concatenate([known, np.linalg.qr(left @ right[:, kept])[0]], axis=1)


def inside(spans: Sequence[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Which spans `[n, R]` each of the directions `[n, 1 + D]` lies in."""
    units = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T
    far = [np.linalg.norm(without(units, each), axis=0) for each in spans]
    return np.stack(far, axis=1) < _SINE


def narrowed(
    spans: Sequence[np.ndarray], first: int, known: np.ndarray, draws
) -> np.ndarray:
    """A part of one round's span with directions that are not known yet, `[1 + D, k]`.

    Args:
      spans: of the rounds.
      first: the round.
      known: `[n, R]` which rounds each known direction is in.
      draws: the generator of the order in which rounds are tried.
    """
    left, used = spans[first], [first]
    for other in draws.permutation(len(spans)):
        if other == first or left.shape[1] == 1:
            continue
        shared = _intersection(left, spans[other])
        count = known[:, [*used, other]].all(axis=1).sum()
        if count < shared.shape[1] < left.shape[1]:
            left = shared
            used.append(int(other))
    return left


def without(columns: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Columns `[d, n]` less what lies in an orthonormal basis `[d, k]`."""
    return columns - basis @ (basis.T @ columns)


def _intersection(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Directions in both, `[1 + D, k]` orthonormal."""
    turned, cosines, _ = np.linalg.svd(left.T @ right, full_matrices=False)
    return left @ turned[:, cosines**2 > 1 - _SINE**2]
