"""Compares what attacks said with the truth; the only stage that has it.

The verdict. *Leaks*: with one client, the 95 % interval over her rows lies on the
attack's side of the baseline; with several, the interval over the clients of what each
gains over her own baseline lies above 0, or that of some single client does at level
1 - 0.05 / clients. Otherwise the attack *does not show a leak*, which is no proof that
there is none. Baselines need no message: her most frequent value (majority), her median
for a number, or for labels the proxy rows' distribution (uniform without).

Intervals over rows are Wilson's for shares and Student's for errors; a distance of
label distributions has none, and leaks for one client where it is less than half the
baseline's.

That no leak shows means nothing where the messages come of other rows. An attack on a
column is said to have *messages not explained by these rows* in place of no leak if,
for some client, their misfit, about 1 where all is right, is above 10; or if it is above
3, or unknown, and the loss of the last model on her rows is above 98 % of that of the
first. The misfit is the attack's own, else the least of any.
"""

import types
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

from fljax import metrics
from fljax.auditing.evidence import Answer, Answers, Guess, Rebuilt, Shares, Skipped

ACCURACY = "aia_accuracy_percent"
ERROR = "aia_mean_absolute_error"
DISTANCE = "total_variation"
REBUILT = "rebuilt_rows_percent"
LEAKS, SHOWS_NONE, NOT_APPLICABLE = "leaks", "does not show a leak", "not applicable"
UNEXPLAINED = "messages not explained by these rows"
_CHECK = "check --input_order, --standardise, --standardise_target"
_FITS, _MISFITS, _UNLEARNT = 3.0, 10.0, 0.98
_CLOSE = 0.1  # deviations of a column, root mean square, for a row that is rebuilt
_HALF = 0.5


class Truth(NamedTuple):
    """What no attack is given.

    Attributes:
      sensitive: `[C, n]` number of the true candidate, or the encoded value.
      mask: `[C, n]` True for real rows.
      unit: of one encoded unit, in units of the file.
      labels: `[C, K]` share of each class.
      rows: `[C, n, D]` inputs, sensitive block last.
      scale: `[D]` deviation of each input over the file.
    """

    sensitive: np.ndarray
    mask: np.ndarray
    unit: float
    labels: np.ndarray
    rows: np.ndarray
    scale: np.ndarray


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
      verdict: one of the constants above.
      detail: why, or for how many clients.
      said: diagnostics, metric -> `[C]`.
    """

    attack: str
    setting: str
    metric: str
    total: Number | None
    clients: Sequence[Number]
    verdict: str
    detail: str = ""
    said: Mapping[str, np.ndarray] = types.MappingProxyType({})


class _Case(NamedTuple):
    """One client's rows: hits or errors `[n]`, or one number of all."""

    values: np.ndarray
    baseline: float
    n: int


def lines(answers: Answers, truth: Truth, *, continuous: bool) -> list[Line]:
    """Every answer scored, in order."""
    found = [
        _line(name, answer, answers, truth, continuous)
        for name, answer in answers.items()
        if not (isinstance(answer, Shares) and answer.baseline)
    ]
    return [_doubted(line, found) for line in found]


def _line(
    name: str, answer: Answer, answers: Answers, truth: Truth, continuous: bool
) -> Line:
    match answer:
        case Skipped():
            return Line(name, "", "", None, (), NOT_APPLICABLE, answer.why)
        case Guess() if continuous:
            return _judged(name, answer, ERROR, _errors(answer, truth))
        case Guess():
            line = _judged(name, answer, ACCURACY, _hits(answer, truth))
            return line._replace(detail=_joined(line.detail, _silent(answer, truth)))
        case Shares():
            base = next(a for a in answers.values() if getattr(a, "baseline", False))
            return _judged(name, answer, DISTANCE, _distances(answer, base, truth))
        case Rebuilt():
            return _judged(name, answer, REBUILT, _rebuilt(answer, truth))


def _hits(answer: Guess, truth: Truth) -> list[_Case]:
    found = []
    for guess, real, mask in zip(answer.value, truth.sensitive, truth.mask):
        counts = np.bincount(real[mask].astype(int))
        hits = guess[mask] == real[mask]
        found.append(_Case(hits, 100 * counts.max() / mask.sum(), mask.sum()))
    return found


