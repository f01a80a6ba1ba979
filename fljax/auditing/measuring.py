"""Estimates beside the truth, row by row, and what needs none of a client's messages.

With `population` and `ceilings` this is all that reads the truth. A reference has one
score for each row, as the attack has, or one exact number for each client.

A continuous guess is judged after shrinkage towards the imputed value
(`fljax.shrinkage`).
"""

import types
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize

from fljax import certainty, metrics, shrinkage
from fljax.attacks.estimates import (
    LabelEstimate,
    Prediction,
    Reconstruction,
)
from fljax.auditing import nearness
from fljax.auditing.lines import Named, PerRecord, Rarest
from fljax.auditing.truth import Truth
from fljax.verdicts import (
    ACCURACY,
    DISTANCE,
    ERROR,
    IMPUTATION,
    MAJORITY,
    OTHERS,
    PERMUTED,
    REBUILT,
    STRANGERS,
    Measure,
)

BASELINES = {
    ACCURACY.metric: MAJORITY,
    ERROR.metric: MAJORITY,
    DISTANCE.metric: "mean_distribution",
    REBUILT.metric: "mean_row",
}
_CLOSE = 0.1  # deviations of a column, root mean square, for a row that is rebuilt
_Scores = list[np.ndarray]


class Imputed(NamedTuple):
    """What the other columns tell, without any message.

    Attributes:
      own: `[n]` values of each client's rows.
      strangers: likewise of its strangers; None for a category.
      left: variance that imputation leaves of a number.
      from_all: as `own`, from all other rows and from whose each is.
      unusual: `[W][C]` scores `[n]` of how likely each row has an unusual value
        (`unusual`), from others' rows and as `from_all`, by each method of imputation;
        nothing where none is.
    """

    own: _Scores
    strangers: _Scores | None = None
    left: float = 0.0
    from_all: Sequence[np.ndarray] = ()
    unusual: Sequence[_Scores] = ()


class Controls(NamedTuple):
    """What is measured beside the attacks.

    Attributes:
      imputed: None if it was not asked for.
      estimates: of the attacks on strangers, by their names.
      strangers: the truth about these rows; None without any.
      uses: how often each of them is drawn, on average.
      drawn: numbers of these rows, of each client; nothing where each is there once.
      permuted: estimates with the targets in random order, by names.
      others: estimates with others' messages, by names.
    """

    imputed: Imputed | None = None
    estimates: Mapping[str, Prediction] = types.MappingProxyType({})
    strangers: Truth | None = None
    uses: float = 1.0
    drawn: Sequence[np.ndarray] = ()
    permuted: Mapping[str, Prediction] = types.MappingProxyType({})
    others: Mapping[str, Prediction] = types.MappingProxyType({})


class Measured(NamedTuple):
    """One attack on every client.

    Attributes:
      measure: what was measured.
      own: `[C]` of scores `[n]`: hits, errors, or one number.
      references: name -> the same of what needs no message, or exact numbers `[C]`.
      counts: `[C]` rows.
      diagnostics: metric -> `[C]`, what can only be said with the truth.
      shown: as `references`, but what is shown only.
    """

    measure: Measure
    own: _Scores
    references: dict[str, _Scores | np.ndarray]
    counts: np.ndarray
    diagnostics: Mapping[str, np.ndarray] = types.MappingProxyType({})
    shown: Mapping[str, _Scores] = types.MappingProxyType({})


