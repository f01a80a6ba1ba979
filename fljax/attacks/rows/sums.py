"""Rows of whole numbers behind sums of many clients' updates: secure aggregation.

`intersections` says how a row follows from the rounds that it is in. Pixels are whole
numbers, which proves a row (`grid`), and tells more of them:

* Of the space that a few rows have in common, all that is whole are these rows.
* Rows that always come together have a space for themselves. The update is a sum over such
  spaces, in each of which a neuron that one of its rows alone has switched on points at the
  row; neurons of single rows are how SRATTA (`exclusive`) finds rows, there among all rows of a
  round. One or two rows that are known do no harm.
* What is proven is exact, and the spans of the rounds around it tell weaker rows from
  rounding; so all is done again until nothing new is found.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fljax.attacks.rows import intersections, span
from fljax.attacks.rows.clients import Round
from fljax.attacks.rows.grid import Grid

_TRIES = 4  # orders of the rounds, one after another, in which nothing is found
_STEPS = 10  # of an update for each level of an input, from which quotients are any
_NOTHING = 1e-4  # of the largest of a space's neurons, below which one says nothing


def recover(rounds: Sequence[Round], white: int, seed: int = 0) -> np.ndarray:
    """Rows `[n, D]` of integers, each proven as far as `grid` says.

    Not where rows are all alike to a few levels: mixtures of them are nearly whole, too.
    Updates are taken to be differences of models in the precision of `first`; of gradients
    in it, which were never added to a model, rows that add little are not found.

    Args:
      rounds: what the server has of each; of rows fewer than inputs in all, and than
        neurons in a round.
      white: largest value of an input, all of which are integers divided by it.
      seed: of the order in which rounds are tried.

    Raises:
      ValueError: there is no round, or `white` is below 1.
    """
    if not len(rounds) or white < 1:
        raise ValueError(
            f"rounds, white: expected one or more, got {len(rounds)} and {white}"
        )
    seen = [_seen(each) for each in rounds]
    draws, grid = np.random.default_rng(seed), Grid(white)
    spans = [intersections.span(each.update, each.step) for each in seen]
    rows = _alone(grid, seen)
    while True:
        found = _Found(grid, spans, rows)
        for number, each in enumerate(seen):
            blocks = found.cover(number, draws)
            found.look(blocks, each, number)
        there = intersections.inside(spans, found.rows)
        complete = [each.shape[1] for each in spans] == list(there.sum(axis=0))
        if complete or len(found.rows) == len(rows):
            return found.integers
        rows = found.rows
        spans = [
            intersections.span_around(each.update, rows[now], each.noise)
            for each, now in zip(seen, there.T, strict=True)
        ]


class _Seen(NamedTuple):
    """A round in double precision, and the rounding of its update.

    Attributes:
      update: `[1 + D, H]`.
      first: `[1 + D, H]` that was sent.
      noise: deviation of the update's rounding.
      step: between numbers of the update: protocols add whole ones in a finite field, and
        what was sent and what came back were rounded.
    """

    update: np.ndarray
    first: np.ndarray
    noise: float
    step: float


def _seen(each: Round) -> _Seen:
    update = np.asarray(each.update, np.float64)
    first = np.asarray(each.first, np.float64)
    eps = float(np.finfo(np.float32).eps)
    small = np.abs(update) < np.abs(update).max(initial=0) * eps**2
    update = np.where(small, 0, update)  # such numbers are slow to multiply
    size = np.sqrt(np.mean(first**2) + np.mean(update**2))
    gaps = np.diff(np.unique(np.abs(update)), prepend=0.0)
    step = float(gaps[gaps > 0].min(initial=np.inf)) if gaps.any() else 0.0
    weights = np.abs(np.asarray(each.first))
    rounding = np.spacing(weights[weights > 0])  # in the precision that was sent
    step = max(step, float(np.median(rounding)) if rounding.size else 0.0)
    return _Seen(update, first, max(eps * float(size), step), step)


def _alone(grid: Grid, seen: Sequence[_Seen]) -> np.ndarray:
    """Rows `[n, 1 + D]` that have a neuron of a round for themselves."""
    each = [_proven(grid, one.update, one.step) for one in seen]
    return span.with_ones(np.unique(np.concatenate(each), axis=0) / grid.white)


def _proven(grid: Grid, neurons: np.ndarray, step: float) -> np.ndarray:
    """Integers `[n, D]` of the columns `[1 + D, H]` that are whole rows.

    Quotients of small whole numbers are whole by themselves: a column whose first number
    is few steps of the update proves nothing.
    """
    size = np.abs(neurons[0])
    least = max(np.finfo(np.float32).eps * size.max(), _STEPS * grid.white * step)
    single = size > least
    return grid.proven((neurons[1:, single] / neurons[0, single]).T)


class _Found:
    """What is known of the rounds while all of them are looked at once.

    Attributes:
      rows: `[n, 1 + D]` proven, each with its leading 1.
      pieces: `[m, 1 + D]` of which rounds are sums: proven rows, directions of blocks.
      inside: `[m, R]` which rounds each piece is in.
    """

    def __init__(self, grid: Grid, spans: Sequence[np.ndarray], rows: np.ndarray):
        self.grid, self.spans, self.rows, self.pieces = grid, spans, rows, rows
        self.inside = intersections.inside(spans, rows)
        self._names = {row.tobytes() for row in self.integers}

    @property
    def integers(self) -> np.ndarray:
        """The rows `[n, D]` as integers."""
        return np.round(self.rows[:, 1:] * self.grid.white).astype(np.int64)

    def cover(self, number: int, draws) -> list[np.ndarray]:
        """Finds pieces until a round is a sum of them; blocks among them, as places."""
        blocks, failed = [], 0
        while self._missing(number) > 0 and failed < _TRIES:
            narrow = intersections.narrowed(self.spans, number, self.inside, draws)
            new = self._prove(self.grid.within(narrow))
            block = self._block(narrow) if not len(new) else None
            self._add(new)
            blocks += [block] if block is not None else []
            failed = 0 if len(new) or block is not None else failed + 1
        return blocks

    def look(self, blocks: Sequence[np.ndarray], seen: _Seen, number: int) -> None:
        """Looks for neurons of single rows in the blocks of a round.

        Of those that the grid can be searched in `cover` has seen all rows.
        """
        blocks = [block for block in blocks if len(block) > self.grid.dimensions]
        if not blocks:
            return
        there = np.flatnonzero(self.inside[:, number])
        parts = np.zeros((len(self.pieces), seen.update.shape[1]))
        parts[there] = np.linalg.lstsq(self.pieces[there].T, seen.update)[0]
        for block in blocks:
            neurons = self.pieces[block].T @ parts[block]
            self._prove(_proven(self.grid, neurons, seen.step))
            self._beside_known(block, neurons, seen.first)

    def _missing(self, number: int) -> int:
        return self.spans[number].shape[1] - int(self.inside[:, number].sum())

    def _prove(self, x: np.ndarray) -> np.ndarray:
        """Notes rows of integers `[n, D]`; those that are new, `[m, 1 + D]`."""
        new = [row / self.grid.white for row in x if row.tobytes() not in self._names]
        self._names |= {row.tobytes() for row in x}
        rows = span.with_ones(np.reshape(new, (-1, x.shape[1])))
        self.rows = np.concatenate([self.rows, rows])
        return rows

    def _add(self, pieces: np.ndarray) -> None:
        there = intersections.inside(self.spans, pieces)
        self.pieces = np.concatenate([self.pieces, pieces])
        self.inside = np.concatenate([self.inside, there])

    def _block(self, space: np.ndarray) -> np.ndarray | None:
        """Makes pieces of what others leave of a space; the places of all of its own."""
        own = np.flatnonzero(intersections.inside([space], self.pieces)[:, 0])
        count = space.shape[1] - len(own)
        if count <= 0:
            return None
        known = np.linalg.qr(self.pieces[own].T)[0]
        left = np.linalg.svd(intersections.without(space, known), full_matrices=False)
        places = np.arange(count) + len(self.pieces)
        self._add(left[0][:, :count].T)
        return np.concatenate([own, places])

    def _beside_known(self, block: np.ndarray, neurons: np.ndarray, first) -> None:
        """Rows of neurons that few known rows of the block have on as well."""
        space = np.linalg.qr(self.pieces[block].T)[0]
        known = self.rows[intersections.inside([space], self.rows)[:, 0]]
        on = known @ first > 0
        size = np.linalg.norm(neurons, axis=0)
        few = (on.sum(axis=0) > 0) & (on.sum(axis=0) < self.grid.dimensions)
        for neuron in np.flatnonzero(few & (size > _NOTHING * size.max())):
            others = np.linalg.qr(known[on[:, neuron]].T)[0]
            part = neurons[:, neuron : neuron + 1]
            if not intersections.inside([others], part.T).any():
                self._prove(self.grid.within(np.concatenate([others, part], axis=1)))
