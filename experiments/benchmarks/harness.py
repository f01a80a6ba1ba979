"""Flags, timing and tables that the benchmarks share.

Tracing, compiling and running are timed apart, every result is waited for, and the
first call is never part of the statistics. All benchmarks compute in float32 with
matrix products of full precision, as their baselines do.
"""

import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from rich import console, table

from experiments.benchmarks import recording
from experiments.benchmarks.recording import Row, Target
from fljax import parallel
from fljax.driver import config as config_lib
from fljax.driver import launch
from fljax.driver.option import option

Columns = dict[str, tuple[str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flags:
    """What every benchmark can be asked for. No prefix."""

    check: bool = option(False, "exit with 1 if a target is missed")
    json: str | None = option(None, "file for the results, one JSON object per line")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmallFlags(Flags):
    """The same of a benchmark on drawn data, which can be made small."""

    seed: int = option(0, "of data, model, training and attacks", min=0)
    smoke: bool = option(False, "few rows, clients, rounds, parameters and iterations")


class Timing(NamedTuple):
    """Seconds that a function took.

    Attributes:
      trace_seconds: Python to StableHLO; 0 for a plain function or a training, whose
        first call has it.
      compile_seconds: StableHLO to machine code; 0 for a plain function.
      first_seconds: first call.
      median: of the calls after the warm-up.
      iqr: interquartile range of the same.
      best: smallest of the same.
      repeats: how many calls these are.
    """

    trace_seconds: float
    compile_seconds: float
    first_seconds: float
    median: float
    iqr: float
    best: float
    repeats: int


class Program(NamedTuple):
    """A function ready to be called, and what it cost to get there."""

    call: Callable[..., Any]
    trace_seconds: float = 0.0
    compile_seconds: float = 0.0


def main(benchmark: Callable, flags: type[Flags], columns: Columns) -> None:
    """Runs a benchmark as its flags ask for, shows what it measured, and exits.

    Args:
      benchmark: `(flags) -> (rows, targets)`.
      flags: their dataclass.
      columns: as in `report`.
    """

    def measured() -> int:
        asked = config_lib.read(flags)
        configure()
        load = recording.load()
        rows, targets = benchmark(asked)
        report(rows, columns, targets)
        if asked.json is not None:
            where = recording.environment() | {"load": load}
            typed = recording.command(asked, benchmark.__module__)
            about = {"command": typed, "environment": where}
            recording.write(asked.json, rows, targets, about)
        return exit_code(targets, asked.check)

    config_lib.define(flags)
    launch.app_main(measured, errors=(ArithmeticError,))


def configure() -> None:
    """Settings before the first use of JAX: all CPU cores as devices, full precision."""
    parallel.use_cpu_cores()
    jax.config.update("jax_default_matmul_precision", "highest")


def prepare(jitted: Any, *args: Any) -> Program:
    """Traces and compiles a jitted function for these arguments."""
    begin = time.perf_counter()
    lowered = jitted.lower(*args)
    traced = time.perf_counter()
    compiled = lowered.compile()
    return Program(compiled, traced - begin, time.perf_counter() - traced)


def measure(
    fun: Program | Callable[..., Any], *args: Any, repeats: int, warm_ups: int = 1
) -> Timing:
    """Times a prepared, a jitted or a plain function.

    Args:
      fun: takes `args`, which stay valid: nothing is donated.
      *args: arguments, resident on the device.
      repeats: timed calls.
      warm_ups: calls before them; without any, the first timed one is the first.

    Returns:
      A `Timing`.
    """
    if not isinstance(fun, Program):
        fun = prepare(fun, *args) if hasattr(fun, "lower") else Program(fun)
    calls = [_seconds(fun.call, args) for _ in range(warm_ups + repeats)]
    first, seconds = calls[0], calls[warm_ups:]
    low, high = np.percentile(seconds, [25, 75])
    return Timing(
        trace_seconds=fun.trace_seconds,
        compile_seconds=fun.compile_seconds,
        first_seconds=first,
        median=statistics.median(seconds),
        iqr=float(high - low),
        best=min(seconds),
        repeats=repeats,
    )


def largest_difference(got: Any, want: Any) -> float:
    """Largest absolute difference of two trees, over the largest value of `want`.

    NaN if any of either is.
    """
    gaps = jax.tree.map(lambda a, b: np.abs(np.asarray(a) - b).max(), got, want)
    sizes = jax.tree.map(lambda b: np.abs(b).max(), want)
    # Not Python's max, which passes over NaN behind a number.
    return float(np.max(jax.tree.leaves(gaps)) / np.max(jax.tree.leaves(sizes)))


def check_equal(name: str, difference: float, tolerance: float) -> None:
    """Refuses to time two implementations that compute different things.

    Raises:
      ArithmeticError: for a difference above the tolerance, or NaN.
    """
    if not difference <= tolerance:
        raise ArithmeticError(
            f"{name}: results differ by {difference:.1e}, more than {tolerance:.0e}"
        )


def report(rows: Sequence[Row], columns: Columns, targets: Sequence[Target]) -> None:
    """Prints the environment, one line per row, and the targets.

    Args:
      rows: results.
      columns: key of a row -> heading and format of its values.
      targets: printed below.
    """
    screen = console.Console(width=None if os.isatty(1) else 160)
    facts = recording.environment().items()
    screen.print(", ".join(f"{name} {value}" for name, value in facts), style="dim")
    results = table.Table(*(heading for heading, _ in columns.values()))
    for row in rows:
        results.add_row(*(_cell(row.get(k), form) for k, (_, form) in columns.items()))
    screen.print(results)
    wanted = table.Table("target", "measured", "wanted", "met")
    for target in targets:
        sign, met = "≥" if target.at_least else "≤", "yes" if target.met else "no"
        bound = f"{sign} {target.bound:g}"
        wanted.add_row(target.name, _cell(target.value, ".4g"), bound, met)
    screen.print(wanted)


def exit_code(targets: Sequence[Target], check: bool) -> int:
    """1 if a target had to be met and was not."""
    return int(check and not all(target.met for target in targets))


def _seconds(fun: Callable[..., Any], args: tuple[Any, ...]) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(fun(*args))
    return time.perf_counter() - begin


def _cell(value: Any, form: str) -> str:
    return "-" if value is None else format(value, form)