def hits(name: str, estimate: Prediction, truth: Truth, beside: Controls) -> Measured:
    """Of a category: whether each row is named rightly."""
    real = real_values(truth)
    usual = metrics.usual_values(real, continuous=False)
    majority = [100 * np.mean(each == v) for each, v in zip(real, usual, strict=True)]
    references: dict[str, _Scores | np.ndarray] = {MAJORITY: np.array(majority)}
    if beside.imputed is not None:
        pairs = zip(beside.imputed.own, real, strict=True)
        references[IMPUTATION] = [guess == each for guess, each in pairs]
    if beside.strangers is not None and name in beside.estimates:
        references[STRANGERS] = _hits(beside.estimates[name], beside.strangers)
    if name in beside.others:
        references[OTHERS] = _hits(beside.others[name], truth)
    shown = {}
    if name in beside.permuted:
        shown[PERMUTED] = _hits(beside.permuted[name], truth)
    counts = truth.mask.sum(axis=1)
    return Measured(ACCURACY, _hits(estimate, truth), references, counts, {}, shown)


def per_record(estimate: Prediction, truth: Truth) -> PerRecord | None:
    """Of a category: how sure of each row, and how rightly; None without a posterior."""
    if "probability" not in estimate.details:
        return None
    given = estimate.details["probability"], truth.sensitive, truth.mask
    everyone = certainty.posterior(*given)
    each = [certainty.posterior(*one) for one in zip(*given, strict=True)]
    return PerRecord(
        certainty.scores(everyone),
        [certainty.scores(one) for one in each],
        [len(one.truth) for one in each],
        certainty.bins(everyone),
    )


def rarest(
    name: str, estimate: Prediction, truth: Truth, beside: Controls
) -> Rarest | None:
    """Of a category: how often its rarest value is named, and by what else."""
    real = real_values(truth)
    kinds, counts = np.unique(np.concatenate(real), return_counts=True)
    if len(kinds) < 2:
        return None
    value = int(kinds[counts.argmin()])
    references = {}
    if beside.imputed is not None:
        references[IMPUTATION] = _named(value, beside.imputed.own, real)
    if beside.strangers is not None and name in beside.estimates:
        theirs = values_of(beside.estimates[name], beside.strangers)
        references[STRANGERS] = _named(value, theirs, real_values(beside.strangers))
    return Rarest(value, _named(value, values_of(estimate, truth), real), references)


def _named(value: int, guesses: _Scores, real: _Scores) -> Named:
    said, has = (np.concatenate(each) == value for each in (guesses, real))
    each = said & has, has, said & ~has, ~has
    return Named(*(int(rows.sum()) for rows in each))


def errors(name: str, estimate: Prediction, truth: Truth, beside: Controls) -> Measured:
    """Of a number: how far each row is from the truth, in units of the file."""
    imputed, real = beside.imputed, real_values(truth)
    usual = metrics.usual_values(real, continuous=True)
    median = [np.abs(each - v).mean() for each, v in zip(real, usual, strict=True)]
    own, left = (None, 0.0) if imputed is None else (imputed.own, imputed.left)
    found = _errors(estimate, truth, own, left, truth.unit)
    references: dict[str, _Scores | np.ndarray] = {
        MAJORITY: truth.unit * np.array(median)
    }
    if own is not None:
        imputation = [each.imputed for each in found if each.imputed is not None]
        references[IMPUTATION] = imputation
    if beside.strangers is not None and name in beside.estimates:
        told = beside.estimates[name], beside.strangers
        theirs = None if imputed is None else imputed.strangers
        references[STRANGERS] = [
            each.error for each in _errors(*told, theirs, left, truth.unit)
        ]
    if name in beside.others:
        again = _errors(beside.others[name], truth, own, left, truth.unit)
        references[OTHERS] = [each.error for each in again]
    diagnostics = {
        metric: np.array([each.numbers[metric] for each in found])
        for metric in found[0].numbers
    }
    shown = {}
    if name in beside.permuted:
        again = _errors(beside.permuted[name], truth, own, left, truth.unit)
        shown[PERMUTED] = [each.error for each in again]
    errors, counts = [each.error for each in found], truth.mask.sum(axis=1)
    return Measured(ERROR, errors, references, counts, diagnostics, shown)


