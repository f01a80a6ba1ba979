"""Compares what attacks estimate with the truth; the only stage that reads it.

Verdicts are those of `fljax.verdicts`, over the clients, each against its own baseline:
its most frequent value, its median for a number, for labels the distribution without
any message. A client's own interval, over its rows, is Wilson's for shares and Student's
for errors; a distance of label distributions has none.

That no leak shows means nothing where the messages come of other rows. An attack on a
column is said to have *messages not explained by these rows* in place of no leak if,
for some client, their misfit, about 1 where all is right, is above 10; or if it is above
3, or unknown, and the loss of the last model on its rows is above 98 % of that of the
first. The misfit is the attack's own, else the least of any.
"""

import types
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from fljax import metrics, verdicts
from fljax.attacks.estimates import (
    Estimate,
    Estimates,
    LabelEstimate,
    NotApplicable,
    Prediction,
    Reconstruction,
)
from fljax.auditing.truth import Truth
from fljax.verdicts import ACCURACY, DISTANCE, ERROR, REBUILT, Measure

NOT_APPLICABLE = "not applicable"
UNEXPLAINED = "messages not explained by these rows"
BASELINES = {
    ACCURACY.metric: "majority",
    ERROR.metric: "majority",
    DISTANCE.metric: "mean_distribution",
    REBUILT.metric: "",
}
_CHECK = "check input_order, standardise, standardise_target"
_FITS, _MISFITS, _UNLEARNT = 3.0, 10.0, 0.98
_CLOSE = 0.1  # deviations of a column, root mean square, for a row that is rebuilt


class Number(NamedTuple):
    """One attack on one client, or on all: a number, its 95 % interval, its baseline."""

    value: float
    low: float
    high: float
    baseline: float
    n: int


class Line(NamedTuple):
    """One attack.

    Attributes:
      attack: its name.
      setting: what the adversary needs.
      metric: what was measured; empty if the attack does not apply.
      total: mean over the clients, None likewise.
      clients: number of each client.
      verdict: of `fljax.verdicts`, or one of the constants above.
      detail: why, or for how many clients.
      diagnostics: metric -> `[C]`.
    """

    attack: str
    setting: str
    metric: str
    total: Number | None
    clients: Sequence[Number]
    verdict: str
    detail: str = ""
    diagnostics: Mapping[str, np.ndarray] = types.MappingProxyType({})


class _Score(NamedTuple):
    """One client's rows: hits or errors `[n]`, or one number of all."""

    values: np.ndarray
    baseline: float
    n: int


def lines(estimates: Estimates, truth: Truth, *, continuous: bool) -> list[Line]:
    """Every estimate scored, in order."""
    found = [
        _line(name, estimate, truth, continuous) for name, estimate in estimates.items()
    ]
    return [_doubted(line, found) for line in found]


def _line(name: str, estimate: Estimate, truth: Truth, continuous: bool) -> Line:
    match estimate:
        case NotApplicable():
            return Line(name, "", "", None, (), NOT_APPLICABLE, estimate.why)
        case Prediction() if continuous:
            return _judged(name, estimate, ERROR, _errors(estimate, truth))
        case Prediction():
            line = _judged(name, estimate, ACCURACY, _hits(estimate, truth))
            return line._replace(detail=_joined(line.detail, _silent(estimate, truth)))
        case LabelEstimate():
            return _judged(name, estimate, DISTANCE, _distances(estimate, truth))
        case Reconstruction():
            return _judged(name, estimate, REBUILT, _rebuilt(estimate, truth))


def _hits(estimate: Prediction, truth: Truth) -> list[_Score]:
    found = []
    for guess, real, mask in zip(estimate.value, truth.sensitive, truth.mask):
        counts = np.bincount(real[mask].astype(int))
        hits = np.asarray(guess)[mask] == real[mask]
        found.append(_Score(hits, 100 * counts.max() / mask.sum(), mask.sum()))
    return found


def _errors(estimate: Prediction, truth: Truth) -> list[_Score]:
    found = []
    for guess, real, mask in zip(estimate.value, truth.sensitive, truth.mask):
        real = truth.unit * real[mask].astype(np.float64)
        guessed = truth.unit * np.asarray(guess)[mask].astype(np.float64)
        median = np.abs(real - np.median(real)).mean()
        found.append(_Score(np.abs(guessed - real), median, mask.sum()))
    return found


