"""Federated rounds per second beside other federated learning simulators.

    python -m experiments.benchmarks.engines [--shapes=medical,income_l] [--json=FILE]

FedAvg with one local epoch of plain SGD, batches of 32, one hidden layer of 128 units,
all clients in every round, as in `rounds`; each engine with its own FedAvg, as its
documentation has it. Before anything is timed, every engine trains a few rounds from the
same model on rows in their order, as many of each client as fill its batches, and must
agree with ours. What compiles is compiled before it is timed: the first call counts
nowhere. All that a later call does counts: drawing batches, placing rows, making and
fetching models, too. Two engines differ in their batches: FedJAX fills up a last one that is smaller
with rows of a next epoch, and pfl takes rows in their order; the others draw one. Flower is
left out where a thousand clients train: it adds their models, not their changes, in float32,
one after the other, and misses ours by more than the check allows.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import operator
from collections.abc import Callable, Iterator
from typing import Literal

import jax
import numpy as np

from experiments.benchmarks import federations, harness, problems, trainings
from experiments.benchmarks.problems import Problem
from fljax import federation
from fljax.driver.config import ConfigError
from fljax.driver.option import option

Peer = Literal["fedjax", "pfl", "flwr", "torch"]
_CHECK_ROUNDS = 2
_RATIOS = {("medical", "fedjax"): 15.0, ("income_l", "fedjax"): 15.0}
_TOLERANCE = 1e-4  # of the largest change of a parameter; all sides are float32
_LEFT_OUT = {("thousand", "flwr")}
_COLUMNS = {
    "shape": ("shape", ""), "implementation": ("by", ""), "version": ("version", ""), "rounds": ("rounds", ""),
    "first_seconds": ("first s", ".3f"), "median": ("median s", ".4f"),
    "iqr": ("iqr s", ".4f"), "rounds_per_second": ("rounds/s", ".4g"),
    "ratio": ("times slower than ours", ".3g"), "difference": ("difference", ".0e"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.SmallFlags):
    """No prefix."""

    shapes: tuple[federations.Name, ...] = option(
        ("medical", "income_l", "thousand"), "federations to run"
    )
    peers: tuple[Peer, ...] = option(
        ("fedjax", "pfl", "flwr", "torch"), "engines beside ours"
    )
    repeats: int = option(5, "timed calls", min=1)


Train = Callable[[int], dict[str, np.ndarray]]
# (rounds) -> the model after them


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Checks and times every engine on every shape.

    Returns:
      One row per engine and shape, and the targets.

    Raises:
      ArithmeticError: if an engine does not compute what ours does.
      ConfigError: if an engine is not installed.
    """
    rows, targets = [], []
    for name in config.shapes:
        problem = problems.build(name, config)
        checked = _of_whole_batches(problem)
        model = _trained(checked)
        ours = _ours(problem, config)
        rows.append(ours)
        for peer in config.peers:
            if (name, peer) in _LEFT_OUT:
                continue
            with _trainer(peer, checked, shuffle=False) as train:
                difference = _difference(problem, train(_CHECK_ROUNDS), model)
            harness.check_equal(f"{name}, {peer}", difference, _TOLERANCE)
            with _trainer(peer, problem, shuffle=True) as train:
                timing = harness.measure(
                    train, problem.num_rounds, repeats=config.repeats
                )
            ratio = timing.median / ours["median"]
            rows.append(_row(problem, peer, timing, ratio, difference))
            if (wanted := _RATIOS.get((name, peer))) is not None:
                targets.append(harness.Target(f"{name}: times {peer}", ratio, wanted))
    return rows, targets


def _ours(problem: Problem, config: Config) -> harness.Row:
    """With as many lanes as are usual for the shape, or two, whichever is faster."""
    of_seed = trainings.seeds(1, problem.params)
    timings = [
        trainings.measure_whole(
            functools.partial(problem.federation, lanes),
            of_seed,
            repeats=config.repeats,
        )
        for lanes in dict.fromkeys(problems.lanes(problem.name))
    ]
    return _row(problem, "fljax", min(timings, key=lambda timing: timing.median))


def _of_whole_batches(problem: Problem) -> Problem:
    """The same without the rows of a client's last batch where it is smaller."""
    sizes = tuple(n - n % federations.BATCH_SIZE for n in problem.shape.sizes)
    parts = federations.split(problem.rows, problem.shape.sizes)
    kept = [
        jax.tree.map(operator.itemgetter(slice(n)), p) for p, n in zip(parts, sizes)
    ]
    rows = jax.tree.map(lambda *leaves: np.concatenate(leaves), *kept)
    return problem._replace(shape=problem.shape._replace(sizes=sizes), rows=rows)


def _trained(checked: Problem) -> dict[str, np.ndarray]:
    """Our model after the rounds of the check."""
    lanes = problems.lanes(checked.name)[0]
    whole = checked.federation(lanes, num_rounds=_CHECK_ROUNDS, shuffle=False)
    run = federation.train(whole, trainings.seeds(1, checked.params)).run
    return federations.to_arrays(jax.tree.map(lambda leaf: leaf[0], run.server.params))


@contextlib.contextmanager
def _trainer(peer: Peer, problem: Problem, *, shuffle: bool) -> Iterator[Train]:
    try:
        baseline = importlib.import_module(f"experiments.benchmarks.{peer}_baseline")
    except ModuleNotFoundError as error:
        expected = f"expected the package {error.name} to be installed (BUILD.md)"
        raise ConfigError(f"--peers={peer}: {expected}") from error
    train = baseline.trainer(
        list(federations.dense(problem.rows, problem.shape)),
        federations.to_arrays(problem.params),
        learning_rate=federations.LEARNING_RATE,
        batch_size=federations.BATCH_SIZE,
        shuffle=shuffle,
    )
    with contextlib.ExitStack() as stack:
        if hasattr(train, "close"):
            stack.callback(train.close)
        yield train


def _difference(problem: Problem, found, ours) -> float:
    """Of changes, over the largest."""
    before = federations.to_arrays(problem.params)
    changes = (jax.tree.map(np.subtract, p, before) for p in (found, ours))
    return harness.largest_difference(*changes)


def _row(
    problem: Problem,
    implementation: str,
    timing: harness.Timing,
    ratio: float | None = None,
    difference: float | None = None,
) -> harness.Row:
    return {
        "benchmark": "engines",
        "shape": problem.name,
        "implementation": implementation,
        "version": importlib.metadata.version(implementation),
        "clients": len(problem.shape.sizes),
        "num_rows": sum(problem.shape.sizes),
        "inputs": problem.shape.num_inputs,
        "rounds": problem.num_rounds,
        **timing._asdict(),
        "rounds_per_second": problem.num_rounds / timing.median,
        "ratio": ratio,
        "difference": difference,
    }


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
