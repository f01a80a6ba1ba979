"""Theorem 1 of Diana et al. (AAAI-25): measured error against the bound's rate.

    python -m experiments.theory --flagfile=experiments/flags/theory.theorem1.flags

Sweeps learning rate, batch size, local epochs and number of messages, one at a time, on
a generated least squares client (`experiments.theory.theorem1` says how the assumptions are
met), fits slopes on logarithmic scales, and writes `rows.jsonl`, `manifest.json` and a
figure into `--run_dir`. A slope that is predicted is that of eq. (6) or eq. (18) at the
noise and the eigenvalue that were measured, not the bare power of the parameter.
"""

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np

from experiments.report import figures
from experiments.theory import middleman, slopes, theorem1
from experiments.theory.middleman import Client, Point
from experiments.theory.slopes import Sweep
from experiments.theory.theorem1 import Measured
from fljax.driver import config
from fljax.driver.config import ConfigError
from fljax.driver.option import FolderFlags, option
from fljax.driver.output import Output
from fljax.results import Row


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(FolderFlags):
    """The client, the centre of the sweeps, and their values. No prefix."""

    rows: int = option(128, "rows S_c of the client", min=2)
    params: int = option(6, "parameters d, the intercept included", min=2)
    target_noise: float = option(0.5, "standard deviation of the targets' noise", min=0)
    spread: float = option(1.0, "standard deviation of the sent models", above=0)
    offset: float = option(
        1.0, "distance of their mean from the local optimum, in spreads", min=0
    )
    samplings: tuple[Literal["shuffled", "independent"], ...] = option(
        ("shuffled", "independent"),
        "mini-batches: epochs without replacement, or every step drawn anew",
    )
    learning_rate: float = option(0.02, "eta of the other sweeps", above=0)
    batch_size: int = option(32, "B of the other sweeps", min=1)
    local_epochs: int = option(1, "E of the other sweeps", min=1)
    num_messages: int = option(128, "n_c of the other sweeps", min=1)
    learning_rates: tuple[float, ...] = option(
        (0.005, 0.01, 0.02, 0.05, 0.1, 0.2), "sweep of eta", above=0
    )
    batch_sizes: tuple[int, ...] = option((4, 8, 16, 32, 64), "sweep of B", min=1)
    epochs: tuple[int, ...] = option((1, 2, 4, 8), "sweep of E", min=1)
    messages: tuple[int, ...] = option(
        (16, 32, 64, 128, 256, 512, 1024, 2048), "sweep of n_c", min=1
    )
    probability: float = option(
        0.05, "delta: how often the bound may fail", above=0, below=1
    )
    seeds: tuple[int, ...] = option(tuple(range(10)), "seeds", min=0, max=2**32 - 1)


# Field of `Point` -> flag of its sweep, and what table and figure call it.
_SWEEPS = {
    "learning_rate": ("learning_rates", "eta", "learning rate $\\eta$"),
    "batch_size": ("batch_sizes", "B", "batch size $B$"),
    "local_epochs": ("epochs", "E", "local epochs $E$"),
    "num_messages": ("messages", "n_c", "messages $n_c$"),
}


ERRORS = ()


def main() -> None:
    """Measures what the flags ask for and writes the results."""
    run(config.read(Config))


def run(told: Config) -> None:
    """Runs all sweeps and writes rows, manifest and figure.

    Raises:
      ConfigError: if the values do not fit each other or the theorem.
    """
    _check(told)
    out = Output(told, "theory", "theorem1", config.to_flags(told))
    client = middleman.generate(
        told.seeds,
        num_rows=told.rows,
        num_params=told.params,
        target_noise=told.target_noise,
        spread=told.spread,
        offset=told.offset,
    )
    _check_rate(told, middleman.largest_rate(client))
    measured = {}
    for sampling in told.samplings:
        with out.stage(sampling):
            measured[sampling] = _measure(told, client, sampling)
    sweeps = {
        name: Sweep(
            *_SWEEPS[name][1:],
            _values(told, name),
            {sampling: found[name] for sampling, found in measured.items()},
        )
        for name in _SWEEPS
    }
    rows = [row for name in sweeps for row in _rows(told, name, sweeps[name])]
    out.write(rows, figures.rendered({"theorem1": slopes.figure(sweeps)}))
    out.show(slopes.table(sweeps), *slopes.differences(sweeps))


