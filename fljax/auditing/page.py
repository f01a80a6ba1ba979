"""The page of an audit for whoever has to decide: one HTML file, no script, no link."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2
import numpy as np

from fljax import certainty, fit, verdicts
from fljax.auditing import at_risk, doubts, drawings, words
from fljax.auditing import lines as lines_lib
from fljax.auditing.advice import Advice
from fljax.auditing.findings import Findings
from fljax.auditing.lines import Line, Number

METRICS = {
    verdicts.ACCURACY.metric: "accuracy %",
    verdicts.ERROR.metric: "mean abs. error",
    verdicts.DISTANCE.metric: "total variation",
    verdicts.REBUILT.metric: "rebuilt rows %",
}
_RULE = {
    **verdicts.RULE,
    lines_lib.MISFIT: "messages are not what these rows would have sent (misfit above 3 "
    "for half of the clients or above 10 for one, where about 1 is expected): other rows, "
    "another order of inputs, other units, or a training that is not as it was declared",
    doubts.SHORT: "the attack explains the messages far worse than the true rows do: "
    "a better search may find more",
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
_MOST_RECORDS = 10
_DEFENSES = {
    "--defense='dp_sgd(clip=1, epsilon=8)' or 'fed_cdp(clip=1, epsilon=8)'": "clip "
    "every example's gradient and add noise; what they leave to any adversary has a bound",
    "--defense='pruning(ratio=0.9)' or 'dssgd(fraction=0.3)'": "send less; no guarantee, "
    "and an attack that knows of it reads what is sent",
    "--adversary=sum": "secure aggregation: the server sees sums alone; of few clients "
    "that hides little, and every client still sees the sum",
}


def render(findings: Findings, advice: Advice | None, about: Mapping[str, Any]) -> str:
    """The page as HTML; texts are escaped.

    Args:
      findings: of the audit.
      advice: what to do about a leak, None without one.
      about: what was audited, term -> value.
    """
    audited, lines = findings.audited, findings.lines
    foremost = words.foremost(lines)
    return _template("page.html.j2").render(
        _table(lines),
        title=f"Audit of {audited.data}, {audited.model}",
        sensitive=audited.sensitive,
        summary=findings.summary,
        notes=findings.notes,
        advice=advice,
        tried=audited.defense,
        defenses=list(_DEFENSES.items()),
        charts=_charts(lines),
        each_client=_each_client(foremost, findings.clients),
        plots=[
            drawings.calibration(line.attack, line.records)
            for line in lines
            if line.records is not None and len(line.records.plot.count)
        ],
        risk=_risk(findings, foremost),
        rule=list(_RULE.items()),
        diagnostics=list(_diagnostics(lines)),
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


def ceiling(line: Line) -> str:
    """What no adversary is above; empty where nothing is promised."""
    return "" if line.ceiling is None else f"{line.ceiling:.4g}"


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
        "ceiling": ceiling(line),
        "metric": METRICS.get(line.metric, ""),
        "setting": line.setting,
        "detail": line.detail,
    }


def _table(lines: Sequence[Line]) -> dict[str, Any]:
    return {
        "lines": [_shown(line) for line in lines],
        "capped": any(line.ceiling is not None for line in lines),
        "several_settings": len({line.setting for line in lines if line.setting}) > 1,
    }


def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fljax.auditing", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(name)


def _charts(lines: Sequence[Line]) -> list[drawings.Bars]:
    """A drawing per metric: its attacks' bars and intervals beside the baseline."""
    found = []
    for metric, name in METRICS.items():
        drawn = [line for line in lines if line.metric == metric and line.total]
        if drawn:
            found.append(drawings.of_attacks(name, drawn))
    return found


def _each_client(line: Line | None, clients: Sequence[str]) -> drawings.Bars | None:
    if line is None or len(clients) < 2:
        return None
    return drawings.of_clients(METRICS.get(line.metric, line.metric), line, clients)


def _risk(findings: Findings, foremost: Line | None) -> dict[str, Any] | None:
    """The records of which the adversary is surest, and how right it is on the whole."""
    attack = at_risk.attack(findings.lines, foremost)
    if attack is None:
        return None
    found, clients = at_risk.order(findings.records, attack), findings.audited.clients
    names = dict(zip(clients.tolist(), findings.clients, strict=True))
    counts = zip(findings.clients, at_risk.of_clients(found, clients), strict=True)
    (records,) = (e.records for e in findings.lines if e.attack == attack)
    assert records is not None
    return {
        "attack": attack,
        "named": f"{records.scores[certainty.NAMED]:.1f}",
        "records": at_risk.shown(found, names, _MOST_RECORDS),
        "clients": [(name, sure, every) for name, (sure, every) in counts],
        "sure": f"{100 * at_risk.SURE:.0f}",
    }


def _diagnostics(lines: Sequence[Line]) -> Iterator[dict[str, str]]:
    for line in lines:
        named = {} if line.records is None else line.records.scores
        said = {certainty.WORDS[name]: value for name, value in named.items()}
        means = {name: np.mean(values) for name, values in line.diagnostics.items()}
        for name, value in (said | means).items():
            yield {"attack": line.attack, "metric": name, "value": f"{value:.4g}"}
