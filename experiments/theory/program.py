"""Theorem 1 of Diana et al. (AAAI-25): measured error against the bound's rate.

    python -m experiments.theory --flagfile=experiments/flags/theory.theorem1.flags

Sweeps learning rate, batch size, local epochs and number of messages, one at a time, on
a generated least squares client (`experiments.theory.theorem1` says how the assumptions are
met), fits slopes on logarithmic scales, and writes `rows.jsonl`, `manifest.json` and a
figure into `--run_dir`. A slope that is predicted is that of eq. (6) or eq. (18) at the
noise and the eigenvalue that were measured, not the bare power of the parameter.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from rich.progress import Progress

from experiments.report import COMMAND, figures
from experiments.theory import mitm_server, slopes, theorem1
from experiments.theory.mitm_server import Client, Point
from experiments.theory.settings import Config, Settings
from experiments.theory.slopes import Sweep
from experiments.theory.theorem1 import Measured
from fljax.driver.config import ConfigError
from fljax.driver.output import Output, Results
from fljax.driver.program import Program, Start
from fljax.driver.stage_cache import StageCache
from fljax.results import Row

# Field of `Point` -> flag of its sweep, and what table and figure call it.
_SWEEPS = {
    "learning_rate": ("learning_rates", "eta", "learning rate $\\eta$"),
    "batch_size": ("batch_sizes", "B", "batch size $B$"),
    "local_epochs": ("epochs", "E", "local epochs $E$"),
    "num_messages": ("messages", "n_c", "messages $n_c$"),
}
_SHOWN = ("optimum_distance", "rate", "bound")  # by messages
_TRAININGS = ("points", "messages")  # of a sampling, each with states of its own


class Prepared(NamedTuple):
    """A client on whose rows the theorem holds."""

    config: Config
    client: Client


def start(settings: Settings) -> Start:
    """Refuses what does not fit together or the theorem."""
    _check(settings.run)
    return Start("theorem1", functools.partial(prepare, settings.run))


def prepare(config: Config) -> Prepared:
    """Draws the client.

    Raises:
      ConfigError: if a learning rate is beyond the theorem.
    """
    client = mitm_server.generate(
        config.seeds,
        num_rows=config.rows,
        num_params=config.params,
        target_noise=config.target_noise,
        spread=config.spread,
        offset=config.offset,
    )
    _check_rate(config, mitm_server.largest_rate(client))
    return Prepared(config, client)


def work(prepared: Prepared, output: Output, bars: Progress) -> Results:
    """Runs all sweeps."""
    config, client = prepared
    measured, cache = {}, output.cache(())
    bar = bars.add_task("samplings", total=len(config.samplings))
    for sampling in config.samplings:
        with output.stage(sampling):
            part = cache.part(sampling)
            measure = functools.partial(_measure, config, client, sampling, part)
            measured[sampling] = part.cached("measured", measure, Measured)
            for states in _TRAININGS:
                part.forget(states)
        bars.advance(bar)
    sweeps = {
        name: Sweep(
            *_SWEEPS[name][1:],
            _values(config, name),
            {sampling: found[name] for sampling, found in measured.items()},
        )
        for name in _SWEEPS
    }
    rows = [row for name in sweeps for row in _rows(config, name, sweeps[name])]
    return Results(
        rows,
        figures.rendered({"theorem1": slopes.figure(sweeps)}),
        tables=[slopes.table(sweeps), *slopes.differences(sweeps)],
    )


def describe(prepared: Prepared) -> Iterator[str]:
    """The size of the sweeps."""
    config = prepared.config
    points = sum(len(_values(config, name)) for name in _SWEEPS)
    yield (
        f"{len(config.seeds)} clients of {config.rows} rows and {config.params} "
        f"parameters, {points} points of {len(config.samplings)} samplings"
    )


def _values(config: Config, name: str) -> list[float]:
    return sorted(getattr(config, _SWEEPS[name][0]))


def _check(config: Config) -> None:
    for flag, *_ in _SWEEPS.values():
        swept = getattr(config, flag)
        if len(swept) < 2 or len(set(swept)) < len(swept):
            raise ConfigError(
                f"--{flag}: expected at least 2 different values, got {swept}"
            )
    if config.rows <= config.params:
        raise ConfigError(
            f"--rows: full rank needs more than --params={config.params}, got {config.rows}"
        )
    if (most := max(config.batch_size, *config.batch_sizes)) >= config.rows:
        raise ConfigError(
            f"--batch_sizes: a full batch has no noise, expected less than "
            f"--rows={config.rows}, got {most}"
        )
    if (fewest := min(config.num_messages, *config.messages)) <= config.params:
        raise ConfigError(
            f"--messages: Algorithm 2 needs more than --params={config.params}, "
            f"got {fewest}"
        )


def _check_rate(config: Config, limit: float) -> None:
    if (most := max(config.learning_rate, *config.learning_rates)) > limit:
        raise ConfigError(
            f"--learning_rates: Theorem 1 holds up to {limit:.3g} on these rows, "
            f"got {most:g}"
        )


def _measure(
    config: Config, client: Client, sampling: str, part: StageCache
) -> dict[str, Measured]:
    """Numbers of every sweep; two trainings, the second one for the messages."""
    base = Point(**{name: getattr(config, name) for name in _SWEEPS})
    swept = {
        name: [dataclasses.replace(base, **{name: v}) for v in _values(config, name)]
        for name in _SWEEPS
    }
    by_messages = swept.pop("num_messages")
    points = list(dict.fromkeys(p for group in swept.values() for p in group))
    how = (sampling, config.seeds, config.spread)
    for_points, for_messages = map(part.states, _TRAININGS)
    sent, delta = mitm_server.messages(client, points, *how, for_points)
    every = theorem1.measure(client, points, sampling, sent, delta, config.probability)
    found = {}
    for name, group in swept.items():
        chosen = [points.index(point) for point in group]
        found[name] = Measured(*(numbers[chosen] for numbers in every))
    sent, delta = mitm_server.messages(client, by_messages[-1:], *how, for_messages)
    parts = []
    for point in by_messages:
        first = (a[:, :, : point.num_messages] for a in (sent, delta))
        parts.append(
            theorem1.measure(client, [point], sampling, *first, config.probability)
        )
    found["num_messages"] = Measured(*map(np.concatenate, zip(*parts, strict=True)))
    return found


def _rows(config: Config, name: str, sweep: Sweep) -> list[Row]:
    """Every number of a sweep, then the slope of each seed."""
    kept = []

    def keep(attack, sampling, point, seed, metric, value, n):
        labels = ("theory", "generated", "linear", "none", attack, sampling, point)
        # The one client is all of them, where the numbers and not their slopes count.
        client = "all" if name == "num_messages" and metric in _SHOWN else 0
        kept.append(Row(*labels, seed, client, metric, float(value), n))

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
                seen = int(swept) if name == "num_messages" else config.num_messages
                point = f"{name}={swept:g}"
                keep(attack, sampling, point, config.seeds[s], metric, value, seen)
            fitted = slopes.slopes(sweep.values, numbers)
            for seed, slope in zip(config.seeds, fitted, strict=True):
                count = len(sweep.values)
                keep(attack, sampling, name, seed, f"{metric}_slope", slope, count)
    return kept


PROGRAM = Program(
    name="theory",
    module=__name__,
    settings=Settings,
    start=start,
    afterwards=COMMAND,
    work=work,
    describe=describe,
)
