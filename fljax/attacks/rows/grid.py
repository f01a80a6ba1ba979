"""Rows of whole numbers, as pixels are: proven by all of them being whole.

A proof for images of many levels: mixtures of two images of black and white, or of such
whose levels are all multiples of something, are whole as well, and between two of little
contrast there are more.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

_OFF = 0.2  # of a step, within which a number counts as whole
_TESTED = 24  # numbers other than a row's commonest, without which it proves nothing
_LEVELS = 6  # likewise different numbers
_MOST = 2**17  # combinations of inputs that are tried
_LOOKS = (4, 8, 64)  # inputs that are looked at before all are


class Grid(NamedTuple):
    """Inputs that are integers from 0 to `white`, divided by it, none being too coarse."""

    white: int

    @property
    def dimensions(self) -> int:
        """Most dimensions of a space that `within` searches; 3 for 256 values."""
        return 1 + int(math.log(_MOST) / math.log(self.white + 1))

    def proven(self, x: np.ndarray) -> np.ndarray:
        """Of rows `[n, D]` those on the grid, as integers `[m, D]`, each once.

        A number that has nothing to do with the grid is as near to it in two cases of
        five, so that of rows with 24 such numbers one in 3 billion passes.
        """
        values = x * self.white
        whole = np.clip(np.round(values), 0, self.white)
        near = np.abs(values - whole).max(axis=1, initial=0) < _OFF
        rows = whole[near].astype(np.int64)
        once = {row.tobytes(): row for row in rows if _tells(row)}
        return np.reshape(list(once.values()), (-1, x.shape[1])).astype(np.int64)

    def within(self, basis: np.ndarray) -> np.ndarray:
        """The rows of the grid in a space that rows span, as integers `[m, D]`.

        Tries whatever `k - 1` of the inputs may be, which gives the others. None where
        there are more than k, of which nothing says which are rows, and where k is above
        `dimensions`, so that there is more to try than memory should hold.

        Args:
          basis: `[1 + D, k]`, the first coordinate being 1 for a row.
        """
        count = basis.shape[1]
        nothing = np.zeros((0, len(basis) - 1), np.int64)
        no_row = np.abs(basis[0]).max(initial=0) < np.finfo(np.float32).eps
        if no_row or count > self.dimensions:
            return nothing
        at, ways = self._affine(basis)
        found = self.proven(self._tried(at, ways) / self.white)
        return found if len(found) <= count else nothing

    def _tried(self, at: np.ndarray, ways: np.ndarray) -> np.ndarray:
        """Points `[m, D]` near the grid, in steps of it."""
        free = ways.shape[1]
        if not free:
            return at[None]
        order = linalg.qr(ways.T, mode="r", pivoting=True)[-1]
        values = np.indices([self.white + 1] * free).reshape(free, -1).T
        chosen = order[:free]
        steps = (values - at[chosen]) @ np.linalg.inv(ways[chosen]).T
        for count in (*_LOOKS, len(order)):
            some = order[free : free + count]
            seen = at[some] + steps @ ways[some].T
            off = np.abs(seen - np.clip(np.round(seen), 0, self.white))
            steps = steps[off.max(axis=1, initial=0) < _OFF]
        return at + steps @ ways.T

    def _affine(self, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A point `[D]` of the space, and directions `[D, k - 1]`, in steps of the grid."""
        first, rest = basis[0], basis[1:] * self.white
        return rest @ first / (first @ first), rest @ linalg.null_space(first[None])


def _tells(row: np.ndarray) -> bool:
    """Whether a row of integers has numbers enough that had to be whole."""
    counts = np.unique(row, return_counts=True)[1]
    return len(counts) >= _LEVELS and row.size - counts.max() >= _TESTED
