"""How the time of a client's round grows with clients, with parameters, with devices.

    python -m experiments.benchmarks.scaling [--parts=clients] [--json=FILE]

FedAvg on generated rows: an MLP with one hidden layer, one full batch of 32 rows of each
client in every round, the last round's messages kept. `clients` and `parameters` run on
one device. `devices` gives every device a training of as many clients (weak scaling); on
a CPU devices share memory and its bandwidth. What is timed is the engine of every
program, `federation.train`, without compiling.

The limit of a client's round is the larger of two times: of its multiplications at the
rate of a large matrix product, and of reading and writing its model at the rate of a
large copy, both measured in the same run on as many devices. `x limit` is how many times
the limit the round takes.
"""

import dataclasses
import resource
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import numpy as np

from experiments.benchmarks import harness, trainings
from fljax import accelerators, federation, models, parallel, schedule
from fljax.driver.option import option
from fljax.federation import Federation
from fljax.types import Features, Rows

Part = Literal["clients", "parameters", "devices"]
_ROWS, _INPUTS, _HIDDEN = 32, 8, 128
_CLIENTS = (10, 100, 1000, 10_000)
_WIDTHS = (100, 1000, 10_000, 100_000, 1_000_000)  # 1e3 to 1e7 parameters
_FLAT_FROM, _FLAT = 100, 0.2
_PASSES = 6  # read by both passes and the update, gradient, update and message written
_COLUMNS = {
    "part": ("part", ""), "clients": ("clients", ""), "parameters": ("parameters", ""),
    "devices": ("devices", ""), "rounds": ("rounds", ""),
    "schedule_seconds": ("schedule s", ".2f"), "trace_seconds": ("trace s", ".2f"),
    "compile_seconds": ("compile s", ".2f"), "median": ("median s", ".3f"),
    "iqr": ("iqr s", ".3f"), "microseconds": ("us/client-round", ".4g"),
    "limit": ("limit us", ".3g"), "times_limit": ("x limit", ".3g"),
    "peak_gigabytes": ("peak GB", ".2f"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.SmallFlags):
    """No prefix."""

    parts: tuple[Part, ...] = option(("clients", "parameters", "devices"), "what grows")
    rounds: int = option(100, "rounds of the largest federation", min=1)
    repeats: int = option(3, "timed calls", min=1)


class Limits(NamedTuple):
    """What the devices can do together.

    Attributes:
      multiplications: floating-point operations per second of a large matrix product.
      bandwidth: bytes per second of a large copy, read and written.
    """

    multiplications: float
    bandwidth: float


class Case(NamedTuple):
    """One federation."""

    part: Part
    clients: int
    hidden: int
    devices: int
    rounds: int


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Times every federation, the smaller ones first: the peak of memory only grows.

    Returns:
      One row per federation, and the targets.
    """
    limits = {}
    rows = []
    for part in config.parts:
        for case in cases(part, config):
            if case.devices not in limits:
                limits[case.devices] = measure_limits(case.devices, config)
            rows.append(_row(case, config, limits[case.devices]))
    return rows, targets(rows)


def cases(part: Part, config: Config) -> list[Case]:
    """The federations of a part."""
    match part:
        case "clients":
            counts = (2, 4) if config.smoke else _CLIENTS
            work = config.rounds * 1000  # client-rounds of the small ones
            return [
                Case(part, count, _HIDDEN, 1, max(config.rounds, work // count))
                for count in counts
            ]
        case "parameters":
            widths = (4, 16) if config.smoke else _WIDTHS
            return [
                Case(part, 16, width, 1, max(2, config.rounds * 100 // width))
                for width in widths
            ]
        case _:
            every = len(jax.devices())
            few = (1,) if config.smoke else (1, 2, 4, 8, 16)
            numbers = [n for n in few if n < every] + [every]
            each = 2 if config.smoke else 1000
            return [Case(part, each * n, _HIDDEN, n, config.rounds) for n in numbers]


def targets(rows: list[harness.Row]) -> list[harness.Target]:
    """A client's round takes as long among many clients as among few."""
    flat = [
        row["microseconds"]
        for row in rows
        if row["part"] == "clients" and row["clients"] >= _FLAT_FROM
    ]
    if len(flat) < 2:
        return []
    mean = sum(flat) / len(flat)
    farthest = max(abs(each / mean - 1) for each in flat)
    name = f"clients, {_FLAT_FROM} and more: farthest from their mean, as a share of it"
    return [harness.Target(name, farthest, _FLAT, at_least=False)]


def measure_limits(num_devices: int, config: Config) -> Limits:
    """What these devices do at their best, all at once."""
    over = parallel.mesh(num_devices)
    large = 1536 if not accelerators.used() else 8192
    size = 64 if config.smoke else large
    square = np.ones((num_devices, size, size), np.float32)
    long = np.ones((num_devices, (1 if config.smoke else 256) * 2**18), np.float32)

    def seconds(fun: Callable, array: np.ndarray) -> float:
        placed = parallel.place(array, over, 0)
        spread = jax.jit(jax.vmap(fun))
        return harness.measure(spread, placed, repeats=config.repeats + 2).best

    product = seconds(lambda a: a @ a, square)
    copy = seconds(lambda a: a + 1, long)
    return Limits(2 * num_devices * size**3 / product, 2 * long.nbytes / copy)


def limit(case: Case, limits: Limits) -> float:
    """Seconds of one client's round at these rates.

    A model that stays in the cache may be read and written faster.
    """
    first, second = _INPUTS * case.hidden, case.hidden
    work = _ROWS * (
        4 * first + 6 * second
    )  # nobody asks for the gradient of the inputs
    traffic = 4 * _PASSES * _parameters(case)
    return max(work / limits.multiplications, traffic / limits.bandwidth)


def _parameters(case: Case) -> int:
    return (_INPUTS + 2) * case.hidden + 1


def _row(case: Case, config: Config, limits: Limits) -> harness.Row:
    each = case.clients // case.devices
    schedule_seconds, plan = _timed(
        lambda: schedule.build(
            [_ROWS] * each,
            num_rounds=case.rounds,
            batch_size=_ROWS,
            lanes=16 if each >= 16 and not accelerators.used() else None,
            record_rounds=[case.rounds - 1],
        )
    )
    model = models.mlp(_INPUTS, hidden=(case.hidden,))
    tables = federation.tables([[_rows(each, config)]], lambda *_: plan)
    timing, _ = trainings.measure(
        Federation(trainings.method(model), tables),
        trainings.seeds(case.devices, jax.jit(model.init)(jax.random.key(config.seed))),
        repeats=config.repeats,
    )
    seconds = timing.median / (case.rounds * case.clients)
    least = limit(case, limits)
    return {
        **case._asdict(),
        **timing._asdict(),
        "parameters": _parameters(case),
        "schedule_seconds": schedule_seconds,
        "microseconds": 1e6 * seconds,
        "limit": 1e6 * least,
        "times_limit": seconds / least,
        "peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def _rows(clients: int, config: Config) -> Rows:
    rng = np.random.default_rng(config.seed)
    count = _ROWS * clients
    x = rng.standard_normal((count, _INPUTS), np.float32)
    return Rows(Features(x, np.zeros((count, 0), np.int32)), x.sum(axis=1))


def _timed(fun: Callable):
    timing = harness.measure(fun, repeats=1, warm_ups=0)
    return timing.median, fun()


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
