"""The page of an audit for whoever has to decide: one HTML file, no script, no link."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fljax import certainty, fit, verdicts
from fljax.auditing import at_risk, cells, doubts, drawings, words
from fljax.auditing import lines as lines_lib
from fljax.auditing.advice import Advice
from fljax.auditing.findings import Findings
from fljax.auditing.lines import Line

_RULE = {
    **verdicts.RULE,
    "leaks, of unusual values": "where 85 % of the rows or more have one value: of the "
    "rows that the attack says have another it is right of more than chance, than "
    "imputation of as many that the other columns make likeliest, and than it is of "
    "strangers, or with others' messages; exact intervals over all clients' rows, and half of the error for each "
    "of both rules",
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
    "called a leak; its verdicts are on how many times as near the attack is (to within "
    "5 %), and nearer on average. Verdicts use wider ones, for the number of attacks and clients",
}
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
    return cells.template("page.html.j2").render(
        cells.table(lines),
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


def _charts(lines: Sequence[Line]) -> list[drawings.Bars]:
    """A drawing per metric: its attacks' bars and intervals beside the baseline."""
    found = []
    for metric, name in cells.METRICS.items():
        drawn = [line for line in lines if line.metric == metric and line.total]
        if drawn:
            found.append(drawings.of_attacks(name, drawn))
    return found


def _each_client(line: Line | None, clients: Sequence[str]) -> drawings.Bars | None:
    if line is None or len(clients) < 2:
        return None
    return drawings.of_clients(
        cells.METRICS.get(line.metric, line.metric), line, clients
    )


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
        "luck": f"{records.scores[certainty.NAMED_BY_CHANCE]:.1f}",
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
