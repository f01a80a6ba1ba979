"""What an audit leaves behind: rows, a table for the screen, and the HTML report."""

import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table
from rich.text import Text

from experiments import report
from experiments.audit import scoring
from experiments.audit.scoring import Line, Number
from experiments.report import document, figures, finished
from experiments.report.document import Block, Bullets, Heading, Mark, Paragraph
from fljax import data, files
from fljax.driver import screen_tables
from fljax.driver.output import Output
from fljax.results import Row

EXPERIMENT = "audit"
_METRICS = {
    scoring.ACCURACY: "accuracy %",
    scoring.ERROR: "mean abs. error",
    scoring.DISTANCE: "total variation",
    scoring.REBUILT: "rebuilt rows %",
}
_BASELINES = {
    scoring.ACCURACY: "majority",
    scoring.ERROR: "majority",
    scoring.DISTANCE: "mean_distribution",
}
_RULE = tuple(
    {
        "leaks, one client": "the 95 % interval over her rows (Wilson's for shares, "
        "Student's for errors) lies on the better side of the baseline; a distance of "
        "label distributions, which has no interval, is less than half the baseline's",
        "leaks, several clients": "the Student-t 95 % interval over the clients of what "
        "the attack gains over each one's own baseline lies above 0, or the interval "
        "of some client alone does at level 1 - 0.05 / clients",
        "does not show a leak": "neither; another attack, or more messages, may succeed "
        "where this one fails. Of attacks that learn nothing about one in forty is "
        "called a leak by chance",
        scoring.UNEXPLAINED: "no leak shows, but the attack could not have found one: "
        "the client's messages do not fit these rows, or her model did not learn them "
        "(misfit above 10, where about 1 is expected, or above 3 or unknown while the "
        "loss did not fall)",
        "not applicable": "the attack was not run, for the reason given",
    }.items()
)
_COLOURS = {scoring.LEAKS: "bad", scoring.SHOWS_NONE: "good"}
_PATHS = ("known", "proxy", "transcript")


class Labels(NamedTuple):
    """What is the same in all rows of an audit.

    Attributes:
      data: name of the file of rows.
      model: as `--model` names it.
      defense: name of the clients' defense, as the transcript has it.
      seed: of the attacks.
      clients: `[C]` ids of the audited clients.
      used: `[C]` messages of each.
      left_out: `[C]` messages that are not finite.
      files: that were read.
    """

    data: str
    model: str
    defense: str
    seed: int
    clients: np.ndarray
    used: np.ndarray
    left_out: np.ndarray
    files: Sequence[data.FileRecord]


def write(out: Output, labels: Labels, found: Sequence[Line]) -> None:
    """Writes rows, figures, manifest and report, and prints the table."""
    rows = list(_rows(labels, found))
    said = {line.attack: _verdict(line) for line in found}
    notes = [_intervals(labels), *_left_out(labels)]
    drawn = figures.rendered(figures.all_figures(rows))
    out.write(rows, drawn, files=labels.files, verdicts=said, notes=notes)
    run = finished.read(out.folder, (EXPERIMENT,))
    files.write_text(out.folder / "report.html", _page(run, labels, found, notes))
    out.show(_table(labels, found), *(Text(note) for note in notes))


def _rows(labels: Labels, found: Sequence[Line]):
    def row(attack, setting, client, metric, value, n):
        return Row(
            EXPERIMENT, labels.data, labels.model, labels.defense, attack, setting, "",
            labels.seed, client, metric, float(value), int(n),
        )  # fmt: skip

    def each(attack, setting, metric, values, counts):
        for client, value, n in zip(labels.clients, values, counts, strict=True):
            yield row(attack, setting, int(client), metric, value, n)
        yield row(attack, setting, "all", metric, np.mean(values), np.sum(counts))

    begun = set()
    for line in found:
        if line.total is None:
            continue
        counts = [number.n for number in line.clients]
        base = _BASELINES.get(line.metric)
        if base and line.metric not in begun:
            begun.add(line.metric)
            values = [number.baseline for number in line.clients]
            yield from each(base, "baseline", line.metric, values, counts)
        where = line.attack, line.setting
        yield from each(*where, line.metric, [c.value for c in line.clients], counts)
        for end in ("low", "high"):
            value = getattr(line.total, end)
            yield row(*where, "all", f"{line.metric}_{end}", value, line.total.n)
        for metric, values in line.said.items():
            yield from each(*where, metric, values, counts)
    used = {"messages_used": labels.used, "messages_left_out": labels.left_out}
    for metric, values in used.items():
        yield from each("none", "passive", metric, values, labels.used)


