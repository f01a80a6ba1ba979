"""Trains: items dealt to devices, chunk after chunk, each program compiled once."""

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from fljax import parallel, precision, rounds
from fljax.federation.method import Method, Parts
from fljax.federation.side_by_side import fitting
from fljax.federation.tables import Tables, Training, of
from fljax.types import Key, Params, PyTree

_INIT, _TRAIN = range(2)  # streams of a training


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
      seconds: that the rounds took, compiling excluded.
    """

    run: rounds.Run
    stops: tuple[int, ...]
    evaluations: PyTree
    seconds: float

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
    """
    job = _Job(federation, trainings, evaluate, record_dtype, room)
    stops = (federation.tables.schedule.num_rounds,) if stops is None else (*stops,)
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
    return Trained(whole[0], stops, whole[1], seconds)


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
    """Evaluates runs, leaves `[trainings, ...]`, as `train` does at its stops."""
    job = _Job(federation, trainings, evaluate, None, room)
    return job.evaluated(job.dealt(run))


def final(federation: Federation, training: Training) -> Params:
    """Model of ONE training after all rounds; traceable."""
    method, tables = federation
    run = _start(method, None, training, tables)
    stop = tables.schedule.num_rounds
    return _advanced(method, training, tables, run, 0, stop).server.params


class _Job:
    """Trainings dealt to the devices, and the programs that work on them."""

    def __init__(self, federation, trainings, evaluate, record_dtype, room):
        over = parallel.mesh()
        self._count = len(trainings.seed)
        first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], trainings)
        start = functools.partial(_start, federation.method, record_dtype)
        shapes = functools.partial(jax.eval_shape, start, first, federation.tables)
        lanes = federation.tables.schedule.num_lanes
        at_once = fitting(over.devices.flat[0], shapes, lanes)
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
        return _begin(*self._given, record_dtype=self._record_dtype, **self._how)

    def advance(self, run, begun, stop):
        """The run at the next stop, and the seconds that it took."""
        if not self._warm:  # compiles, and does no round
            run = _advance(*self._given, run, np.int32(begun), np.int32(0), **self._how)
            self._warm = True
        jax.block_until_ready(run)
        clock = time.perf_counter()
        run = _advance(*self._given, run, np.int32(begun), np.int32(stop), **self._how)
        jax.block_until_ready(run)
        return run, time.perf_counter() - clock

    def evaluated(self, run):
        """Leaves `[trainings, ...]` on the host."""
        if self._evaluate is None:
            return None
        return self._fetched(_evaluate(*self._given, run, **self._looking))

    def state(self, run, kept, num_stops):
        """What there is to keep, whatever the number of devices."""
        kept = kept + kept[-1:] * (num_stops - len(kept))
        return self._fetched(run), jax.tree.map(lambda *each: np.stack(each), *kept)

    def like(self, num_stops):
        """Structure, shapes and dtypes of `state`."""
        begin = functools.partial(_begin, record_dtype=self._record_dtype, **self._how)
        run = jax.eval_shape(begin, *self._given)
        found = None
        if self._evaluate is not None:
            look = functools.partial(_evaluate, **self._looking)
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


def _unstack(kept, count):
    return [jax.tree.map(lambda leaf, i=i: leaf[i], kept) for i in range(count)]


_WHERE = ("over", "at_once")


@functools.partial(jax.jit, static_argnames=("method", "record_dtype", *_WHERE))
@precision.by_default
def _begin(groups, items, tables, *, method, over, at_once, record_dtype):
    start = functools.partial(_start, method, record_dtype)
    return _spread(start, groups, items, tables, over, at_once)


@functools.partial(jax.jit, static_argnames=("method", *_WHERE), donate_argnums=3)
@precision.by_default
def _advance(groups, items, tables, run, begun, stop, *, method, over, at_once):
    def advance(training, shared, run):
        return _advanced(method, training, shared[0], run, *shared[1:])

    shared = tables, begun, stop
    return _spread(advance, groups, items, shared, over, at_once, run)


@functools.partial(jax.jit, static_argnames=("evaluate", *_WHERE))
@precision.by_default
def _evaluate(groups, items, tables, run, *, evaluate, over, at_once):
    def look(item, tables):
        training, run = item
        return evaluate(run, training, tables)

    return _spread(look, groups, (items, run), tables, over, at_once)


def _spread(fun, groups, items, shared, over, at_once, state=None):
    dealt = parallel.Dealing(np.empty(0), np.empty(0), groups, at_once)
    return parallel.spread(fun, dealt, items, shared, over, state)


def _start(method, record_dtype, training, tables) -> rounds.Run:
    parts = _parts(method, training, tables)
    _, schedule = of(tables, training)
    server = parts.server_optimiser
    return rounds.start(parts.params(), schedule, server, record_dtype)


def _advanced(method, training, tables, run, begun, stop) -> rounds.Run:
    parts, (rows, schedule) = _parts(method, training, tables), of(tables, training)
    # The round is that of all trainings, so that under `vmap` the loop stays one loop.
    server = run.server._replace(round=jnp.asarray(begun, jnp.int32))
    return rounds.advance(
        _key(training, _TRAIN),
        run._replace(server=server),
        rows,
        schedule,
        stop,
        local=parts.local,
        server_optimiser=parts.server_optimiser,
        receive=parts.receive,
    )


def _parts(method, training, tables) -> Parts:
    return method(_key(training, _INIT), training.numbers, tables.pool)


def _key(training: Training, stream: int) -> Key:
    key = jax.random.fold_in(jax.random.key(training.seed), stream)
    return key if training.trial is None else jax.random.fold_in(key, training.trial)
