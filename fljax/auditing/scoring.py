"""From measured attacks to lines of a table: numbers, intervals and verdicts.

Verdicts are those of `fljax.verdicts`, over the clients. A client's own interval, over
its rows, is Wilson's for shares and Student's for errors; a distance of label
distributions has none, and is judged by `nearness`.

`doubts` then says where messages and rows do not fit each other.
"""

import numpy as np

from fljax import attack_names, metrics, shrinkage, verdicts
from fljax.attacks.estimates import (
    Estimate,
    Estimates,
    LabelEstimate,
    NotApplicable,
    Prediction,
    Reconstruction,
)
from fljax.auditing import doubts, measuring, nearness, unusual
from fljax.auditing.fits import Fit
from fljax.auditing.lines import NOT_APPLICABLE, NOT_JUDGED, Line, Number
from fljax.auditing.measuring import Controls, Measured
from fljax.auditing.truth import Truth
from fljax.verdicts import Measure, Reference

_NOTHING = Controls()


def lines(
    estimates: Estimates,
    truth: Truth,
    *,
    continuous: bool,
    controls: Controls = _NOTHING,
    rows: Fit | None = None,
) -> list[Line]:
    """Every estimate scored, in order.

    Args:
      estimates: of all attacks.
      truth: about the audited rows.
      continuous: whether the sensitive column is a number.
      controls: what was measured beside.
      rows: how the true rows fit the messages; None where nobody looked.
    """
    judged = [
        name
        for name, each in estimates.items()
        if not isinstance(each, NotApplicable)
        and attack_names.is_judged(name, each.setting)
    ]
    found = [
        _line(name, each, truth, continuous, controls, len(judged))
        for name, each in estimates.items()
    ]
    return doubts.doubted(found, controls.estimates, rows)


def _line(
    name: str,
    estimate: Estimate,
    truth: Truth,
    continuous: bool,
    controls,
    attacks: int,
) -> Line:
    match estimate:
        case NotApplicable():
            return Line(name, "", "", None, (), NOT_APPLICABLE, estimate.why)
        case Prediction() if continuous:
            measured = measuring.errors(name, estimate, truth, controls)
            line = _judged(name, estimate, measured, attacks, controls.uses)
            return line.and_that(_explained(truth, line))
        case Prediction():
            measured = measuring.hits(name, estimate, truth, controls)
            few = unusual.case(name, estimate, truth, controls)
            line = _judged(name, estimate, measured, attacks, controls.uses, few)
            line = line.and_that(_silent(estimate, truth))
            rarest = measuring.rarest(name, estimate, truth, controls)
            return line._replace(
                records=measuring.per_record(estimate, truth),
                rarest=rarest and rarest._replace(is_unusual=few is not None),
            )
        case LabelEstimate():
            measured = measuring.distances(estimate, truth)
            return _judged(name, estimate, measured, attacks)
        case Reconstruction():
            measured = measuring.rebuilt(estimate, truth, controls)
            return _judged(name, estimate, measured, attacks, controls.uses)


def _judged(
    name: str,
    estimate,
    measured: Measured,
    attacks: int,
    uses: float = 1.0,
    few: unusual.Case | None = None,
) -> Line:
    measure, count, attacks = measured.measure, len(measured.own), max(attacks, 1)
    of_few, blind = None, True
    if few is not None:
        of_few = unusual.judge(few, attacks)
        blind = not unusual.would_be_shown(few, attacks)
        attacks *= unusual.RULES
    has_own = measure is not verdicts.DISTANCE
    level = verdicts.own_level(count, attacks)
    values, own = _scored(measured.own, measure, level)
    references = _references(measured, level, uses)
    verdict = _verdict(measured, values, own, references, attacks)
    shown = [
        Reference(name, _scored(each, measure, level)[0])
        for name, each in measured.shown.items()
    ]
    clients = _numbers(measured, values, [*references, *shown])
    kind, detail = verdict.kind, _beyond(verdict, measure)
    if not attack_names.is_judged(name, estimate.setting):
        kind, detail = NOT_JUDGED, ""
    elif kind in doubts.QUIET and of_few and of_few.kind == verdicts.LEAKS:
        assert few is not None
        kind, detail, verdict = verdicts.LEAKS, _of_few(few, of_few), of_few
    elif kind == verdicts.LEAKS and count > 1 and has_own:
        detail += f"; {verdict.units_alone} of {count} clients alone"
    elif not verdict.has_interval:
        detail = "one client has no interval"
        if count > 1:
            detail = "no client has an interval: expected more rows of each"
    diagnostics = {**getattr(estimate, "diagnostics", {}), **measured.diagnostics}
    line = Line(
        name, estimate.setting, measure.metric, _mean(clients, measure), clients, kind,
        detail, diagnostics, verdict.gains,
        unusual=detail if verdict is of_few else "",
    )  # fmt: skip
    undetermined = np.min(diagnostics.get("determined", 1)) < 1
    if kind in doubts.QUIET and blind and _is_blind(measured, level, attacks, uses):
        line = line.and_that(verdicts.BLIND, doubt=verdicts.BLIND)
    return line.and_that(
        "the messages do not determine the model" if undetermined else "",
        *(f"{np.mean(each.values):.4g} with {each.name} targets" for each in shown),
    )


def _verdict(
    measured: Measured, values, own, references: list[Reference], attacks: int
) -> verdicts.Verdict:
    measure = measured.measure
    if measure is verdicts.DISTANCE:
        return nearness.judge(values, references, attacks)
    errors = _errors(values, measured.own, measure)
    return verdicts.judge(values, references, measure, own, attacks, errors)


