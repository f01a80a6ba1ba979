"""Cost of per-example clipping beside plain SGD (Table III of Wei et al., 2021).

    python -m experiments.benchmarks.clipping [--check] [--models=mnist] [--json=FILE]

Trains one round of a federation on one device in every way, client after client or, on an
accelerator, all side by side, one way after another and again, and gives milliseconds per local iteration and client. Plain SGD is the faster of
two: gradients of the batch mean by reverse differentiation through patches, and by the
per-layer way that per-example gradients take. Beside ours stand
`optax.contrib.differentially_private_aggregate` (total norm) on `vmap(grad)`, and Opacus
(the extra `bench`). Whatever is timed is first compared with another way to compute it.

A local step is what is measured here, not the engine: so the ways are put into
`fljax.rounds` as they are, one compiled round each, whose calls can be interleaved.
"""

import dataclasses
import importlib.util
import math
import time
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.benchmarks import clipping_ways, harness
from experiments.benchmarks.clipping_ways import CLIP, SIGMA, Problem
from fljax import accelerators, local, parallel, rounds
from fljax import schedule as schedule_lib
from fljax.driver.config import ConfigError
from fljax.driver.option import option
from fljax.types import EncodeFn, GradientFn

_RATE = 1e-3  # at which noise leaves the model finite
_TOLERANCE = 1e-3  # of the largest change of a parameter, which is float32 itself
_SAME = {"sgd, by layers": "sgd, autodiff", "clip, vmap(grad)": "clip"}
_SGD = ("sgd, autodiff", "sgd, by layers")
_NOISY = ("sgd, autodiff, one draw", "sgd, by layers, one draw")
_ONCE, _CLIPPED, _OPACUS = "clip, one draw", "clip", "opacus"
_COLUMNS = {
    "model": ("model", ""), "way": ("way", ""), "clients": ("clients", ""),
    "compile_seconds": ("compile s", ".1f"),
    "milliseconds": ("ms per iteration", ".4f"), "iqr_milliseconds": ("iqr", ".4f"),
    "ratio": ("x sgd", ".3f"), "difference": ("difference", ".0e"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.Flags):
    """No prefix."""

    models: tuple[Literal["mnist", "cifar10", "table"], ...] = option(
        ("mnist", "cifar10", "table"), "networks: B = 5, 4 and 3"
    )
    clients: int = option(100, "clients of the round", min=1)
    steps: int = option(10, "local iterations of each", min=1)
    repeats: int = option(7, "interleaved timings of every way", min=1)
    opacus: bool = option(True, "also time Opacus, which must be installed")
    round: bool = option(True, "also time a round of MNIST, L = 100, on all devices")


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Checks and times every way.

    Returns:
      One row per network and way, and the targets.

    Raises:
      ArithmeticError: if two ways do not compute the same.
      ConfigError: Opacus is asked for and not installed.
    """
    if config.opacus and importlib.util.find_spec("opacus") is None:
        raise ConfigError(
            "--opacus: is not installed (pip install -e '.[bench]'); --noopacus does "
            "without it"
        )
    rows, targets = [], []
    for name in config.models:
        problem = clipping_ways.build(name, config.clients, config.steps)
        found = _ours(problem, config)
        if config.opacus:
            found.append(_opacus(problem, config))
        fastest = min(r["milliseconds"] for r in found if r["way"] in _SGD)
        for row in found:
            row["ratio"] = row["milliseconds"] / fastest
        rows += found
        targets += _targets(name, {r["way"]: r["milliseconds"] for r in found}, fastest)
    if config.round:
        seconds = _round_seconds(config.clients)
        targets.append(
            harness.Target("mnist: seconds of a round, L = 100", seconds, 20.0, False)
        )
    return rows, targets


def one_round(
    problem: Problem, gradient: GradientFn | None, clients: int, steps: int, lanes=1,
    encode: EncodeFn | None = None,
):  # fmt: skip
    """The compiled round and its arguments; `lanes` as many as devices on a CPU."""
    over = parallel.mesh(lanes)
    if accelerators.used():
        lanes = clients
    schedule = schedule_lib.build(
        [steps * problem.batch_size] * clients,
        num_rounds=1,
        batch_size=problem.batch_size,
        lanes=lanes,
        shuffle=False,
        record_rounds=[],
        record_clients=[],
    )
    update = local.sgd(
        problem.loss_fn, optax.sgd(_RATE), gradient=gradient, encode=encode
    )
    server = optax.sgd(1.0)

    def advance(key, run, rows, schedule):
        run = rounds.advance(
            key, run, rows, schedule, 1, local=update, server_optimiser=server
        )
        return run.server.params

    begin = jax.jit(lambda p, s: rounds.start(p, s, server))(problem.params, schedule)
    data = parallel.place((jax.random.key(1), begin, problem.rows), over)
    args = (*data, parallel.place_lanes(schedule, over))
    return harness.prepare(jax.jit(advance), *args), args


def _ours(problem: Problem, config: Config) -> list[harness.Row]:
    silent = clipping_ways.ways(problem, 0.0)
    sizes = config.clients, config.steps
    change: dict[str, Any] = {}
    for way in {*_SAME, *_SAME.values()}:
        program, args = one_round(problem, silent[way], *sizes)
        change[way] = jax.tree.map(jnp.subtract, program.call(*args), problem.params)
    differences = {
        way: harness.largest_difference(change[way], change[same])
        for way, same in _SAME.items()
    }
    for way, difference in differences.items():
        harness.check_equal(f"{problem.name}, {way}", difference, _TOLERANCE)
    programs = {
        way: one_round(problem, gradient, *sizes)
        for way, gradient in clipping_ways.ways(problem).items()
    }
    seconds = interleaved(programs, config.repeats)
    return [
        _row(
            problem, config, way, seconds[way],
            compile_seconds=programs[way][0].compile_seconds,
            difference=differences.get(way),
        )
        for way in programs
    ]  # fmt: skip


def interleaved(programs, repeats: int) -> dict[str, list[float]]:
    """Seconds of every call; whatever slows the machine slows all ways alike."""
    seconds: dict[str, list[float]] = {way: [] for way in programs}
    for repeat in range(repeats + 1):
        for way, (program, args) in programs.items():
            begin = time.perf_counter()
            jax.block_until_ready(program.call(*args))
            if repeat:
                seconds[way].append(time.perf_counter() - begin)
    return seconds


def _opacus(problem: Problem, config: Config) -> harness.Row:
    """Opacus on one client after another, with one and with two threads."""
    from experiments.benchmarks import opacus_baseline  # only where it is installed

    kernels = [np.asarray(leaf) for leaf in clipping_ways.kernels(problem)]
    x, y = clipping_ways.batches(problem, config.steps)
    options = {"clip": CLIP, "learning_rate": _RATE}
    ours, args = one_round(
        problem, clipping_ways.ways(problem, 0.0)["clip"], 1, config.steps
    )
    trained = clipping_ways.kernels(problem, ours.call(*args))
    theirs = opacus_baseline.train(
        kernels, x, y.astype(np.int64), noise_scale=0.0, threads=1, **options
    )
    difference = harness.largest_difference(
        [new - old for new, old in zip(theirs, kernels, strict=True)],
        [np.asarray(new) - old for new, old in zip(trained, kernels, strict=True)],
    )
    harness.check_equal(f"{problem.name}, opacus", difference, _TOLERANCE)
    seconds = min(
        (
            [
                _elapsed(
                    opacus_baseline.train, kernels, x, y.astype(np.int64),
                    noise_scale=SIGMA, threads=threads, **options,
                )
                for _ in range(config.repeats)
            ]
            for threads in (1, 2)
        ),
        key=np.median,
    )  # fmt: skip
    row = _row(problem, config, _OPACUS, seconds, difference=difference)
    for name in ("milliseconds", "iqr_milliseconds"):  # of one client, not of all
        row[name] *= config.clients
    return row


def _elapsed(fun, *args, **options) -> float:
    begin = time.perf_counter()
    fun(*args, **options)
    return time.perf_counter() - begin


def _row(problem: Problem, config: Config, way: str, seconds, **more) -> harness.Row:
    per_step = 1e3 / (config.clients * config.steps)
    low, high = np.percentile(seconds, [25, 75])
    return {
        "benchmark": "clipping",
        **dict.fromkeys(_COLUMNS),
        "model": problem.name,
        "way": way,
        "clients": config.clients,
        "steps": config.steps,
        "batch_size": problem.batch_size,
        "repeats": config.repeats,
        "milliseconds": per_step * float(np.median(seconds)),
        "iqr_milliseconds": per_step * float(high - low),
        **more,
    }


def _targets(name: str, spent: dict[str, float], sgd: float) -> list[harness.Target]:
    once, noisy = spent[_ONCE], min(spent[way] for way in _NOISY)
    limits = [("clip only, times SGD", spent[_CLIPPED] / sgd, 1.2)]
    if name != "table":
        limits = [
            ("clip and one draw, times SGD", once / sgd, 1.45),
            ("clip only, times SGD", spent[_CLIPPED] / sgd, 1.05),
        ]
    limits.append(("clip and one draw, times SGD and one draw", once / noisy, 1.15))
    found = [harness.Target(f"{name}: {what}", v, b, False) for what, v, b in limits]
    if _OPACUS in spent:
        faster = spent[_OPACUS] / once
        found.append(harness.Target(f"{name}: throughput, times Opacus", faster, 2.0))
    return found


def _round_seconds(clients: int) -> float:
    """One round of MNIST with Fed-CDP on all devices, L = 100."""
    problem = clipping_ways.build("mnist", clients, 100)
    gradient = clipping_ways.ways(problem)[_ONCE]
    lanes = math.gcd(clients, jax.device_count())
    program, args = one_round(problem, gradient, clients, 100, lanes)
    return harness.measure(program, *args, repeats=1, warm_ups=0).median


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
