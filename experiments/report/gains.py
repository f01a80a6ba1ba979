"""What attacks gain over what needs no message, for a summary in plain language.

A claim needs intervals that do not overlap, and one of equality an interval that ends
near the baseline: means alone settle nothing, and neither does a single seed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from experiments.report import facts, glossary
from experiments.report.cards import Card
from experiments.report.figures import selection
from fljax.metrics import Estimate
from fljax.results import Row, Summary, summarise, within

LEAKS, NO_GAIN, UNCLEAR, ALONE = "leaks", "no gain", "not clear", "no interval"
_NO_ATTACK = ("baseline", "oracle")
_NO_DEFENSE = "none"
_HALF_WIDTH = "_half_width"
_PART = "alpha="  # points of some of the clients
_EPSILONS = (
    "epsilon_pld", "epsilon_rdp", "client_epsilon_pld", "client_epsilon_rdp",
)  # fmt: skip


class Measure(NamedTuple):
    """By which number an experiment tells a leak.

    Attributes:
      metric: in the rows.
      sign: 1 if more of it is a leak, -1 if less is.
      words: what it is.
      unit: of a gain.
      base: the attack that is the baseline.
      base_words: what the baseline is.
      margin: gain that still counts as nothing.
      attacks: how the names of attacks begin; empty for all.
    """

    metric: str
    sign: int
    words: str
    unit: str
    base: str
    base_words: str
    margin: float
    attacks: str = ""


MEASURES = {
    "aia": (
        Measure(
            selection.ACCURACY, 1, "% of the values named rightly", "points",
            "majority", "always naming each client's most frequent value", 1.0,
        ),
        Measure(
            "aia_mean_absolute_error", -1, "mean absolute error", "less", "majority",
            "always naming each client's median", 0.0,
        ),
    ),
    "label_distribution": (
        Measure(
            "total_variation", -1, "total variation from the true distribution",
            "less", "mean_distribution", "the dummies' mean distribution", 0.01,
        ),
    ),
    "lmra": (
        Measure(
            "train_accuracy_percent", 1, "% accuracy on the client's own rows",
            "points", "last_returned", "the model that she returned last", 1.0,
            "decoded",
        ),
    ),
}  # fmt: skip


class Score(NamedTuple):
    """One attack in one case.

    Attributes:
      name: attack and setting.
      estimate: of the measure.
      base: the same of the baseline.
      measure: what was measured.
    """

    name: str
    estimate: Estimate
    base: Estimate
    measure: Measure

    @property
    def shown(self) -> Estimate:
        """The estimate, its interval cut to what the measure can be."""
        return within(self.estimate, self.measure.metric)

    @property
    def gain(self) -> float:
        """Over the baseline's mean."""
        return self.measure.sign * (self.estimate.mean - self.base.mean)

    @property
    def gain_interval(self) -> tuple[float, float]:
        """The attack's interval over the baseline's mean, lower end first."""
        ends = (self.shown.low, self.shown.high)
        gains = [self.measure.sign * (end - self.base.mean) for end in ends]
        return min(gains), max(gains)

    @property
    def outcome(self) -> str:
        """One of the kinds above."""
        low, high = self.gain_interval
        if not math.isfinite(high - low):
            return ALONE
        if high < self.measure.margin:
            return NO_GAIN
        half = self.base.high - self.base.mean
        return LEAKS if low > (half if math.isfinite(half) else 0.0) else UNCLEAR

    def overlaps(self, other: "Score") -> bool:
        """Whether the intervals do; without one they are taken to."""
        mine, hers = self.gain_interval, other.gain_interval
        apart = mine[0] > hers[1] or hers[0] > mine[1]
        return not apart


class Case(NamedTuple):
    """A defense, or none, and a point as one run measured it.

    Attributes:
      run: name of the run.
      defense: as the rows name it.
      point: of a sweep.
      scores: of the attacks that an adversary could run.
      loss: of the last model sent, NaN if unknown.
      epsilon: in words, empty where nothing is promised.
    """

    run: str
    defense: str
    point: str
    scores: Sequence[Score]
    loss: float
    epsilon: str

    @property
    def defended(self) -> bool:
        """Whether there is a defense."""
        return self.defense != _NO_DEFENSE

    @property
    def label(self) -> str:
        """Defense and what of it was swept."""
        name, equals, value = self.point.partition("=")
        if not equals or value == self.defense:
            return self.defense
        return f"{self.defense} {name}={value}"


def cases(card: Card) -> list[Case]:
    """All of a run that have attacks with a baseline."""
    measures = MEASURES.get(card.rows[0].experiment, ())
    totals = [s for s in summarise(card.rows) if s.row.client == "all"]
    halves = {
        _key(s.row): s.estimate.mean
        for s in totals
        if s.row.metric.endswith(_HALF_WIDTH)
    }
    losses = selection.utility(card.rows)
    found: dict[tuple[str, str], list[Score]] = {}
    for measure in measures:
        some = [s for s in totals if s.row.metric == measure.metric]
        for at, score in _scores(some, measure, halves):
            found.setdefault(at, []).append(score)
    return [
        Case(
            card.name, *at, scores,
            losses[at].estimate.mean if at in losses else math.nan,
            _epsilon(totals, at),
        )
        for at, scores in found.items()
    ]  # fmt: skip


def _scores(
    totals: Sequence[Summary], measure: Measure, halves: Mapping[tuple, float]
) -> Iterator[tuple[tuple[str, str], Score]]:
    bases: dict[tuple[str, ...], Estimate] = {}
    for s in totals:
        if s.row.attack == measure.base:
            at = s.row.defense, s.row.point
            bases[(*at, s.row.setting)] = _estimate(s, halves)
            bases.setdefault(at, bases[(*at, s.row.setting)])
    for s in totals:
        row = s.row
        at = row.defense, row.point
        base = bases.get((*at, row.setting), bases.get(at))
        if base is None or not _is_attack(row, measure) or _PART in row.point:
            continue
        if math.isfinite(s.estimate.mean - base.mean):
            name = f"{facts.text(row.attack)} ({facts.text(row.setting)})"
            yield at, Score(name, _estimate(s, halves), base, measure)


def _is_attack(row: Row, measure: Measure) -> bool:
    """Whether an adversary could run it, and means to gain by it."""
    informed = row.setting in _NO_ATTACK or "oracle" in row.attack
    return (
        not informed
        and row.attack not in glossary.CONTROLS
        and row.attack != measure.base
        and row.attack.startswith(measure.attacks)
    )


def _estimate(s: Summary, halves: Mapping[tuple, float]) -> Estimate:
    """Over the seeds; of a single one over its clients, where the rows tell."""
    e, row = s.estimate, s.row
    half = halves.get(_key(row._replace(metric=row.metric + _HALF_WIDTH)))
    if math.isnan(e.low) and e.repetitions == 1 and half is not None:
        return e._replace(low=e.mean - half, high=e.mean + half)
    return e


def _key(row: Row) -> tuple[str, ...]:
    return row.defense, row.point, row.attack, row.setting, row.metric


def _epsilon(totals: Sequence[Summary], at: tuple[str, str]) -> str:
    for metric in _EPSILONS:
        for s in totals:
            value = s.estimate.mean
            here = (s.row.defense, s.row.point) == at and s.row.metric == metric
            if here and 0 < value < 1e100:
                whose = " of a client" if metric.startswith("client") else ""
                return f"epsilon {value:.3g}{whose}"
    return ""
