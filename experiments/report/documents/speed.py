"""A benchmark as it was measured: its command, its rows, its targets, and where.

Read from what `--json` of the benchmarks wrote, so that no time is typed by hand.
"""

import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from experiments.report.documents import writing
from fljax.driver.config import ConfigError

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks" / "results"
_TARGETS = ("target", "wanted", "measured", "met")


class _Column(NamedTuple):
    """Where a value stands in a row, its heading and its form; no form: a text."""

    key: str
    heading: str
    form: str = ""


_BY = _Column("implementation", "by")
_SPREAD = _Column("spread", "quartiles apart", ".0%")  # of the median
_PLACE = _Column("devices", "devices", "d")
_COMPILE = _Column("compile_seconds", "compile s", ".1f")
_ATTACKS = (
    "model", "grad", "linear_inversion", "trajectory", "trajectory, knowing the defense",
)  # fmt: skip
_PROMISED = {
    "explained": "held-out variation explained, %", "stated": "epsilon stated",
    "accounted": "accounted", "accounted_of_one": "of one release",
    "audited_of_one": "audited, at least",
}  # fmt: skip
_COLUMNS = {
    "rounds": (
        _Column("shape", "shape"), _BY, _Column("threads", "threads", "d"),
        _Column("lanes", "lanes", "d"), _Column("trainings", "trainings", "d"), _PLACE,
        _Column("rounds_per_second", "rounds/s", ".4g"),
        _Column("seconds_per_100_rounds", "s per 100 rounds", ".3g"), _SPREAD,
        _Column("ratio", "times the baseline", ".3g"),
        _Column("occupancy", "lane slots in use", ".1%"),
    ),
    "attributes": (
        _Column("task", "task"), _BY, _PLACE, _COMPILE,
        _Column("median", "seconds", ".3g"), _SPREAD,
        _Column("ratio", "times the baseline", ".3g"),
    ),
    "clipping": (
        _Column("model", "model"), _Column("way", "way"),
        _Column("milliseconds", "ms per local iteration", ".3g"), _SPREAD,
        _Column("ratio", "times SGD", ".2f"),
    ),
    "draws": (
        _Column("way", "generator"), _Column("what", "what"),
        _Column("count", "numbers a draw", ",d"),
        _Column("nanoseconds", "ns each", ".2f"),
        _Column("millions", "millions/s", ".3g"),
        _Column("ratio", "times unrolled", ".2f"),
    ),
    "engines": (
        _Column("shape", "shape"), _Column("clients", "clients", ",d"), _BY,
        _Column("version", "version"),
        _Column("rounds_per_second", "rounds/s", ".4g"), _SPREAD,
        _Column("ratio", "times as long as ours", ".3g"),
        _Column("difference", "largest difference", ".0e"),
    ),
    "exchange": (
        _Column("shape", "shape"), _Column("way", "way"), _PLACE,
        _Column("trainings", "trainings", "d"),
        _Column("exchanges", "exchanges a round", "d"),
        _Column("numbers", "numbers", ",d"),
        _Column("milliseconds", "ms a round or sum", ".3g"),
        _Column("speedup", "times one device", ".2f"),
    ),
    "false_alarms": (
        _Column("kind", "kind"), _Column("audits", "audits", "d"),
        _Column("alarms", "alarms", "d"), _Column("percent", "% of audits", ".1f"),
        _Column("by_attack", "by attack"), _Column("seconds", "s an audit", ".2f"),
    ),
    "limits": (
        _Column("what", "what"), _Column("teraflops", "TFLOP/s", ".3g"),
        _Column("gigabytes", "GB/s", ".4g"),
        _Column("error", "relative error", ".0e"),
    ),
    "local_iterations": (
        _Column("network", "network"), _Column("defense", "defense"),
        _Column("milliseconds", "ms per local iteration", ".3g"), _SPREAD,
        _Column("ratio", "times none", ".2f"),
        _Column("printed", "printed, times none", ".2f"),
    ),
    "peers": (
        _Column("defense", "defense"), _Column("package", "package"),
        *(_Column(*names, ".3g") for names in _PROMISED.items()),
        *(_Column(name, name.replace("_", " ")) for name in _ATTACKS),
        _Column("imputation", "imputation", ".1f"),
        _Column("strangers", "strangers", ".1f"),
        _Column("ceiling", "no adversary above", ".1f"),
        _Column("leaks", "seeds with a leak"),
    ),
    "scaling": (
        _Column("part", "what grows"), _Column("clients", "clients", ",d"),
        _Column("parameters", "parameters", ",d"), _PLACE,
        _Column("microseconds", "microseconds of a client's round", ".3g"),
        _Column("limit", "limit", ".3g"),
        _Column("times_limit", "times the limit", ".2g"),
    ),
    "steps": (
        _Column("shape", "shape"), _PLACE,
        _Column("step", "microseconds of a step", ".3g"),
        _Column("multiply", "to multiply", ".3g"),
        _Column("gather", "to gather", ".3g"),
        _Column("move", "to move the model", ".3g"),
        _Column("share", "share of the first two", ".0%"),
        _Column("share_moved", "of all three", ".0%"),
    ),
    "soundness": (
        _Column("canary", "canary"), _Column("epsilon", "budget", "g"),
        _Column("accounted", "accounted", ".2f"), _Column("observer", "observer"),
        _Column("audits", "audits", "d"), _Column("above", "above it", "d"),
        _Column("median", "median audited", ".2f"),
    ),
    "trajectory": (
        _Column("shape", "shape"), _Column("task", "task"),
        _Column("clients", "clients", "d"), _PLACE, _COMPILE,
        _Column("median", "seconds", ".3g"),
        _Column("seconds_per_client", "seconds a client", ".3g"),
        _Column("gigaflops", "GFLOP", ".3g"),
        _Column("share", "of the matmul limit", ".1%"),
        _Column("ratio", "times as fast as side by side", ".2g"),
        _Column("accuracy", "accuracy", ".1%"),
    ),
}  # fmt: skip