def _distances(estimate: LabelEstimate, truth: Truth) -> list[_Score]:
    def distance(shares):
        return 0.5 * np.abs(np.asarray(shares, np.float64) - truth.labels).sum(axis=1)

    ours, theirs = distance(estimate.value), distance(estimate.baseline)
    counts = truth.mask.sum(axis=1)
    return [_Score(np.array([o]), t, n) for o, t, n in zip(ours, theirs, counts)]


def _rebuilt(estimate: Reconstruction, truth: Truth) -> list[_Score]:
    found = []
    for guess, rows, mask in zip(estimate.value, truth.rows, truth.mask):
        real, ours = rows[mask] / truth.scale, np.asarray(guess)[mask] / truth.scale
        apart = np.sqrt(np.square(real[:, None] - ours[None]).mean(axis=-1))
        apart = np.where(np.isfinite(apart), apart, np.inf)
        pairs = optimize.linear_sum_assignment(np.minimum(apart, 1e6))
        mean = np.sqrt(np.square(real - real.mean(axis=0)).mean(axis=-1))
        base = 100 * (mean < _CLOSE).mean()
        found.append(_Score(apart[pairs] < _CLOSE, base, mask.sum()))
    return found


def _judged(name, estimate, measure: Measure, scores: list[_Score]) -> Line:
    clients = [_number(score, measure, 0.95) for score in scores]
    own = None
    if measure is not DISTANCE:
        level = verdicts.own_level(len(scores))
        strict = [_number(score, measure, level) for score in scores]
        own = [(each.low, each.high) for each in strict]
    baseline = verdicts.Baseline(
        BASELINES[measure.metric], [each.baseline for each in clients]
    )
    verdict = verdicts.judge([each.value for each in clients], baseline, measure, own)
    several = len(clients) > 1
    total = _mean(clients, share=measure.sign > 0) if several else clients[0]
    detail = ""
    if several and own is not None:
        detail = f"{verdict.units_alone} of {len(clients)} clients alone"
    diagnostics = getattr(estimate, "diagnostics", {})
    if np.min(diagnostics.get("determined", 1)) < 1:
        detail = _joined(detail, "the messages do not determine the model")
    return Line(
        name, estimate.setting, measure.metric, total, clients, verdict.kind, detail,
        diagnostics,
    )  # fmt: skip


def _doubted(line: Line, found: Sequence[Line]) -> Line:
    """Takes back that no leak shows if the messages seem to come of other rows."""
    settled = (verdicts.LEAKS, NOT_APPLICABLE)
    if line.verdict in settled or line.metric not in (ACCURACY.metric, ERROR.metric):
        return line
    misfit = min(_worst("misfit", [line]) or _worst("misfit", found) or [_MISFITS])
    ratio = max(_worst("loss_ratio", found), default=0.0)
    if misfit > _MISFITS:
        why = f"misfit {misfit:.4g}"
    elif misfit > _FITS and ratio > _UNLEARNT:
        why = f"loss {100 * ratio:.4g} % of the first model's"
    else:
        return line
    detail = _joined(line.detail, why, _CHECK)
    return line._replace(verdict=UNEXPLAINED, detail=detail)


def _worst(metric: str, found: Sequence[Line]) -> list[float]:
    """Of any client, for each attack that has it; NaN is infinite."""
    values = [line.diagnostics[metric] for line in found if metric in line.diagnostics]
    return [
        float(np.nan_to_num(each, nan=np.inf, posinf=np.inf).max()) for each in values
    ]


def _number(score: _Score, measure: Measure, level: float) -> Number:
    values, base, n = score
    if measure.sign > 0:
        test = stats.binomtest(int(values.sum()), len(values))
        span = test.proportion_ci(level, method="wilson")
        value = 100 * float(values.mean())
        return Number(value, 100 * span.low, 100 * span.high, float(base), int(n))
    e = metrics.interval(values, level)
    return Number(e.mean, e.low, e.high, float(base), int(n))


def _mean(clients: Sequence[Number], *, share: bool) -> Number:
    e = metrics.interval([each.value for each in clients])
    low, high = e.low, e.high
    if share:
        low, high = np.clip((low, high), 0, 100)
    base = float(np.mean([each.baseline for each in clients]))
    return Number(e.mean, low, high, base, sum(each.n for each in clients))


def _silent(estimate: Prediction, truth: Truth) -> str:
    share = 100 * np.mean(np.asarray(estimate.value)[truth.mask] < 0)
    return f"no answer on {share:.0f} % of the rows" if share else ""


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))