def _errors(answer: Guess, truth: Truth) -> list[_Case]:
    found = []
    for guess, real, mask in zip(answer.value, truth.sensitive, truth.mask):
        real = truth.unit * real[mask].astype(np.float64)
        errors = np.abs(truth.unit * guess[mask].astype(np.float64) - real)
        median = np.abs(real - np.median(real)).mean()
        found.append(_Case(errors, median, mask.sum()))
    return found


def _distances(answer: Shares, base: Shares, truth: Truth) -> list[_Case]:
    def distance(shares):
        return 0.5 * np.abs(np.asarray(shares, np.float64) - truth.labels).sum(axis=1)

    pairs = zip(distance(answer.value), distance(base.value), truth.mask.sum(axis=1))
    return [_Case(np.array([ours]), theirs, n) for ours, theirs, n in pairs]


def _rebuilt(answer: Rebuilt, truth: Truth) -> list[_Case]:
    found = []
    for guess, rows, mask in zip(answer.value, truth.rows, truth.mask):
        real, ours = rows[mask] / truth.scale, guess[mask] / truth.scale
        apart = np.sqrt(np.square(real[:, None] - ours[None]).mean(axis=-1))
        apart = np.where(np.isfinite(apart), apart, np.inf)
        pairs = optimize.linear_sum_assignment(np.minimum(apart, 1e6))
        mean = np.sqrt(np.square(real - real.mean(axis=0)).mean(axis=-1))
        base = 100 * (mean < _CLOSE).mean()
        found.append(_Case(apart[pairs] < _CLOSE, base, mask.sum()))
    return found


def _judged(name, answer, metric: str, cases: list[_Case]) -> Line:
    clients = [_number(case, metric, 0.95) for case in cases]
    sign = 1 if metric in (ACCURACY, REBUILT) else -1
    strict = [_number(case, metric, 1 - 0.05 / len(cases)) for case in cases]
    each = sum(_beats(number, sign) for number in strict)
    total = clients[0] if len(clients) == 1 else _mean(clients, share=sign > 0)
    gains = metrics.interval([sign * (c.value - c.baseline) for c in clients])
    leaks = each > 0 or (len(clients) > 1 and gains.low > 0)
    detail = f"{each} of {len(clients)} clients alone" if len(clients) > 1 else ""
    said = getattr(answer, "said", {})
    if said.get("determined", np.ones(1)).min() < 1:
        detail = _joined(detail, "the messages do not determine the model")
    verdict = LEAKS if leaks else SHOWS_NONE
    return Line(name, answer.setting, metric, total, clients, verdict, detail, said)


def _doubted(line: Line, found: Sequence[Line]) -> Line:
    """Takes back that no leak shows if the messages seem to come of other rows."""
    if line.verdict != SHOWS_NONE or line.metric not in (ACCURACY, ERROR):
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
    said = [line.said[metric] for line in found if metric in line.said]
    return [
        float(np.nan_to_num(each, nan=np.inf, posinf=np.inf).max()) for each in said
    ]


def _number(case: _Case, metric: str, level: float) -> Number:
    values, base, n = case
    if metric in (ACCURACY, REBUILT):
        test = stats.binomtest(int(values.sum()), len(values))
        span = test.proportion_ci(level, method="wilson")
        value = 100 * float(values.mean())
        return Number(value, 100 * span.low, 100 * span.high, float(base), int(n))
    e = metrics.interval(values, level)
    return Number(e.mean, e.low, e.high, float(base), int(n))


def _beats(number: Number, sign: int) -> bool:
    if not np.isfinite(number.low):  # one distance
        return sign < 0 and number.n > 1 and number.value < _HALF * number.baseline
    return number.low > number.baseline if sign > 0 else number.high < number.baseline


def _mean(clients: Sequence[Number], *, share: bool) -> Number:
    e = metrics.interval([each.value for each in clients])
    low, high = e.low, e.high
    if share:
        low, high = np.clip((low, high), 0, 100)
    base = float(np.mean([each.baseline for each in clients]))
    return Number(e.mean, low, high, base, sum(each.n for each in clients))


def _silent(answer: Guess, truth: Truth) -> str:
    share = 100 * np.mean(answer.value[truth.mask] < 0)
    return f"no answer on {share:.0f} % of the rows" if share else ""


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))