def _is_blind(measured: Measured, level: float, attacks: int, uses: float) -> bool:
    """Whether an attack that is right throughout would not be shown to leak, either."""
    best = np.ones_like if measured.measure.sign > 0 else np.zeros_like
    perfect = measured._replace(own=[best(each) for each in measured.own])
    values, own = _scored(perfect.own, measured.measure, level)
    references = _references(perfect, level, uses)
    verdict = _verdict(perfect, values, own, references, attacks)
    return verdict.kind != verdicts.LEAKS


def _references(measured: Measured, level: float, uses: float) -> list[Reference]:
    """What the attack has to exceed, with intervals over rows where it has scores."""
    found = []
    for name, each in measured.references.items():
        if isinstance(each, np.ndarray):
            found.append(Reference(name, each))
            continue
        pairs = None
        if measured.measure is verdicts.ERROR and name == verdicts.IMPUTATION:
            pairs = _paired(measured.own, each, level)
        values, ends = _scored(each, measured.measure, level)
        again = uses if name == verdicts.STRANGERS else 1.0
        errors = _errors(values, each, measured.measure)
        found.append(Reference(name, values, ends, pairs, again, errors))
    return found


def _errors(percents, scores: list[np.ndarray], measure: Measure) -> list[float] | None:
    """Standard errors over each client's rows, of shares."""
    if measure.sign < 0:
        return None
    pairs = zip(percents, scores, strict=True)
    return [metrics.standard_error(percent, len(each)) for percent, each in pairs]


def _scored(
    scores: list[np.ndarray], measure: Measure, level: float
) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Value of each client, and its interval over the rows."""
    found = [_interval(each, measure, level) for each in scores]
    values = np.array([value for value, _, _ in found])
    return values, [(low, high) for _, low, high in found]


def _paired(own, theirs, level: float) -> list[tuple[float, float]]:
    """Of each client, the interval of how much smaller its rows' errors are."""
    each = [metrics.interval(b - a, level) for a, b in zip(own, theirs, strict=True)]
    return [(found.low, found.high) for found in each]


def _interval(scores, measure: Measure, level: float) -> tuple[float, float, float]:
    if measure.sign > 0:
        percent = 100 * float(scores.mean())
        return percent, *metrics.of_rows(percent, len(scores), level)
    found = metrics.interval(scores, level)
    return found.mean, found.low, found.high


def _numbers(measured: Measured, values, references: list[Reference]) -> list[Number]:
    ends = [_interval(each, measured.measure, 0.95)[1:] for each in measured.own]
    return [
        Number(
            float(values[at]), *ends[at], int(measured.counts[at]),
            {each.name: float(each.values[at]) for each in references},
        )
        for at in range(len(values))
    ]  # fmt: skip


def _mean(clients: list[Number], measure: Measure) -> Number:
    """Mean over the clients, its interval over their rows; else over the clients."""
    values, total = [each.value for each in clients], sum(each.n for each in clients)
    names = clients[0].references
    references = {n: float(np.mean([c.references[n] for c in clients])) for n in names}
    mean = metrics.interval(values)
    if measure is verdicts.DISTANCE:
        return Number(mean.mean, mean.low, mean.high, total, references)
    low, high = (
        float(np.sqrt(np.square([c.value - getattr(c, end) for c in clients]).sum()))
        / len(clients)
        for end in ("low", "high")
    )
    return Number(mean.mean, mean.mean - low, mean.mean + high, total, references)


def _beyond(verdict: verdicts.Verdict, measure: Measure) -> str:
    """The gains in words."""
    return ", ".join(
        _gain(gain, measure, verdict.has_interval)
        for gain in verdict.to_report
        if np.isfinite(gain.mean)
    )


def _of_few(few: unusual.Case, verdict: verdicts.Verdict) -> str:
    """How many of the rows it says so of have an unusual value, in words."""
    right = few.attack.right
    said = f"of {len(right)} rows that it says have an unusual value {right.sum()} do"
    return f"{said}, {_beyond(verdict, unusual.PRECISION)}"


def _gain(gain: verdicts.Gain, measure: Measure, has_interval: bool) -> str:
    if measure is verdicts.DISTANCE:
        return nearness.said(gain, has_interval)
    share = measure.sign > 0
    unit = "points" if share else measure.text
    more, less = ("beyond", "below") if share else ("less than", "more than")
    ends = ""
    if has_interval:
        low, high = gain.low, gain.high
        if gain.mean < 0:
            low, high = -high, -low
        ends = f" [{low:.3g}, {high:.3g}]"
    what = {"majority": "the majority" if share else "the median"}.get(
        gain.name, gain.name.replace("_", " ")
    )
    direction = more if gain.mean >= 0 else less
    return f"{abs(gain.mean):.3g}{ends} {unit} {direction} {what}"


def _explained(truth: Truth, line: Line) -> str:
    """Correlation of all rows, and their share of what imputation leaves."""
    counts = truth.mask.sum(axis=1)
    of = line.diagnostics
    r = shrinkage.mean_correlation(of[shrinkage.CORRELATION], counts)
    if shrinkage.BEYOND not in of:
        return shrinkage.said(r)
    share = float(np.average(of[shrinkage.BEYOND], weights=counts))
    partial = shrinkage.mean_correlation(of[shrinkage.PARTIAL], counts)
    return shrinkage.said(r, share, partial)


def _silent(estimate: Prediction, truth: Truth) -> str:
    share = 100 * np.mean(np.asarray(estimate.value)[truth.mask] < 0)
    return f"no answer on {share:.0f} % of the rows" if share else ""