def _errors(
    estimate: Prediction, truth: Truth, imputed: _Scores | None, left: float, unit
) -> list[shrinkage.Judged]:
    guess, real = values_of(estimate, truth), real_values(truth)
    base = [None] * len(real) if imputed is None else imputed
    return [
        shrinkage.judge(*each, left, unit)
        for each in zip(guess, real, base, strict=True)
    ]


def distances(estimate: LabelEstimate, truth: Truth) -> Measured:
    """Of label distributions: distance from a client's, and from all other clients'.

    The latter is the `nearness.typical` one. Beside it: that of what needs no message, and
    of what others' messages would say.
    """
    value = np.asarray(estimate.value, np.float64)
    apart = 0.5 * np.abs(value[:, None] - truth.labels[None]).sum(axis=-1)  # [C, C]
    theirs = 0.5 * np.abs(np.asarray(estimate.baseline) - truth.labels).sum(axis=1)
    references: dict[str, _Scores | np.ndarray] = {BASELINES[DISTANCE.metric]: theirs}
    if estimate.others is not None:
        told = np.asarray(estimate.others, np.float64)
        references[OTHERS] = 0.5 * np.abs(told - truth.labels).sum(axis=1)
    count = len(value)
    if count > 1:
        others = apart[~np.eye(count, dtype=bool)].reshape(count, -1)
        references[STRANGERS] = nearness.typical(others)
    own = [np.array([each]) for each in np.diag(apart)]
    return Measured(DISTANCE, own, references, truth.mask.sum(axis=1))


def rebuilt(estimate: Reconstruction, truth: Truth, beside: Controls) -> Measured:
    """Of whole rows: which have one of the estimated rows close by.

    Beside it: which are close to the mean of the client's others, or of everybody's.
    """
    real = [
        rows[at] / truth.scale for rows, at in zip(truth.rows, truth.mask, strict=True)
    ]
    everybody = np.concatenate(real)
    references: dict[str, _Scores | np.ndarray] = {
        BASELINES[REBUILT.metric]: np.array(
            [
                100 * (_near_mean(own, own) | _near_mean(own, everybody)).mean()
                for own in real
            ]
        )
    }
    if beside.strangers is not None:
        references[STRANGERS] = _rebuilt(estimate, beside.strangers)
    counts = truth.mask.sum(axis=1)
    return Measured(REBUILT, _rebuilt(estimate, truth), references, counts)


def real_values(truth: Truth) -> list[np.ndarray]:
    """`[n]` numbers of the true values of each client's rows."""
    return [each[mask] for each, mask in zip(truth.sensitive, truth.mask, strict=True)]


def values_of(estimate: Prediction, truth: Truth) -> list[np.ndarray]:
    """`[n]` values that an attack names for each client's rows."""
    pairs = zip(estimate.value, truth.mask, strict=True)
    return [np.asarray(guess, np.float64)[mask] for guess, mask in pairs]


def _hits(estimate: Prediction, truth: Truth) -> _Scores:
    pairs = zip(values_of(estimate, truth), real_values(truth), strict=True)
    return [guess == real for guess, real in pairs]


def _near_mean(own: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which of `own` are close to the mean of the `rows` but itself: none if alone."""
    if len(rows) < 2:
        return np.zeros(len(own), bool)
    mean = (rows.sum(axis=0) - own) / (len(rows) - 1)
    return np.sqrt(np.square(own - mean).mean(axis=-1)) < _CLOSE


def _rebuilt(estimate: Reconstruction, truth: Truth) -> _Scores:
    found = []
    for guess, rows, mask in zip(estimate.value, truth.rows, truth.mask, strict=True):
        real, ours = rows[mask] / truth.scale, np.asarray(guess) / truth.scale
        apart = np.sqrt(np.square(real[:, None] - ours[None]).mean(axis=-1))
        apart = np.where(np.isfinite(apart), apart, np.inf)
        pairs = optimize.linear_sum_assignment(np.minimum(apart, 1e6))
        close = np.zeros(len(real), bool)
        close[pairs[0]] = apart[pairs] < _CLOSE
        found.append(close)
    return found
