"""What devices of one CPU cost each other: trainings dealt out, or lanes of one.

    python -m experiments.benchmarks.exchange [--check] [--json=FILE]

`a training each` is what every program does: devices exchange nothing until all are done.
`lanes of one` puts the clients of one training on different devices (`place_lanes`); in
each round the compiler then lets them exchange what the server adds up and what is
recorded. The last rows are one sum over the devices, of so many numbers, alone. The
fastest of the calls counts: what else a machine does can only add to it.
"""

import re

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import PartitionSpec

from experiments.benchmarks import federations, harness, problems, trainings
from experiments.benchmarks.problems import Flags, Problem
from fljax import federation, losses, parallel
from fljax import local as local_lib
from fljax import rounds as engine

_SUMS = (1, 1281, 70_401)  # numbers: one, and the models of Medical and of Income-L
_EXCHANGES = re.compile(r" all-(?:reduce|gather|to-all)\(| collective-permute\(")
_COLUMNS = {
    "shape": ("shape", ""), "way": ("on several devices", ""),
    "devices": ("devices", ""), "trainings": ("trainings", ""),
    "exchanges": ("exchanges a round", ""), "numbers": ("numbers", ",d"),
    "milliseconds": ("ms a round", ".4g"), "speedup": ("times one device", ".2f"),
}  # fmt: skip


def run(config: Flags) -> tuple[list[harness.Row], list[harness.Target]]:
    """Times every way; those of one shape in turns.

    Returns:
      One row per shape and way, and one per sum; the targets.
    """
    rows, targets = [], []
    every = len(jax.devices())
    for name in config.shapes:
        found = _shape(name, config, every)
        rows += found
        best = f"{name}: a training each, times one device"
        targets.append(harness.Target(best, found[1]["speedup"], 0.6 * every))
    return rows + [_sum(count, every, config) for count in _SUMS], targets


def _shape(name: federations.Name, config: Flags, every: int) -> list[harness.Row]:
    problem, lanes = problems.build(name, config), problems.LANES[name]
    whole = problem.federation(lanes)

    def dealt(count: int):
        of_seeds = trainings.seeds(count, problem.params)
        federation.train(whole, of_seeds)
        return lambda: federation.train(whole, of_seeds).seconds

    placed, exchanges = _lanes(problem, lanes, every)
    ways = {
        ("one device", 1, 1, 0): dealt(1),
        ("a training each", every, every, 0): dealt(every),
        ("lanes of one", every, 1, exchanges): placed,
    }
    spent: dict = {way: [] for way in ways}
    for _ in range(config.repeats):
        for way, call in ways.items():
            spent[way].append(call())
    each = {
        way: 1e3 * min(seconds) / (way[2] * problem.num_rounds)
        for way, seconds in spent.items()
    }
    alone = next(iter(each.values()))
    return [
        _row(name, *way, milliseconds=value, speedup=alone / value)
        for way, value in each.items()
    ]


def _lanes(problem: Problem, lanes: int, every: int):
    """A training whose lanes are on different devices, and its exchanges in a round."""
    schedule = problem.schedule(lanes)
    loss_fn = losses.example_loss(problem.model.apply, losses.squared)
    update = local_lib.sgd(loss_fn, optax.sgd(federations.LEARNING_RATE))
    server, over = optax.sgd(1.0), parallel.mesh(every)
    begun = jax.jit(lambda p, s: engine.start(p, s, server))(problem.params, schedule)
    args = parallel.place((jax.random.key(0), begun, problem.rows), over)
    args = (*args, parallel.place_lanes(schedule, over))

    def advance(key, run, rows, schedule):
        return engine.advance(
            key, run, rows, schedule, problem.num_rounds,
            local=update, server_optimiser=server,
        )  # fmt: skip

    compiled = jax.jit(advance).lower(*args).compile()
    program = harness.Program(compiled)
    count = len(_EXCHANGES.findall(compiled.as_text()))
    return lambda: harness.measure(program, *args, repeats=1).best, count


def _sum(count: int, every: int, config: Flags) -> harness.Row:
    over, times = parallel.mesh(every), 10 if config.smoke else 1000

    def sums(x):
        def one(_, x):
            return lax.psum(x, over.axis_names[0]) / every

        return lax.fori_loop(0, times, one, x)

    own = PartitionSpec()
    spread = jax.shard_map(
        sums, mesh=over, in_specs=own, out_specs=own, check_vma=False
    )
    ones = parallel.place(jnp.ones(count), over)
    timing = harness.measure(jax.jit(spread), ones, repeats=config.repeats)
    return _row(
        "sum", "over devices", every, None, 1, numbers=count,
        milliseconds=1e3 * timing.best / times,
    )  # fmt: skip


def _row(shape, way, devices, trainings, exchanges, **more) -> harness.Row:
    return {
        "benchmark": "exchange",
        **dict.fromkeys(_COLUMNS),
        "shape": shape,
        "way": way,
        "devices": devices,
        "trainings": trainings,
        "exchanges": exchanges,
        **more,
    }


if __name__ == "__main__":
    harness.main(run, Flags, _COLUMNS)
