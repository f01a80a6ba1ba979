"""Federated rounds per second, next to the written PyTorch baseline.

    python -m experiments.benchmarks.rounds [--shapes=medical,income_l] [--json=FILE]

FedAvg with one local epoch of plain SGD, batches of 32, one hidden layer of 128 units,
all clients in every round. Before anything is timed, both sides train a few rounds
from the same model on the same batches and must agree. Ours reads one-hot columns as
positions; the baseline is given the dense matrix, as its users have it. What is timed is
the engine of every program, `federation.train`: one training on one device, and one on
each device at the same time, or, on an accelerator, several side by side, whose rounds
count together.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import numpy as np

from experiments.benchmarks import (
    federations,
    harness,
    problems,
    torch_baseline,
    trainings,
)
from experiments.benchmarks.problems import Problem
from fljax import federation
from fljax.driver.option import option

_CHECK_ROUNDS = {"medical": 3, "income_l": 3, "income_a": 1}
_RATIOS = {"medical": 30.0, "income_l": 12.0}
_OCCUPANCY = 0.95
_TOLERANCE = 1e-4  # of the largest change of a parameter; both sides are float32
_COLUMNS = {
    "shape": ("shape", ""), "implementation": ("by", ""), "lanes": ("lanes", ""),
    "trainings": ("trainings", ""), "devices": ("devices", ""), "threads": ("threads", ""),
    "trace_seconds": ("trace s", ".2f"), "compile_seconds": ("compile s", ".2f"),
    "rounds": ("rounds", ""), "first_seconds": ("first s", ".3f"),
    "median": ("median s", ".4f"), "iqr": ("iqr s", ".4f"),
    "rounds_per_second": ("rounds/s", ".4g"),
    "seconds_per_100_rounds": ("s/100 rounds", ".4g"), "ratio": ("x torch", ".3g"),
    "occupancy": ("occupancy", ".1%"), "difference": ("difference", ".0e"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.SmallFlags):
    """No prefix."""

    shapes: tuple[federations.Name, ...] = option(
        federations.PUBLISHED, "federations to run"
    )
    baseline: tuple[federations.Name, ...] = option(
        federations.PUBLISHED, "federations for which the baseline runs too"
    )
    rounds: int | None = option(
        None, "rounds in a timed call; none: 100, 20 and 2 by shape", min=1
    )
    threads: tuple[int, ...] = option(
        (1, 2), "thread counts of torch, of which the faster counts", min=1
    )
    repeats: int = option(5, "timed calls", min=1)


class Trained(NamedTuple):
    """What the baseline computed for the check, and its timings."""

    params: dict[str, np.ndarray]
    rows: list[harness.Row]


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Checks and times every shape.

    Returns:
      One row per way of running a shape, and the targets.

    Raises:
      ArithmeticError: if the two sides do not compute the same.
    """
    rows, targets = [], []
    for name in config.shapes:
        problem = problems.build(name, config, config.rounds)
        reference = _baseline(problem, config) if name in config.baseline else None
        ours = [
            _ours(problem, config, lanes, count, reference)
            for lanes, count in _variants(name, config.smoke)
        ]
        theirs = [] if reference is None else reference.rows
        most = max((row["rounds_per_second"] for row in theirs), default=None)
        for row in [*theirs, *ours] if most is not None else []:
            row["ratio"] = row["rounds_per_second"] / most
        rows += [*theirs, *ours]
        targets += _targets(name, ours)
    return rows, targets


def _variants(name: federations.Name, smoke: bool):
    """Lanes of a training, and trainings at the same time."""
    counts = sorted({1, trainings.together()})
    ways = dict.fromkeys(problems.lanes(name))
    return [(lanes, n) for lanes in ways for n in counts][-1 if smoke else 0 :]


def _ours(
    problem, config: Config, lanes: int | None, count: int, reference
) -> harness.Row:
    difference = None
    if reference is not None:
        checked = _CHECK_ROUNDS[problem.name]
        whole = problem.federation(lanes, num_rounds=checked, shuffle=False)
        run = federation.train(whole, trainings.seeds(1, problem.params)).run
        own = jax.tree.map(lambda leaf: leaf[0], run.server.params)
        before = federations.to_arrays(problem.params)
        difference = harness.largest_difference(
            *(
                jax.tree.map(np.subtract, p, before)
                for p in (federations.to_arrays(own), reference.params)
            )
        )
        told = "" if lanes is None else f", {lanes} lanes"
        harness.check_equal(problem.name + told, difference, _TOLERANCE)
    timing = trainings.measure_whole(
        functools.partial(problem.federation, lanes),
        trainings.seeds(count, problem.params),
        repeats=config.repeats,
    )
    schedule = problem.federation(lanes).tables.schedule
    return _row(
        problem, "fljax", problem.num_rounds, timing, trainings=count,
        lanes=schedule.num_lanes, devices=min(count, jax.device_count()), occupancy=schedule.occupancy,
        difference=difference,
    )  # fmt: skip


def _baseline(problem: Problem, config: Config) -> Trained:
    """The unshuffled rounds of the check, which warm torch up, then the timings."""
    clients = list(federations.dense(problem.rows, problem.shape))
    start = federations.to_arrays(problem.params)

    def train(num_rounds, threads, orders=None):
        return torch_baseline.train_rounds(
            clients, start, learning_rate=federations.LEARNING_RATE,
            batch_size=federations.BATCH_SIZE, num_rounds=num_rounds, orders=orders,
            num_threads=threads,
        )[0]  # fmt: skip

    num_check = _CHECK_ROUNDS[problem.name]
    stored = [[np.arange(size) for size in problem.shape.sizes]] * num_check
    params = train(num_check, config.threads[0], stored)
    # The largest shape takes seconds per round and spends nearly all of it in steps.
    num_rounds = 1 if problem.name == "income_a" else problem.num_rounds
    rows = []
    for threads in config.threads:
        timing = harness.measure(train, num_rounds, threads, repeats=config.repeats)
        rows.append(_row(problem, "torch", num_rounds, timing, threads=threads))
    return Trained(params, rows)


def _row(
    problem: Problem, implementation: str, num_rounds: int, timing, trainings=1, **more
):
    empty = dict.fromkeys(_COLUMNS)
    seconds = timing.median / trainings
    return {
        "benchmark": "rounds",
        **empty,
        "shape": problem.name,
        "implementation": implementation,
        "clients": len(problem.shape.sizes),
        "num_rows": sum(problem.shape.sizes),
        "inputs": problem.shape.num_inputs,
        "rounds": num_rounds,
        "trainings": trainings,
        **timing._asdict(),
        "rounds_per_second": num_rounds / seconds,
        "seconds_per_100_rounds": 100 * seconds / num_rounds,
        **more,
    }


def _targets(name: federations.Name, ours: list[harness.Row]) -> list[harness.Target]:
    if name == "income_a":
        lowest = min(row["occupancy"] for row in ours)
        return [harness.Target("income_a: lane occupancy", lowest, _OCCUPANCY)]
    alone = [row for row in ours if row["trainings"] == 1]  # as the baseline's is
    ratios = [row["ratio"] for row in alone if row["ratio"] is not None]
    best = max(ratios, default=None)
    return [harness.Target(f"{name}: times the baseline", best, _RATIOS[name])]


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
