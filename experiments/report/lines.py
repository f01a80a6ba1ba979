"""One line per measured number: its estimate beside its references and its bound.

Curves, diagnostics and attacks on strangers stay in the rows. Proposition 1's bound
(Diana et al., "Attribute Inference Attacks for Federated Regression Tasks", 2025) and
the most that any adversary can have under a defense stand beside the accuracies that
they bound, and a reconstruction that the messages of some client do not determine says
so.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scipy import stats

from experiments import epsilons
from experiments.epsilons import Stated
from experiments.report.figures import selection
from fljax import attack_names, certainty, metrics, verdicts
from fljax.metrics import Estimate
from fljax.results import HALF_WIDTH, Row, Summary, summarise, within

ACCURACY = selection.ACCURACY
_ACCURACIES = "accuracy_percent"  # so their names end
_SUCCESS = "attack_success"  # a share of clients
_OF_EACH_CLIENT = ("reconstruction_distance", "attack_iterations")
_ERROR = verdicts.ERROR.metric
_BOUND = "aia_accuracy_bound_percent"
_DETERMINED = "determined"
_DEFENSE = "none", "defense"  # attack and setting of the rows that describe one
_BASELINES = ("majority", "mean_distribution", "shuffled_labels", "imputation")
REFERENCES = (*_BASELINES, "strangers")  # columns that stand beside a result
# Curves, diagnostics and settings: they stay in rows.jsonl.
_HIDDEN = (
    "train_loss", "test_loss", "rank", _DETERMINED, _BOUND, "local_loss",
    "tuning_objective", "tuning_accuracy_percent", "adam_alpha", "adam_beta1", "adam_beta2",
    verdicts.USES, "share_percent", *selection.RIGHT,
)  # fmt: skip
_ENDS = ("gradient_norm",)  # told of the first and the last round
_SHORT = {
    ACCURACY: "accuracy %",
    "accuracy_percent": "accuracy %",
    _ERROR: "mean abs. error",
    "total_variation": "total variation",
    "kl_divergence": "KL divergence",
    "dominant_label_percent": "dominant label %",
    "silhouette": "silhouette",
    "nearest_centroid_percent": "nearest centroid %",
    "train_accuracy_percent": "accuracy on own rows %",
    "membership_auc": "membership AUC",
}
SCORES = tuple(_SHORT)
_WORDS = {**_SHORT, **certainty.WORDS}


class Line(NamedTuple):
    """One measured number.

    Attributes:
      row: what was measured; its seed, client and value mean nothing.
      metric: the metric in words.
      estimate: over the seeds.
      references: names in `REFERENCES` -> mean of the same metric; none for the
        majority itself.
      bound: Proposition 1's lower bound on the mean accuracy, None without one.
      half: of a seed's interval over its rows or clients, None without one.
      ceiling: percent that no adversary is above under the defense, on average; None
        where nothing is promised, and of what is no accuracy of an adversary.
      epsilon: of the noise of a training, beside what its last model reaches.
    """

    row: Row
    metric: str
    estimate: Estimate
    references: Mapping[str, float]
    bound: float | None
    half: float | None = None
    ceiling: float | None = None
    epsilon: Stated | None = None

    @property
    def is_impossible(self) -> bool:
        """Whether it is above its ceiling by more than chance."""
        return self.ceiling is not None and verdicts.is_impossible(
            self.estimate.mean, self.row.n, self.ceiling
        )

    @property
    def measured(self) -> Estimate:
        """The estimate.

        An accuracy that is the same with every seed has the interval over its rows, what
        an attack of one seed does to each client that over the clients.
        """
        e, row = self.estimate, self.row
        same = e.repetitions > 1 and e.low == e.high and row.attack not in _BASELINES
        if same and row.metric.endswith(_ACCURACIES):
            low, high = metrics.of_rows(e.mean, row.n)
            e = e._replace(low=low, high=high)
        if e.repetitions == 1 and row.metric == _SUCCESS:
            low, high = metrics.of_rows(100 * e.mean, row.n)
            e = e._replace(low=low / 100, high=high / 100)
        if (
            e.repetitions == 1
            and row.metric in _OF_EACH_CLIENT
            and self.half is not None
        ):
            e = e._replace(low=e.mean - self.half, high=e.mean + self.half)
        return e

    @property
    def whole(self) -> float | None:
        """All of what it is a share of, None of what is no share."""
        if self.row.metric == _SUCCESS:
            return 1
        return 100 if self.row.metric.endswith("_percent") else None

    @property
    def shown(self) -> Estimate:
        """What was measured, its interval cut to what the metric can be.

        An accuracy or error of a single seed has the interval over its rows.
        """
        e = self.measured
        if e.repetitions == 1 and self.row.metric == ACCURACY:
            low, high = metrics.of_rows(e.mean, self.row.n)
            e = e._replace(low=low, high=high)
        elif e.repetitions == 1 and self.half is not None:
            e = e._replace(low=e.mean - self.half, high=e.mean + self.half)
        return within(e, self.row.metric)

    @property
    def skewed_median(self) -> float | None:
        """The median where it is further from the mean than one standard error."""
        e = self.estimate
        if e.repetitions < 3 or not math.isfinite(e.high - e.low):
            return None
        error = (e.high - e.mean) / stats.t.ppf(0.975, e.repetitions - 1)
        rounding = 1e-9 * abs(e.mean)
        return e.median if abs(e.median - e.mean) > error + rounding else None


def _is_within(row: Row, last: int) -> bool:
    """Whether it is of a curve by round, of which at most the ends are told."""
    number = selection.round_number(row)
    return number is not None and not (row.metric in _ENDS and number in (0, last))


def lines(rows: Sequence[Row]) -> list[Line]:
    """Means over clients and seeds, in order of appearance."""
    totals = summarise(selection.totals(rows))
    beside = {(*_key(s.row), s.row.metric): s.estimate for s in totals}
    bounds, determined = _means(totals, _BOUND), _means(totals, _DETERMINED)
    ceilings = _means(totals, verdicts.CEILING)
    promised = epsilons.of_noise(rows)
    last = max((selection.round_number(s.row) or 0 for s in totals), default=0)
    found = []
    for s in totals:
        row, key = s.row, _key(s.row)
        if row.metric in _HIDDEN or _is_within(row, last):
            continue
        if certainty.confidence_of(row.metric) is not None:
            continue
        if epsilons.drawn_for(row.setting):
            continue
        if row.metric.endswith(HALF_WIDTH) or selection.is_of_strangers(row):
            continue
        metric = _WORDS.get(row.metric, row.metric.replace("_", " "))
        if row.metric in _SHORT and determined.get(key, 1) < 1:
            metric += " (not determined)"
        bound = bounds.get(key) if row.metric == ACCURACY else None
        references = _references(row, beside)
        half = beside.get((*key, row.metric + HALF_WIDTH))
        ceiling = ceilings.get((*_case(row), *_DEFENSE)) if _is_attack(row) else None
        beyond = bound, half and half.mean, ceiling, _epsilon(row, promised)
        found.append(Line(row, metric, s.estimate, references, *beyond))
    return found


def _epsilon(row: Row, promised: Mapping[tuple[str, str, str], Stated]):
    """Of the noise of a training whose last model's accuracy it is."""
    if (row.setting, row.metric) != ("final", "accuracy_percent"):
        return None
    return promised.get((row.defense, row.point, row.attack))


