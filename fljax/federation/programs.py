"""The programs of one training, and those of all: the start, the rounds, a look at a run.

Those of all are compiled once for a method; `parallel` deals trainings to the devices.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from fljax import parallel, precision, rounds
from fljax.federation.method import Parts
from fljax.federation.tables import Training, of
from fljax.types import Key

_INIT, _TRAIN = range(2)  # streams of a training
_WHERE = ("over", "at_once")


def begin(method, record_dtype, training, tables) -> rounds.Run:
    """The run of one training before its first round; traceable."""
    parts = _parts(method, training, tables)
    _, schedule = of(tables, training)
    server = parts.server_optimiser
    return rounds.start(parts.params(), schedule, server, record_dtype, parts.local)


def advance(method, training, tables, run, begun, stop) -> rounds.Run:
    """The run of one training after round `stop - 1`; traceable."""
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


@functools.partial(jax.jit, static_argnames=("method", "record_dtype", *_WHERE))
@precision.by_default
def begin_all(groups, items, tables, *, method, over, at_once, record_dtype):
    """The runs of all trainings before their first round."""
    one = functools.partial(begin, method, record_dtype)
    return _spread(one, groups, items, tables, over, at_once)


@functools.partial(jax.jit, static_argnames=("method", *_WHERE), donate_argnums=3)
@precision.by_default
def advance_all(groups, items, tables, run, begun, stop, *, method, over, at_once):
    """Their runs after round `stop - 1`; those given are used up."""

    def one(training, shared, run):
        return advance(method, training, shared[0], run, *shared[1:])

    shared = tables, begun, stop
    return _spread(one, groups, items, shared, over, at_once, run)


@functools.partial(jax.jit, static_argnames=("evaluate", *_WHERE))
@precision.by_default
def evaluate_all(groups, items, tables, run, *, evaluate, over, at_once):
    """What `evaluate` says of each."""

    def one(item, tables):
        training, run = item
        return evaluate(run, training, tables)

    return _spread(one, groups, (items, run), tables, over, at_once)


def _spread(fun, groups, items, shared, over, at_once, state=None):
    dealt = parallel.Dealing(np.empty(0), np.empty(0), groups, at_once)
    return parallel.spread(fun, dealt, items, shared, over, state)


def _parts(method, training, tables) -> Parts:
    drawn = training
    if training.start is not None:
        drawn = training._replace(seed=training.start, trial=None)
    return method(_key(drawn, _INIT), training.numbers, tables.pool)


def _key(training: Training, stream: int) -> Key:
    key = jax.random.fold_in(jax.random.key(training.seed), stream)
    return key if training.trial is None else jax.random.fold_in(key, training.trial)
