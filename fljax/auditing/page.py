"""The page of an audit for whoever has to decide: one HTML file, no script, no link."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jinja2
import numpy as np

from fljax import verdicts
from fljax.auditing import scoring
from fljax.auditing.scoring import Line, Number

METRICS = {
    verdicts.ACCURACY.metric: "accuracy %",
    verdicts.ERROR.metric: "mean abs. error",
    verdicts.DISTANCE.metric: "total variation",
    verdicts.REBUILT.metric: "rebuilt rows %",
}
_RULE = {
    **verdicts.RULE,
    scoring.UNEXPLAINED: "no leak shows, but the attack could not have found one: "
    "the client's messages do not fit these rows, or its model did not learn them "
    "(misfit above 10, where about 1 is expected, or above 3 or unknown while the "
    "loss did not fall)",
    scoring.NOT_APPLICABLE: "the attack was not run, for the reason given",
    "intervals of one client": "over its rows: Wilson's for shares, Student's for "
    "errors; a distance of label distributions has none, so that a single client's "
    "cannot be called a leak",
}
_COLOURS = {verdicts.LEAKS: "bad", verdicts.NO_GAIN: "good"}
_FILLS = {verdicts.LEAKS: "#d98c8c"}
_WIDTH = 500.0  # of the longest bar, in units of the drawing


class _Bar(NamedTuple):
    attack: str
    value: float
    low: float
    high: float
    baseline: float
    fill: str


class _Chart(NamedTuple):
    metric: str
    alt_text: str
    bars: list[_Bar]


def render(
    title: str,
    sensitive: str,
    lines: Sequence[Line],
    notes: Sequence[str],
    about: Mapping[str, Any],
) -> str:
    """The page as HTML; texts are escaped.

    Args:
      title: of the page.
      sensitive: name of the inferred column.
      lines: scored attacks.
      notes: paragraphs below the table.
      about: what was audited, term -> value.
    """
    return _template("page.html.j2").render(
        _table(lines),
        title=title,
        sensitive=sensitive,
        summary=summary(lines),
        notes=notes,
        charts=_charts(lines),
        rule=list(_RULE.items()),
        diagnostics=_diagnostics(lines),
        about=list(about.items()),
    )


def number(value: Number | None) -> str:
    """`value [low, high]`; empty without one."""
    if value is None:
        return ""
    if not np.isfinite(value.low):
        return f"{value.value:.4g}"
    low = max(value.low, 0)  # no measure of an audit is negative
    return f"{value.value:.2f} [{low:.2f}, {value.high:.2f}]"


def baseline(value: Number | None) -> str:
    """What is reached without any message; empty without one."""
    return "" if value is None else f"{value.baseline:.4g}"


def summary(lines: Sequence[Line]) -> str:
    """The outcome in two sentences for a reader who meets these attacks first here."""
    measured = [(line, line.total) for line in lines if line.total is not None]
    leaks = [line for line, _ in measured if line.verdict == verdicts.LEAKS]
    names = f": {', '.join(line.attack for line in leaks)}" if leaks else ""
    text = f"{len(leaks)} of {len(measured)} attacks that apply show a leak{names}."
    metric = verdicts.ACCURACY.metric
    accurate = [(total, line) for line, total in measured if line.metric == metric]
    if not accurate:
        return text
    total, top = max(accurate, key=lambda pair: pair[0].value)
    return (
        f"{text} The most accurate, {top.attack}, names the right value on "
        f"{total.value:.1f} % of the rows; always naming the most frequent value "
        f"would be right on {total.baseline:.1f} %."
    )


def fragment(lines: Sequence[Line]) -> str:
    """The table alone, for a notebook."""
    return _template("table.html.j2").render(_table(lines))


def _shown(line: Line) -> dict[str, str]:
    return {
        "attack": line.attack,
        "verdict": line.verdict,
        "colour": _COLOURS.get(line.verdict, "open"),
        "value": number(line.total),
        "baseline": baseline(line.total),
        "metric": METRICS.get(line.metric, ""),
        "setting": line.setting,
        "detail": line.detail,
    }


def _table(lines: Sequence[Line]) -> dict[str, Any]:
    return {
        "lines": [_shown(line) for line in lines],
        "several_settings": len({line.setting for line in lines if line.setting}) > 1,
    }


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fljax.auditing", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)


def _charts(lines: Sequence[Line]) -> list[_Chart]:
    """A drawing per metric: its attacks' bars and intervals beside the baseline."""
    charts = []
    for metric, name in METRICS.items():
        drawn = [(e, e.total) for e in lines if e.metric == metric and e.total]
        if drawn:
            finite = [(line, _finite(total)) for line, total in drawn]
            top = max(max(n.value, n.high, n.baseline) for _, n in finite)
            bars = [_bar(line, n, _WIDTH / (top or 1)) for line, n in finite]
            values = ", ".join(f"{line.attack} {n.value:.4g}" for line, n in drawn)
            alt_text = f"{name}: {values}; without messages {baseline(drawn[0][1])}"
            charts.append(_Chart(name, alt_text, bars))
    return charts


def _bar(line: Line, n: Number, scale: float) -> _Bar:
    places = (n.value, max(n.low, 0.0), n.high, n.baseline)
    scaled = (round(scale * place, 1) for place in places)
    return _Bar(line.attack, *scaled, fill=_FILLS.get(line.verdict, "#b8c7d9"))


def _finite(n: Number) -> Number:
    """Without an interval, or a value, both ends are the value, or nothing."""
    value = n.value if np.isfinite(n.value) else 0.0
    ends = (n.low, n.high) if np.isfinite([n.low, n.high]).all() else (value, value)
    return Number(value, *ends, n.baseline, n.n)


def _diagnostics(lines: Sequence[Line]) -> list[dict[str, str]]:
    return [
        {"attack": line.attack, "metric": name, "value": f"{np.mean(values):.4g}"}
        for line in lines
        for name, values in line.diagnostics.items()
    ]
