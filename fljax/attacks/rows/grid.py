"""Rows of whole numbers, as pixels are: proven by all of them being whole."""

from typing import NamedTuple

import numpy as np
from scipy import linalg

_OFF = 0.2  # of a step, within which a number counts as whole
_TESTED = 12  # numbers other than 0, without which a row proves nothing
_LOOKS = (4, 8, 64)  # inputs that are looked at before all are


class Grid(NamedTuple):
    """Inputs that are integers from 0 to `white`, divided by it."""

    white: int

    def proven(self, x: np.ndarray) -> np.ndarray:
        """Of rows `[n, D]` those on the grid, as integers `[m, D]`, each once.

        A number that has nothing to do with the grid is as near to it in two cases of
        five, so that of rows with 24 such numbers one in 3 billion passes.
        """
        values = x * self.white
        whole = np.clip(np.round(values), 0, self.white)
        near = np.abs(values - whole).max(axis=1, initial=0) < _OFF
        near &= (whole > 0).sum(axis=1) >= _TESTED
        near &= np.ptp(whole, axis=1) > 0
        rows = whole[near].astype(np.int64)
        once = {row.tobytes(): row for row in rows}
        return np.reshape(list(once.values()), (-1, x.shape[1])).astype(np.int64)

    def within(self, basis: np.ndarray) -> np.ndarray:
        """All rows of the grid in a space, as integers `[m, D]`.

        Tries whatever `k - 1` of the inputs may be, which gives the others.

        Args:
          basis: `[1 + D, k]`, the first coordinate being 1 for a row; k of up to 3 is
            quick for 256 values.
        """
        if np.abs(basis[0]).max() < np.finfo(np.float32).eps:
            return np.zeros((0, len(basis) - 1), np.int64)
        at, ways = self._affine(basis)
        free = ways.shape[1]
        if not free:
            return self.proven(at[None] / self.white)
        order = linalg.qr(ways.T, mode="r", pivoting=True)[1]
        values = np.indices([self.white + 1] * free).reshape(free, -1).T
        chosen = order[:free]
        steps = (values - at[chosen]) @ np.linalg.inv(ways[chosen]).T
        for count in (*_LOOKS, len(order)):
            some = order[free : free + count]
            seen = at[some] + steps @ ways[some].T
            off = np.abs(seen - np.clip(np.round(seen), 0, self.white))
            steps = steps[off.max(axis=1, initial=0) < _OFF]
        return self.proven((at + steps @ ways.T) / self.white)

    def _affine(self, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A point `[D]` of the space, and directions `[D, k - 1]`, in steps of the grid."""
        first, rest = basis[0], basis[1:] * self.white
        return rest @ first / (first @ first), rest @ linalg.null_space(first[None])