def _values(told: Config, name: str) -> list[float]:
    return sorted(getattr(told, _SWEEPS[name][0]))


def _check(told: Config) -> None:
    for flag, *_ in _SWEEPS.values():
        swept = getattr(told, flag)
        if len(swept) < 2 or len(set(swept)) < len(swept):
            raise ConfigError(
                f"--{flag}: expected at least 2 different values, got {swept}"
            )
    if not told.seeds or len(set(told.seeds)) < len(told.seeds):
        raise ConfigError(f"--seeds: expected distinct seeds, got {told.seeds}")
    if not told.samplings or len(set(told.samplings)) < len(told.samplings):
        raise ConfigError("--samplings: expected each at most once, and one at least")
    if told.rows <= told.params:
        raise ConfigError(
            f"--rows: full rank needs more than --params={told.params}, got {told.rows}"
        )
    if (most := max(told.batch_size, *told.batch_sizes)) >= told.rows:
        raise ConfigError(
            f"--batch_sizes: a full batch has no noise, expected less than "
            f"--rows={told.rows}, got {most}"
        )
    if (fewest := min(told.num_messages, *told.messages)) <= told.params:
        raise ConfigError(
            f"--messages: Algorithm 2 needs more than --params={told.params}, "
            f"got {fewest}"
        )


def _check_rate(told: Config, limit: float) -> None:
    if (most := max(told.learning_rate, *told.learning_rates)) > limit:
        raise ConfigError(
            f"--learning_rates: Theorem 1 holds up to {limit:.3g} on these rows, "
            f"got {most:g}"
        )


def _measure(told: Config, client: Client, sampling: str) -> dict[str, Measured]:
    """Numbers of every sweep; two trainings, the second one for the messages."""
    base = Point(**{name: getattr(told, name) for name in _SWEEPS})
    swept = {
        name: [dataclasses.replace(base, **{name: v}) for v in _values(told, name)]
        for name in _SWEEPS
    }
    by_messages = swept.pop("num_messages")
    points = list(dict.fromkeys(p for group in swept.values() for p in group))
    how = (sampling, told.seeds, told.spread)
    sent, delta = middleman.messages(client, points, *how)
    every = theorem1.measure(client, points, sampling, sent, delta, told.probability)
    found = {}
    for name, group in swept.items():
        chosen = [points.index(point) for point in group]
        found[name] = Measured(*(numbers[chosen] for numbers in every))
    sent, delta = middleman.messages(client, by_messages[-1:], *how)
    parts = []
    for point in by_messages:
        first = (a[:, :, : point.num_messages] for a in (sent, delta))
        parts.append(
            theorem1.measure(client, [point], sampling, *first, told.probability)
        )
    found["num_messages"] = Measured(*map(np.concatenate, zip(*parts, strict=True)))
    return found


def _rows(told: Config, name: str, sweep: Sweep) -> list[Row]:
    """Every number of a sweep, then the slope of each seed."""
    kept = []

    def keep(attack, sampling, point, seed, metric, value, n):
        labels = ("theory", "generated", "linear", "none", attack, sampling, point)
        kept.append(Row(*labels, seed, 0, metric, float(value), n))

    for sampling, found in sweep.found.items():
        named = {
            ("reconstruct", "optimum_distance"): found.reconstruct,
            ("reconstruct_forward", "optimum_distance"): found.forward,
            ("theorem1", "rate"): found.rate,
            ("theorem1", "bound"): found.bound,
            ("theorem1", "smallest_eigenvalue"): found.eigenvalue,
            ("theorem1", "noise_scale"): found.noise,
        }
        for (attack, metric), numbers in named.items():
            for (at, s), value in np.ndenumerate(numbers):
                swept = sweep.values[at]
                seen = int(swept) if name == "num_messages" else told.num_messages
                point = f"{name}={swept:g}"
                keep(attack, sampling, point, told.seeds[s], metric, value, seen)
            fitted = slopes.slopes(sweep.values, numbers)
            for seed, slope in zip(told.seeds, fitted, strict=True):
                count = len(sweep.values)
                keep(attack, sampling, name, seed, f"{metric}_slope", slope, count)
    return kept


def define(flags: Callable = config.define) -> None:
    """Registers the flags."""
    flags(Config)
