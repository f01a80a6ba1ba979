"""Seeds of one defense as one row: means, 95 % intervals over seeds, and verdicts."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.benchmarks.peers.auditing import ATTACKS, KNOWS, OneRelease
from experiments.benchmarks.peers.catalogue import Entry
from fljax import metrics, results, verdicts
from fljax.auditing.lines import Line

_SHOWN = ("model", "model_global", *ATTACKS[1:], KNOWS)
COLUMNS = {
    "defense": ("defense", ""), "package": ("package", ""),
    "explained": ("explained", ".1f"), "stated": ("stated", ".3g"),
    "accounted": ("accounted", ".3g"), "accounted_of_one": ("of one", ".3g"),
    "audited_of_one": ("audited", ".3g"),
    **{name: (name, "") for name in _SHOWN},
    "imputation": ("imputation", ".1f"), "strangers": ("strangers", ".1f"),
    "ceiling": ("ceiling", ".1f"), "leaks": ("leaks", ""), "seconds": ("s", ".1f"),
}  # fmt: skip


class Seed(NamedTuple):
    """What was found of one training.

    Attributes:
      explained: percent of the held-out targets' variation.
      stated: epsilon as the package says it.
      accounted: epsilon by `fljax.privacy`.
      lines: of the audit, by attack.
      seconds: of training and attacks.
    """

    explained: float
    stated: float | None
    accounted: float | None
    lines: Mapping[str, Line]
    seconds: float


def row(
    entry: Entry, seeds: Sequence[Seed], alone: OneRelease | None
) -> dict[str, Any]:
    """A defense's; percentages are means over seeds, `attacks` has each seed's."""
    attacks = {name: _attack(name, seeds) for name in _SHOWN}
    lines = [seed.lines["trajectory"] for seed in seeds]
    return {
        "benchmark": "peers",
        "defense": entry.defense,
        "package": f"{entry.package} {entry.version}",
        "explained": _mean([seed.explained for seed in seeds]),
        "stated": _mean([seed.stated for seed in seeds]),
        "accounted": _mean([seed.accounted for seed in seeds]),
        "accounted_of_one": None if alone is None else alone.accounted,
        "audited_of_one": None if alone is None else alone.audited,
        **{name: _text(found["values"]) for name, found in attacks.items()},
        "majority": _mean([line.total and line.total.baseline for line in lines]),
        "imputation": _mean([_reference(line, verdicts.IMPUTATION) for line in lines]),
        "strangers": _mean([_reference(line, verdicts.STRANGERS) for line in lines]),
        "ceiling": _mean([_ceiling(seed) for seed in seeds]),
        "leaks": _leaks(seeds),
        "attacks": attacks,
        "num_attacks": sum(bool(found["values"]) for found in attacks.values()),
        "seeds": len(seeds),
        "seconds": float(np.mean([seed.seconds for seed in seeds])),
    }


def _attack(name: str, seeds: Sequence[Seed]) -> dict[str, Any]:
    lines = [seed.lines[name] for seed in seeds if name in seed.lines]
    totals = [line.total.value for line in lines if line.total is not None]
    return {"values": totals, "verdicts": [line.verdict for line in lines]}


def _leaks(seeds: Sequence[Seed]) -> str:
    shown = [any(x.verdict == verdicts.LEAKS for x in s.lines.values()) for s in seeds]
    return f"{sum(shown)} of {len(seeds)}"


def _reference(line: Line, name: str) -> float | None:
    return None if line.total is None else line.total.references.get(name)


def _ceiling(seed: Seed) -> float | None:
    return seed.lines[KNOWS].ceiling if KNOWS in seed.lines else None


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def _text(values: Sequence[float]) -> str | None:
    if not values:
        return None
    found = results.within(metrics.interval(values), verdicts.ACCURACY.metric)
    if len(values) == 1:
        return f"{found.mean:.1f}"
    return f"{found.mean:.1f} [{found.low:.1f}, {found.high:.1f}]"