def _is_attack(row: Row) -> bool:
    """Whether it is an accuracy of what an adversary could run.

    An active server tunes on several answers with the same noise: no ceiling is of that.
    """
    named = row.metric == ACCURACY and row.attack not in _BASELINES
    named = named and not selection.active_rounds(row)
    return named and attack_names.is_judged(row.attack, row.setting)


def _references(row: Row, beside: Mapping[tuple, Estimate]) -> dict[str, float]:
    """What stands beside a row, by name."""
    before = _BASELINES
    if row.attack in _BASELINES:
        before = _BASELINES[: _BASELINES.index(row.attack)]
    names = {name: (name, "baseline") for name in before}
    names["strangers"] = f"{row.attack}{selection.STRANGERS}", row.setting
    found = {
        name: beside.get((*_case(row), *at, row.metric)) for name, at in names.items()
    }
    return {name: e.mean for name, e in found.items() if e is not None}


def digits(value: float) -> str:
    """The form of a number of this size, as in `interval`."""
    return ".2f" if value == 0 or 1 <= abs(value) < 1e5 else ".4g"


def interval(estimate: Estimate, *, constant_alone: bool = False) -> str:
    """`mean [low, high]`; only the mean of a single seed, or of equal values if so told.

    Two decimals, as in the papers; four digits where those would say too little or
    too much.
    """
    e = estimate
    if not math.isfinite(e.mean):
        return "not finite"
    form = digits(e.mean)
    if math.isnan(e.low) or (constant_alone and e.high - e.low <= 1e-9 * abs(e.mean)):
        return f"{e.mean:{form}}"
    return f"{e.mean:{form}} [{e.low:{form}}, {e.high:{form}}]"


def _case(row: Row) -> tuple[str, str, str]:
    return row.defense, row.model, row.point


def _key(row: Row) -> tuple[str, ...]:
    return *_case(row), row.attack, row.setting


def _means(totals: Sequence[Summary], metric: str) -> dict[tuple[str, ...], float]:
    """Case, attack and setting -> mean of one metric."""
    return {_key(s.row): s.estimate.mean for s in totals if s.row.metric == metric}
