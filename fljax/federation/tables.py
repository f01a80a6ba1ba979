"""What trainings read: rows and schedules, by position, and which training is which."""

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import printable, stacking
from fljax import schedule as schedule_lib
from fljax.schedule import Schedule
from fljax.types import Array, PyTree, Rows


class Tables(NamedTuple):
    """What the trainings of a federation read.

    Attributes:
      rows: leaves `[rows, N, ...]`, each sorted by client and padded at the end.
      schedule: leaves `[schedules, ...]`, but for `end_steps`, which all share.
      pool: what a method prepares inputs from, or None.
    """

    rows: Rows
    schedule: Schedule
    pool: PyTree = None

    @classmethod
    def of(cls, rows: Rows, parts: Sequence[np.ndarray], **plan: Any) -> "Tables":
        """One federation: rows in any order, and whose they are.

        Args:
          rows: leaves `[N, ...]`, as a data set has them.
          parts: row numbers of each client, from `fljax.partition`.
          **plan: of `schedule.build`, without sizes: `num_rounds`, `batch_size`, ...

        Raises:
          ValueError: there is no part, one is empty, or has no row numbers; inputs and
            targets are not of equally many rows; or a row has a number that is not finite.
        """
        if not len(parts):
            raise ValueError("parts: expected one client at least, got none")
        count = len(rows.y)
        lengths = {np.shape(leaf)[0] for leaf in jax.tree.leaves(rows.x)}
        if lengths - {count}:
            raise ValueError(
                f"rows: expected x of the {count} rows of y, got {sorted(lengths)}"
            )
        for client, part in enumerate(parts):
            if not _are_numbers(np.asarray(part), count):
                got = printable.line(repr(part))
                raise ValueError(
                    f"parts: expected numbers [n] of {count} rows, one at least, for "
                    f"client {client}, got {got:.60}"
                )
        for name, leaf in zip(("x", "y"), (rows.x, rows.y), strict=True):
            if not all(map(_is_finite, jax.tree.leaves(leaf))):
                raise ValueError(f"rows: expected finite numbers, got others in {name}")
        each = [
            jax.tree.map(lambda leaf, at=part: np.asarray(leaf)[at], rows)
            for part in parts
        ]
        return tables([each], lambda _, sizes: schedule_lib.build(sizes, **plan))


def _is_seed(seed: Any) -> bool:
    try:
        return not isinstance(seed, bool) and 0 <= operator.index(seed) < 2**32
    except TypeError:
        return False


def _are_numbers(part: np.ndarray, count: int) -> bool:
    """Whether they are `[n]` of so many rows, n > 0."""
    if part.ndim != 1 or not part.size or not np.issubdtype(part.dtype, np.integer):
        return False
    return bool(part.min() >= 0 and part.max() < count)


def _is_finite(leaf: Array) -> bool:
    """Also as float32, or as int32, in which trainings have it."""
    numbers = np.asarray(leaf)
    if jnp.issubdtype(numbers.dtype, jnp.integer) and numbers.size:
        least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
        return bool(least <= numbers.min() and numbers.max() <= most)
    if not jnp.issubdtype(numbers.dtype, jnp.floating):
        return True
    with np.errstate(over="ignore"):
        return bool(np.isfinite(numbers.astype(np.float32)).all())


class Training(NamedTuple):
    """Trainings; leaves `[trainings, ...]`, or those of one.

    Attributes:
      rows: int32 position in `Tables.rows`.
      schedule: int32 position in `Tables.schedule`.
      seed: uint32, of all that is drawn.
      trial: int32, to tell trainings of one seed apart; None draws alike in all.
      numbers: what the method is built from.
      start: uint32 seed of the initial model, whatever the trial; None: of `seed` and trial.
    """

    rows: Array
    schedule: Array
    seed: Array
    trial: Array | None = None
    numbers: PyTree = ()
    start: Array | None = None

    @classmethod
    def of_seeds(cls, *seeds: int, numbers: PyTree = ()) -> "Training":
        """A training of each seed on the first rows and schedule, e.g. of `Tables.of`.

        Args:
          *seeds: one at least.
          numbers: leaves `[seeds, ...]`.

        Raises:
          ValueError: a seed is no integer from 0 to 2^32 - 1.
        """
        for seed in seeds:
            if not _is_seed(seed):
                raise ValueError(
                    f"seeds: expected integers from 0 to 2^32 - 1, got {seed!r:.40}"
                )
        first = np.zeros(len(seeds), np.int32)
        return cls(first, first, np.array(seeds, np.uint32), numbers=numbers)


def tables(
    clients: Sequence[Sequence[Rows]],
    plan: Callable[[int, np.ndarray], Schedule],
    pool: PyTree = None,
) -> Tables:
    """Rows in the order that their schedule expects.

    Args:
      clients: for each position, e.g. seed, the rows of each client, leaves `[n, ...]`.
      plan: `(position, sizes [C]) -> Schedule`, once for each.
      pool: what a method prepares inputs from.
    """
    sizes = [np.array([len(rows.y) for rows in each]) for each in clients]
    most = max(size.sum() for size in sizes)

    def joined(*leaves):
        whole = np.concatenate(leaves)
        wide = [(0, most - len(whole))] + [(0, 0)] * (whole.ndim - 1)
        return np.pad(whole, wide)

    flat = [jax.tree.map(joined, *each) for each in clients]
    rows = jax.tree.map(lambda *leaves: np.stack(leaves), *flat)
    plans = [plan(position, size) for position, size in enumerate(sizes)]
    return Tables(rows, stacking.stack(plans)[0], pool)


def of(tables: Tables, training: Training) -> tuple[Rows, Schedule]:
    """Rows and schedule of one training; traceable."""
    rows, schedule = jax.tree.map(jnp.asarray, tables[:2])
    ends, parted = schedule.end_steps, dataclasses.replace(schedule, end_steps=())
    own = jax.tree.map(lambda leaf: leaf[training.schedule], parted)
    return (
        jax.tree.map(lambda leaf: leaf[training.rows], rows),
        dataclasses.replace(own, end_steps=ends),  # those of all trainings
    )
