"""What an audit leaves behind: rows, manifest, a table for the screen, and a page."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table
from rich.text import Text

from fljax import data, files
from fljax.auditing import page, scoring
from fljax.auditing.scoring import Line
from fljax.driver import screen_tables
from fljax.driver.output import Output
from fljax.results import Row

EXPERIMENT = "audit"
_BASELINES = {
    scoring.ACCURACY: "majority",
    scoring.ERROR: "majority",
    scoring.DISTANCE: "mean_distribution",
}


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
      sensitive: name of the inferred column.
      target: of the column that the model predicts.
    """

    data: str
    model: str
    defense: str
    seed: int
    clients: np.ndarray
    used: np.ndarray
    left_out: np.ndarray
    files: Sequence[data.FileRecord]
    sensitive: str
    target: str


def write(out: Output, labels: Labels, found: Sequence[Line]) -> None:
    """Writes rows, manifest and page, and prints the table."""
    rows = list(_rows(labels, found))
    said = {line.attack: _verdict(line) for line in found}
    notes = [_intervals(labels), *_left_out(labels)]
    out.write(rows, {}, files=labels.files, verdicts=said, notes=notes)
    files.write_text(out.folder / "report.html", _page(labels, found, notes))
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


def _table(labels: Labels, found: Sequence[Line]) -> Table:
    shown = screen_tables.empty(Text(f"audit: {labels.data} {labels.model}"))
    screen_tables.add_texts(shown, "attack", "metric")
    screen_tables.add_numbers(shown, "value [95 %]", "without\nmessages")
    shown.add_column("verdict", overflow="fold")
    for line in found:
        shown.add_row(
            line.attack, page.METRICS.get(line.metric, ""), page.number(line.total),
            page.baseline(line.total), Text(_verdict(line)),
        )  # fmt: skip
    return shown


def _page(labels: Labels, found: Sequence[Line], notes: Sequence[str]) -> str:
    about = {
        "Data": labels.data,
        "Model": labels.model,
        "Defense": labels.defense,
        "Inferred": f"{labels.sensitive}; target {labels.target}",
        "Clients": ", ".join(map(str, labels.clients)),
        "Seed": labels.seed,
        "Files": "; ".join(f"{each.name} {each.sha256}" for each in labels.files),
    }
    title = f"Audit of {labels.data}, {labels.model}"
    return page.render(title, labels.sensitive, found, notes, about)
