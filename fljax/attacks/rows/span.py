"""What the columns of a first layer's gradient span: the rows, each with a leading 1."""

from typing import NamedTuple

import numpy as np

_ROUNDING = 6e-8  # of float32, relative to the largest singular value
_ABOVE = 3  # times the noise, that a singular value has to be


class Sent(NamedTuple):
    """One gradient, and how far it can be trusted.

    Attributes:
      gradient: `[1 + D, H]`.
      rank: rows that can be told apart, `r`, at most those of the batch.
      deltas: `[r, H]` orthonormal, spans the gradients at the layer's outputs.
      noise: singular value below which all is rounding.
      weakest: least singular value above it.
    """

    gradient: np.ndarray
    rank: int
    deltas: np.ndarray
    noise: float
    weakest: float

    @property
    def error(self) -> float:
        """Of a direction in the span, at worst."""
        return self.noise / self.weakest

    def distance(self, directions: np.ndarray) -> np.ndarray:
        """How far `[n]` unit vectors `[n, H]` are from the span of the deltas."""
        inside = (directions @ self.deltas.T) @ self.deltas
        return np.linalg.norm(directions - inside, axis=1)


def sent(gradient: np.ndarray, rows: int) -> Sent:
    """Looks at one gradient `[1 + D, H]` of a batch of so many rows."""
    _, values, right = np.linalg.svd(gradient, full_matrices=False)
    rank, noise = _rank(values, rows, _ROUNDING * values[0])
    return Sent(gradient, rank, right[:rank], noise, float(values[rank - 1]))


class Span(NamedTuple):
    """Where rows that are not found yet lie.

    Attributes:
      basis: `[1 + D, k]` orthonormal.
      remaining: `[1 + D, H]` the gradient without what was found.
      error: of a direction in it.
    """

    basis: np.ndarray
    remaining: np.ndarray
    error: float


def of(remaining: np.ndarray, rows: int, noise: float) -> Span:
    """The span of so many rows, whose gradient `[1 + D, H]` is left."""
    left, values, _ = np.linalg.svd(remaining, full_matrices=False)
    rank, noise = _rank(values, rows, noise)
    return Span(left[:, :rank], remaining, float(noise / values[rank - 1]))


def without(sent: Sent, found: np.ndarray) -> Span:
    """The span of the rows whose deltas are not among `found` `[m, H]`, m below r.

    A vector that is orthogonal to these takes their rows out of the gradient, whatever
    their numbers are.
    """
    remaining = sent.gradient
    if len(found):
        known = np.linalg.qr(found.T)[0]
        remaining = remaining - (remaining @ known) @ known.T
    left, values, _ = np.linalg.svd(remaining, full_matrices=False)
    count = sent.rank - len(found)
    error = sent.noise / max(values[count - 1], sent.noise)
    return Span(left[:, :count], remaining, float(error))


def _rank(values: np.ndarray, rows: int, noise: float) -> tuple[int, float]:
    """Rows that stand out of the noise, at least one, and the noise as it is seen.

    Args:
      values: singular values, the largest first.
      rows: of the batch; singular values beyond them are noise.
      noise: of rounding.
    """
    if rows < len(values):
        noise = max(noise, float(values[rows]))
    return max(1, int((values[:rows] > _ABOVE * noise).sum())), float(noise)


def with_ones(x: np.ndarray) -> np.ndarray:
    """Rows `[n, D]`, each with a leading 1: `[n, 1 + D]`."""
    return np.concatenate([np.ones((len(x), 1)), x], axis=1)


def null_space(matrix: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """`(pseudoinverse, null space [n, f])` of `[m, n]` above a singular value."""
    left, values, right = np.linalg.svd(matrix, full_matrices=True)
    rank = int((values > least).sum())
    inverse = (right[:rank].T / values[:rank]) @ left[:, :rank].T
    return inverse, right[rank:].T


def left_null_space(matrix: np.ndarray, least: float) -> np.ndarray:
    """`[m, c]` whose products with what `[m, n]` spans are 0."""
    left, values, _ = np.linalg.svd(matrix, full_matrices=True)
    return left[:, int((values > least).sum()) :]
