"""Lower bounds of epsilon from two counts: of hits with a canary, of alarms without one.

An epsilon bounds the chances p of a hit and q of an alarm: p <= exp(epsilon) q + delta.
Bounding p and q apart (Clopper-Pearson, half the error each) wastes confidence, as both
are hardly ever at their bounds at once. `epsilon` tests both counts at once: it keeps the
order in which Clopper-Pearson bounds rank the counts, and is the largest bound with that
order that holds (Buehler 1957, doi:10.1080/01621459.1957.10501404). The chance of an
alarm, which nobody knows, is the worst in an interval that holds but for a thousandth of
the error, which is charged (Berger and Boos 1994).
"""

from typing import cast

import numpy as np
from scipy import optimize, special, stats

from fljax.types import Array

_CHARGED = 1e-3  # share of the error for the interval of the chance of an alarm
_CELL = 0.1  # of it, as a share of the deviation of a share of alarms
_RARE = 1e-9  # probability of counts that are left out, charged too
_CLOSE = 1e-3  # to the bound, from below
_SAME = 1e-9  # ranks that differ by less are the same


def epsilon(
    hits: int,
    alarms: int,
    sizes: tuple[int, int],
    *,
    delta: float,
    confidence: float = 0.95,
) -> float:
    """Lower bound, 0 where nothing is proven.

    Args:
      hits: scores above a threshold that was chosen before, with the canary.
      alarms: the same without it.
      sizes: scores with and without.
      delta: in [0, 1).
      confidence: in (0.5, 1): of how many such bounds hold.
    """
    ranked = _Ranked(hits, alarms, sizes, delta, confidence)
    if not ranked.told:
        return 0.0

    def excess(at: float) -> float:
        return ranked.chance(at) - (1 - confidence)

    if excess(0.0) > 0:
        return 0.0
    high = 0.5
    while excess(high) <= 0:
        high += 0.5
    found = cast(float, optimize.brentq(excess, high - 0.5, high, xtol=_CLOSE))
    return max(0.0, found - _CLOSE)


def apart(
    hits: Array | int,
    alarms: Array | int,
    sizes: tuple[int, int],
    confidence: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson: at least this chance of hits and at most that of alarms.

    Args:
      hits: with the canary, `[K]` or [].
      alarms: without it, of the same shape.
      sizes: scores with and without.
      confidence: that both hold.
    """
    error = (1 - confidence) / 2
    few = stats.beta.ppf(error, np.maximum(hits, 1e-9), sizes[0] - hits + 1)
    left = sizes[1] - alarms
    many = stats.beta.ppf(1 - error, alarms + 1, np.maximum(left, 1e-9))
    return np.where(hits > 0, few, 0.0), np.where(left > 0, many, 1.0)


class _Ranked:
    """How likely counts are that tell as much as those at hand, under an epsilon."""

    def __init__(self, hits, alarms, sizes, delta, confidence):
        with_, without = sizes
        few, many = apart(np.array(hits), np.array(alarms), sizes, confidence)
        ratio = (few - delta) / many
        self.told = bool(ratio > 0)
        if not self.told:
            return
        error = _CHARGED * (1 - confidence)
        low, high = _interval(alarms, without, error)
        first = max(0.0, float(stats.binom.ppf(_RARE, without, low)))
        last = float(stats.binom.isf(_RARE, without, high))
        counts = np.arange(first, last + 1)
        # Beside each number of alarms, the fewest hits that rank as high.
        _, many = apart(0 * counts, counts, sizes, confidence)
        enough = np.minimum((delta + ratio * many) * (1 - _SAME), 1.0)
        least = stats.binom.isf((1 - confidence) / 2, with_, enough) + 1
        counts, least = counts[least <= with_], least[least <= with_]
        edges = _cells(low, high, without)
        # In a cell fewest alarms and most hits are expected at its two ends.
        self._alarms = stats.binom.pmf(counts, without, edges[:-1, None])
        self._most = edges[1:, None]
        self._least, self._with = least, with_
        self._delta, self._charged = delta, error + 2 * _RARE

    def chance(self, epsilon: float) -> float:
        """The largest under any chance of an alarm."""
        of_hit = np.minimum(np.exp(epsilon) * self._most + self._delta, 1.0)
        hits = special.betainc(self._least, self._with - self._least + 1, of_hit)
        return float(np.max(np.sum(self._alarms * hits, axis=1))) + self._charged


def _interval(alarms: int, without: int, error: float) -> tuple[float, float]:
    """Of the chance of an alarm."""
    left = without - alarms
    low = stats.beta.ppf(error / 2, alarms, left + 1) if alarms else 0.0
    high = stats.beta.ppf(1 - error / 2, alarms + 1, left) if left else 1.0
    return float(low), float(high)


def _cells(low: float, high: float, without: int) -> np.ndarray:
    """Edges, as far apart as a share of alarms hardly varies."""
    ends = np.arcsin(np.sqrt([low, high]))
    count = int(np.ceil((ends[1] - ends[0]) / (_CELL / 2 / np.sqrt(without))))
    return np.sin(np.linspace(ends[0], ends[1], count + 1)) ** 2
