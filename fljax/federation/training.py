"""Trains: items dealt to devices, chunk after chunk, each program compiled once."""

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import jax
import numpy as np

from fljax import parallel, rounds
from fljax.federation import checks, programs, side_by_side
from fljax.federation.method import Method
from fljax.federation.tables import Tables, Training
from fljax.types import Params, PyTree

Evaluate = Callable[[rounds.Run, Training, Tables], PyTree]
# (run, training, tables) -> result, of ONE training; traceable


class Federation(NamedTuple):
    """A method, and what its trainings read."""

    method: Method
    tables: Tables


class Trained(NamedTuple):
    """What came of trainings; NumPy arrays.

    Attributes:
      run: leaves `[trainings, ...]`, after the last stop.
      stops: rounds after which it was evaluated.
      evaluations: leaves `[stops, trainings, ...]`, of `evaluate`; None without it.
      seconds: that the rounds took, compiling excluded; of those that an earlier call
        has left a state of, nothing is known.
      num_timed: rounds that these seconds are of.
    """

    run: rounds.Run
    stops: tuple[int, ...]
    evaluations: PyTree
    seconds: float
    num_timed: int

    def of(self, training: int) -> rounds.Run:
        """The run of one training, leaves without the axis over trainings."""
        return jax.tree.map(lambda leaf: leaf[training], self.run)


class States(Protocol):
    """Where a training that was stopped finds its state, e.g. `driver.stage_cache`."""

    def latest(self, like: PyTree) -> tuple[int, PyTree] | None:
        """Round and state to go on from; None at the start."""

    def reached(self, step: int, state: Callable[[], PyTree]) -> None:
        """Told after each stop."""


def train(
    federation: Federation,
    trainings: Training,
    *,
    stops: Sequence[int] | None = None,
    evaluate: Evaluate | None = None,
    progress: Callable[[int, PyTree], None] | None = None,
    states: States | None = None,
    record_dtype: str | None = None,
    room: int = 0,
) -> Trained:
    """Trains all at the same time, on all devices of all processes.

    Args:
      federation: of the trainings.
      trainings: leaves `[trainings, ...]`.
      stops: increasing rounds between which the program returns; the last is the end.
        None trains all rounds of the schedule without a stop.
      evaluate: `(run, training, tables) -> result` of one training, at each stop, in a
        compiled program of its own; the same function each time, or one that is equal.
      progress: called at each stop with the rounds done and the evaluations there,
        leaves `[trainings, ...]`; may raise.
      states: where an earlier call left its state, and this one does.
      record_dtype: of the messages that are kept.
      room: for so many trainings, so that calls with fewer share their programs.

    Raises:
      ValueError: for stops that do not increase, or lie outside the schedule; trainings
        of rows or schedules that are not there; noise whose promise the batches break.
    """
    stops = _stops(stops, federation.tables.schedule.num_rounds)
    job = _Job(federation, trainings, evaluate, record_dtype, room)
    begun, run, kept = 0, None, []
    if states is not None and (found := states.latest(job.like(len(stops)))):
        begun, (run, kept) = found
        run, kept = job.dealt(run), _unstack(kept, sum(stop <= begun for stop in stops))
    run = job.begin() if run is None else run
    seconds = 0.0
    for before, stop in itertools.pairwise((0, *stops)):
        if stop > begun:
            run, spent = job.advance(run, max(before, begun), stop)
            seconds += spent
        if len(kept) < stops.index(stop) + 1:
            kept.append(job.evaluated(run))
            if states is not None and stop < stops[-1]:
                states.reached(stop, lambda now=run: job.state(now, kept, len(stops)))
        if progress is not None:
            progress(stop, kept[stops.index(stop)])
    whole = job.state(run, kept, len(stops))
    if states is not None:
        states.reached(stops[-1], lambda: whole)
    return Trained(whole[0], stops, whole[1], seconds, stops[-1] - begun)


def _stops(given: Sequence[int] | None, num_rounds: int) -> tuple[int, ...]:
    if given is None:
        return (num_rounds,)
    stops = np.asarray(given)
    whole = stops.ndim == 1 and np.issubdtype(stops.dtype, np.integer) and len(stops)
    if not whole or (np.diff([-1, *stops, num_rounds + 1]) < 1).any():
        raise ValueError(
            f"stops: expected increasing rounds in [0, {num_rounds}], got {(*given,)}"
        )
    return tuple(map(int, stops))


