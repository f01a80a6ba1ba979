"""The page of an audit for whoever has to decide: one HTML file, no script, no link."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jinja2
import numpy as np

from fljax import fit, verdicts
from fljax.auditing import doubts
from fljax.auditing import lines as lines_lib
from fljax.auditing.lines import Line, Number

METRICS = {
    verdicts.ACCURACY.metric: "accuracy %",
    verdicts.ERROR.metric: "mean abs. error",
    verdicts.DISTANCE.metric: "total variation",
    verdicts.REBUILT.metric: "rebuilt rows %",
}
_RULE = {
    **verdicts.RULE,
    lines_lib.MISFIT: "what the attack explains of the messages is worse than it should "
    "be (misfit above 10, where about 1 is expected; or above 3 and no better than on "
    "strangers, or with a model that explains hardly anything of them): other rows, another order of inputs, "
    "other units, or a training that is not as it was declared",
    fit.UNLEARNT: f"the last model explains less than {fit.LEARNT:g} % of the variation "
    "of some client's targets: a model that has learnt nothing need not tell anything",
    doubts.STRONGEST: "trajectory matching and linear inversion, the strongest attacks "
    "here, do not apply to this training or were not asked for: what is not shown may "
    "still be there",
    lines_lib.NOT_JUDGED: "what the model of the whole federation tells, without the "
    "messages of any one client",
    lines_lib.NOT_APPLICABLE: "the attack was not run, for the reason given",
    "intervals": "95 %, over rows: Wilson's for shares, Student's for errors; of a "
    "distance of label distributions over clients, so that a single client's cannot be "
    "called a leak. Verdicts use wider ones, for the number of attacks and clients",
}
_COLOURS = {verdicts.LEAKS: "bad"}
_FILLS = {verdicts.LEAKS: "#d98c8c"}
_TICKS = (verdicts.IMPUTATION, verdicts.STRANGERS)
_WIDTH = 500.0  # of the longest bar, in units of the drawing


class _Bar(NamedTuple):
    attack: str
    value: float
    low: float
    high: float
    baseline: float
    ticks: list[float]
    fill: str


class _Chart(NamedTuple):
    metric: str
    alt_text: str
    bars: list[_Bar]


def render(
    title: str,
    sensitive: str,
    lines: Sequence[Line],
    summary: Sequence[str],
    notes: Sequence[str],
    about: Mapping[str, Any],
) -> str:
    """The page as HTML; texts are escaped.

    Args:
      title: of the page.
      sensitive: name of the inferred column.
      lines: scored attacks.
      summary: paragraphs above the table.
      notes: paragraphs below the table.
      about: what was audited, term -> value.
    """
    return _template("page.html.j2").render(
        _table(lines),
        title=title,
        sensitive=sensitive,
        summary=summary,
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


def reference(value: Number | None, name: str | None = None) -> str:
    """What is reached without messages of these rows; empty where it was not measured.

    Args:
      value: of an attack.
      name: of the reference; None for the first, majority or the like.
    """
    if value is None or (name is not None and name not in value.references):
        return ""
    found = value.baseline if name is None else value.references[name]
    return f"{found:.4g}"


def fragment(lines: Sequence[Line]) -> str:
    """The table alone, for a notebook."""
    return _template("table.html.j2").render(_table(lines))


def _shown(line: Line) -> dict[str, str]:
    return {
        "attack": line.attack,
        "verdict": line.verdict,
        "colour": _COLOURS.get(line.verdict, "open"),
        "value": number(line.total),
        "majority": reference(line.total),
        "imputation": reference(line.total, verdicts.IMPUTATION),
        "strangers": reference(line.total, verdicts.STRANGERS),
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
            top = max(max(n.value, n.high, *n.references.values()) for _, n in finite)
            bars = [_bar(line, n, _WIDTH / (top or 1)) for line, n in finite]
            values = ", ".join(f"{line.attack} {n.value:.4g}" for line, n in drawn)
            alt_text = f"{name}: {values}; without messages {reference(drawn[0][1])}"
            charts.append(_Chart(name, alt_text, bars))
    return charts


def _bar(line: Line, n: Number, scale: float) -> _Bar:
    places = (n.value, max(n.low, 0.0), n.high, n.baseline)
    scaled = (round(scale * place, 1) for place in places)
    ticks = [round(scale * n.references[t], 1) for t in _TICKS if t in n.references]
    return _Bar(line.attack, *scaled, ticks, fill=_FILLS.get(line.verdict, "#b8c7d9"))


def _finite(n: Number) -> Number:
    """Without an interval, or a value, both ends are the value, or nothing."""
    value = n.value if np.isfinite(n.value) else 0.0
    ends = (n.low, n.high) if np.isfinite([n.low, n.high]).all() else (value, value)
    return Number(value, *ends, n.n, n.references)


def _diagnostics(lines: Sequence[Line]) -> list[dict[str, str]]:
    return [
        {"attack": line.attack, "metric": name, "value": f"{np.mean(values):.4g}"}
        for line in lines
        for name, values in line.diagnostics.items()
    ]
