"""How many trainings an accelerator works on under `vmap`, so that they fit its memory."""

import functools
from collections.abc import Iterator

import jax
import numpy as np
from jax.extend.core import Jaxpr, JaxprEqn, Literal, Var
from jax.sharding import Mesh

from fljax.federation import programs
from fljax.federation.method import Method
from fljax.federation.tables import Tables, Training
from fljax.types import PyTree

SIDE_BY_SIDE = 16  # trainings at most


def fitting(
    over: Mesh,
    method: Method,
    tables: Tables,
    trainings: Training,
    record_dtype: str | None,
) -> int:
    """How many fit in half of a device's memory; one on a CPU, which gains nothing.

    Args:
      over: devices on which they are trained.
      method: of the trainings.
      tables: that they read, whole on each device.
      trainings: leaves `[trainings, ...]`.
      record_dtype: of the messages that are kept.
    """
    device = over.devices.flat[0]
    if device.platform == "cpu":
        return 1
    memory = (device.memory_stats() or {}).get("bytes_limit")
    if memory is None:
        return SIDE_BY_SIDE
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], trainings)
    start = functools.partial(programs.begin, method, record_dtype)
    run = jax.eval_shape(start, first, tables)
    rounds = functools.partial(programs.advance, method)
    traced = jax.make_jaxpr(rounds)(first, tables, run, 0, tables.schedule.num_rounds)
    mine = -(-len(trainings.seed) // over.size)
    free = memory // 2 - _size(tables) - mine * _size(run)
    return min(max(free // max(peak(traced.jaxpr), 1), 1), SIDE_BY_SIDE)


def peak(program: Jaxpr) -> int:
    """Bytes that a program has beside its inputs, at most, if nothing of it is fused."""
    last: dict[Var, int] = {}  # equation after which a value is not needed
    for number, equation in enumerate(program.eqns):
        last |= dict.fromkeys(_values(equation.invars), number)
    last |= dict.fromkeys(_values(program.outvars), len(program.eqns))
    alive = most = 0
    made: set[Var] = set()
    for number, equation in enumerate(program.eqns):
        new = {v for v in equation.outvars if v in last}
        inner = max(map(peak, _inner(equation)), default=0)
        most = max(most, alive + max(inner, sum(map(_bytes, equation.outvars))))
        made |= new
        done = {v for v in _values(equation.invars) if last[v] == number} & made
        alive += sum(map(_bytes, new)) - sum(map(_bytes, done))
    return most


def _values(variables) -> list[Var]:
    return [v for v in variables if not isinstance(v, Literal)]


def _inner(equation: JaxprEqn) -> Iterator[Jaxpr]:
    """The programs of a loop, a call or a branch."""
    for each in jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns")
    ):
        if hasattr(each, "eqns"):
            yield getattr(each, "jaxpr", each)


def _bytes(variable: Var) -> int:
    return _size(variable.aval)


def _size(tree: PyTree) -> int:
    """Bytes of all leaves."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