def evenly(num_rounds: int, parts: int = 20) -> tuple[int, ...]:
    """Stops of a training that may be interrupted: so many at most, the last its end."""
    every = -(-num_rounds // parts)
    return (*range(every, num_rounds, every), num_rounds)


def measure(
    federation: Federation,
    trainings: Training,
    run: rounds.Run,
    evaluate: Evaluate,
    room: int = 0,
) -> PyTree:
    """Evaluates runs as `train` does at its stops.

    Args:
      federation: of the trainings.
      trainings: leaves `[trainings, ...]`.
      run: of each, leaves `[trainings, ...]`, e.g. `Trained.run`.
      evaluate: `(run, training, tables) -> result` of one training.
      room: as in `train`.

    Returns:
      Results, leaves `[trainings, ...]`.
    """
    job = _Job(federation, trainings, evaluate, None, room)
    return job.evaluated(job.dealt(run))


def final(federation: Federation, training: Training) -> Params:
    """Model of ONE training after all rounds; traceable."""
    method, tables = federation
    run = programs.begin(method, None, training, tables)
    stop = tables.schedule.num_rounds
    return programs.advance(method, training, tables, run, 0, stop).server.params


class _Job:
    """Trainings dealt to the devices, and the programs that work on them."""

    def __init__(self, federation: Federation, trainings, evaluate, record_dtype, room):
        checks.check(*federation, trainings)
        self._count = len(trainings.seed)
        over = _mesh(max(self._count, room))
        at_once = side_by_side.fitting(over, *federation, trainings, record_dtype)
        self._dealing = parallel.dealing(self._count, over, at_once=at_once, room=room)
        item = self._dealing.item
        self._over, self._evaluate = over, evaluate
        self._items = jax.tree.map(lambda leaf: np.asarray(leaf)[item], trainings)
        self._tables = parallel.place(federation.tables, over)
        self._how = {"method": federation.method, "over": over}
        self._how["at_once"] = self._dealing.at_once
        self._record_dtype = record_dtype
        self._warm = False

    def begin(self):
        return programs.begin_all(
            *self._given, record_dtype=self._record_dtype, **self._how
        )

    def advance(self, run, begun, stop):
        """The run at the next stop, and the seconds that it took."""
        if not self._warm:  # compiles, and does no round
            run = programs.advance_all(
                *self._given, run, np.int32(begun), np.int32(0), **self._how
            )
            self._warm = True
        jax.block_until_ready(run)
        clock = time.perf_counter()
        run = programs.advance_all(
            *self._given, run, np.int32(begun), np.int32(stop), **self._how
        )
        jax.block_until_ready(run)
        return run, time.perf_counter() - clock

    def evaluated(self, run):
        """Leaves `[trainings, ...]` on the host."""
        if self._evaluate is None:
            return None
        return self._fetched(programs.evaluate_all(*self._given, run, **self._looking))

    def state(self, run, kept, num_stops):
        """What there is to keep, whatever the number of devices."""
        kept = kept + kept[-1:] * (num_stops - len(kept))
        return self._fetched(run), jax.tree.map(lambda *each: np.stack(each), *kept)

    def like(self, num_stops):
        """Structure, shapes and dtypes of `state`."""
        begin = functools.partial(
            programs.begin_all, record_dtype=self._record_dtype, **self._how
        )
        run = jax.eval_shape(begin, *self._given)
        found = None
        if self._evaluate is not None:
            look = functools.partial(programs.evaluate_all, **self._looking)
            found = jax.eval_shape(look, *self._given, run)

        def own(leaf, *lead):
            shape = (*lead, self._count, *leaf.shape[1:])
            return jax.ShapeDtypeStruct(shape, leaf.dtype)

        return jax.tree.map(own, run), jax.tree.map(lambda x: own(x, num_stops), found)

    def dealt(self, run):
        """A kept run on the devices."""
        mine = jax.tree.map(lambda leaf: leaf[self._dealing.item], run)
        return parallel.place(mine, self._over, 0)

    @property
    def _given(self):
        return self._dealing.groups, self._items, self._tables

    @property
    def _looking(self):
        how = {name: self._how[name] for name in ("over", "at_once")}
        return {"evaluate": self._evaluate, **how}

    def _fetched(self, tree):
        place = self._dealing.place
        first = np.array_equal(place, np.arange(self._count))
        own = slice(self._count) if first else place
        return jax.tree.map(lambda leaf: leaf[own], parallel.fetch(tree))


def _mesh(items: int):
    """Devices for so many, two at least (`parallel.use_cpu_cores`): each has the tables."""
    if jax.process_count() > 1:
        return parallel.mesh()
    return parallel.mesh(max(2, items))


def _unstack(kept, count):
    return [jax.tree.map(lambda leaf, i=i: leaf[i], kept) for i in range(count)]