def _verdict(line: Line) -> str:
    if line.verdict == scoring.NOT_APPLICABLE:
        return f"{line.verdict}: {line.detail}"
    return f"{line.verdict} ({line.detail})" if line.detail else line.verdict


def _intervals(labels: Labels) -> str:
    count = len(labels.clients)
    if count > 1:
        return (
            f"Numbers are means over {count} clients, each of whom counts the same; "
            "95 % intervals are over the clients."
        )
    return (
        f"95 % intervals are over the rows of client {labels.clients[0]}: how far the "
        "number would vary with other rows like hers, not with another training."
    )


def _left_out(labels: Labels) -> list[str]:
    found = []
    for client, used, lost in zip(labels.clients, labels.used, labels.left_out):
        if lost:
            found.append(
                f"Client {client}: {lost} of {used + lost} messages hold NaN or "
                "infinity and are left out; her last finite one counts as her last."
            )
    return found


def _number(number: Number | None) -> str:
    if number is None:
        return ""
    if not np.isfinite(number.low):
        return f"{number.value:.4g}"
    low = max(number.low, 0)  # no measure of an audit is negative
    return f"{number.value:.2f} [{low:.2f}, {number.high:.2f}]"


def _base(number: Number | None) -> str:
    return "" if number is None else f"{number.baseline:.4g}"


def _table(labels: Labels, found: Sequence[Line]) -> Table:
    shown = screen_tables.empty(Text(f"audit: {labels.data} {labels.model}"))
    screen_tables.add_texts(shown, "attack", "metric")
    screen_tables.add_numbers(shown, "value [95 %]", "without\nmessages")
    shown.add_column("verdict", overflow="fold")
    for line in found:
        shown.add_row(
            line.attack, _METRICS.get(line.metric, ""), _number(line.total),
            _base(line.total), Text(_verdict(line)),
        )  # fmt: skip
    return shown


def _page(
    run: finished.Run, labels: Labels, found: Sequence[Line], notes: Sequence[str]
) -> str:
    flags: dict[str, Any] = dict(run.manifest["flags"])
    for name in _PATHS:  # a report need not tell how a disk is organised
        if flags.get(name):
            flags[name] = pathlib.PurePath(flags[name]).name
    # The findings say more than a summary of the verdicts would.
    manifest = run.manifest | {"flags": flags, "verdicts": {}}
    card = report.card(run.folder.name, run.rows, manifest, None)
    blocks = [b for b in report.compose_blocks([card]) if not _repeats(b)]
    at = next(
        index
        for index, block in enumerate(blocks)
        if not isinstance(block, Heading | Paragraph)
    )
    return report.to_html([*blocks[:at], *_findings(found, notes), *blocks[at:]])


def _repeats(block: Block) -> bool:
    """Whether it says what the findings say, but without their intervals."""
    match block:
        case document.Table(caption=caption):
            return caption.startswith("Results of ")
        case document.Picture(name=name):
            return name.endswith("accuracy_by_attack.svg")
        case _:
            return False


def _findings(found: Sequence[Line], notes: Sequence[str]) -> list[Block]:
    several = len({line.setting for line in found if line.setting}) > 1
    body = [
        [line.attack, Mark(line.verdict, _COLOURS.get(line.verdict, "open")),
         _number(line.total), _base(line.total), _METRICS.get(line.metric, ""),
         line.setting if several else "", line.detail]
        for line in found
    ]  # fmt: skip
    header = [
        "attack", "verdict", "value [95 %]", "without messages", "metric", "setting",
        "detail",
    ]  # fmt: skip
    return [
        Heading(2, "What this training leaks", "findings"),
        Paragraph(_summary(found)),
        document.table("Verdict of each attack", header, body, header[2:4]),
        *map(Paragraph, notes),
        Bullets(_RULE),
    ]


def _summary(found: Sequence[Line]) -> str:
    """The outcome in two sentences for a reader who meets these attacks first here."""
    ran = [line for line in found if line.total is not None]
    leaks = [line for line in ran if line.verdict == scoring.LEAKS]
    names = f": {', '.join(line.attack for line in leaks)}" if leaks else ""
    said = f"{len(leaks)} of {len(ran)} attacks that apply show a leak{names}."
    best = [line for line in ran if line.metric == scoring.ACCURACY]
    if not best:
        return said
    top = max(best, key=lambda line: line.total.value)
    return (
        f"{said} The most accurate, {top.attack}, names the right value on "
        f"{top.total.value:.1f} % of the rows; always naming the most frequent value "
        f"would be right on {top.total.baseline:.1f} %."
    )