def names() -> list[str]:
    """Of all benchmarks that were kept."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def text(name: str) -> str:
    """A kept benchmark.

    Args:
      name: of its file, `BENCHMARK` or `BENCHMARK.VARIANT`.

    Raises:
      ConfigError: there is none, or no columns are known of it.
    """
    benchmark = name.partition(".")[0]
    if name not in names() or benchmark not in _COLUMNS:
        raise ConfigError(f"expected a benchmark of {FOLDER.name}/, got {name!r}")
    rows, targets = kept(name)
    rows = [{**row, _SPREAD.key: _spread(row)} for row in rows]
    columns = [
        c for c in _COLUMNS[benchmark] if any(row[c.key] is not None for row in rows)
    ]
    body = [[_cell(row[c.key], c.form) for c in columns] for row in rows]
    numbers = [column.heading for column in columns if column.form]
    header = [column.heading for column in columns]
    parts = [writing.command(rows[0]["command"]), writing.table(header, body, numbers)]
    if aims := [_target(row) for row in targets]:
        parts.append(writing.table(_TARGETS, aims, _TARGETS[1:3]))
    return "\n\n".join([*parts, _where(rows[0]["environment"])])


def kept(name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows and targets of a kept benchmark."""
    lines = (FOLDER / f"{name}.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    rows = [row for row in found if "target" not in row]
    return rows, [row for row in found if "target" in row]


def _spread(row: dict[str, Any]) -> float | None:
    """Distance of the quartiles as a share of the median; None where nobody kept it."""
    for middle, range_ in (("median", "iqr"), ("milliseconds", "iqr_milliseconds")):
        if row.get(middle) and row.get(range_) is not None:
            return row[range_] / row[middle]
    return None


def _cell(value: Any, form: str) -> str:
    return "" if value is None else format(value, form)


def _target(row: dict[str, Any]) -> Sequence[str]:
    sign = "at least" if row["at_least"] else "at most"
    measured = "" if row["value"] is None else f"{row['value']:.3g}"
    met = "yes" if row["met"] else "no"
    return row["target"], f"{sign} {row['bound']:g}", measured, met


def _where(told: dict[str, Any]) -> str:
    """Versions, machine in general words, and how busy it was with other things."""
    versions = ", ".join(
        f"{name} {told[name]}" for name in ("jax", "torch") if told[name]
    )
    cores = f"{told['num_cpus']} CPU core{'s' * (told['num_cpus'] > 1)}"
    device = cores if told["platform"] == "cpu" else f"{told['device']}, {cores}"
    return (
        f"fljax {told['fljax']}, code {told['code'][:8]}, {versions}, {device}, "
        f"{told['dtype']}; the system's load as it began: {told['load']:g}."
    )
