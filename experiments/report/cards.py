"""Reproduction cards: what a run measured beside what the paper published."""

import shlex
import types
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.report import lines as lines_lib
from experiments.report.lines import Line
from experiments.report.reproduction import Number, Verdict, judge
from fljax.results import Row

_MORE_OR_FEWER = ("--seeds=", "--defense=", "--attack_kinds=")  # of one experiment
# (setting, or point of a sweep; attack; metric) -> number
Numbers = Mapping[tuple[str, str, str], Number]


class Reference(NamedTuple):
    """The published numbers that a run stands beside, and what they were measured on.

    Attributes:
      table: table or figure of the paper, e.g. `Table 1`.
      data: name of the paper's data, e.g. `Income-L`.
      same_data: whether the run had that data; otherwise its data only stand in.
      model: name of the paper's model.
      defended: whether the paper's clients used a defense; None: some did.
      numbers: the published numbers.
    """

    table: str
    data: str
    same_data: bool
    model: str
    defended: bool | None
    numbers: Numbers


class Judged(NamedTuple):
    """A line with its published number, None without one, and the verdict."""

    line: Line
    number: Number | None
    verdict: Verdict


class Card(NamedTuple):
    """One run beside one table of the paper.

    Attributes:
      name: of the run.
      rows: all its rows.
      manifest: what it was told, where it ran, how long it took.
      reference: None for a run that reproduces no table.
      judged: its numbers in order of appearance.
      missing: keys of published numbers that the run has no result for.
      pictures: its figures as SVG or PNG, by the names of their files.
    """

    name: str
    rows: Sequence[Row]
    manifest: Mapping[str, Any]
    reference: Reference | None
    judged: Sequence[Judged]
    missing: Sequence[tuple[str, str, str]]
    pictures: Mapping[str, bytes]

    @property
    def title(self) -> str:
        """Table and data of the paper, and the run's name; the name alone without."""
        return ": ".join(filter(None, [self.beside, self.name]))

    @property
    def beside(self) -> str:
        """Table and data of the paper, and data that stand in; empty without a table."""
        reference = self.reference
        if reference is None:
            return ""
        data = reference.data
        if not reference.same_data:
            data = f"{self.rows[0].data} beside {data}"
        return f"{reference.table}, {data}"

    @property
    def compared(self) -> list[Judged]:
        """The numbers that have a published one."""
        return [each for each in self.judged if each.number is not None]


def card(
    name: str,
    rows: Sequence[Row],
    manifest: Mapping[str, Any],
    reference: Reference | None,
    pictures: Mapping[str, bytes] = types.MappingProxyType({}),
) -> Card:
    """Builds a card.

    Args:
      name: of the run.
      rows: of the run.
      manifest: of the run.
      reference: None for a run that reproduces no table.
      pictures: its figures as SVG or PNG, by the names of their files; those that the
        rows give are drawn again.
    """
    judged, used = [], set()
    for line in lines_lib.lines(rows):
        key = key_of(line.row)
        number = reference.numbers.get(key) if reference else None
        if number is not None:
            used.add(key)
        differs = _differs(line.row, reference) if reference else ""
        guess = line.references.get("majority")
        verdict = judge(line.measured, number, differs, whole=line.whole, guess=guess)
        judged.append(Judged(line, number, verdict))
    missing = [key for key in reference.numbers if key not in used] if reference else []
    return Card(name, rows, manifest, reference, judged, missing, pictures)


def of_most_seeds(cards: Iterable[Card]) -> Iterator[tuple[Card, Judged]]:
    """Numbers beside a published one, without those of a run that has more seeds of it.

    Two are of one number if their runs were told the same but for seeds and what else was
    defended or attacked.
    """
    cells = [(card, each) for card in cards for each in card.compared]
    keys = [_number_of(card, each) for card, each in cells]
    most: dict[Hashable, int] = {}
    for key, (_, each) in zip(keys, cells, strict=True):
        most[key] = max(most.get(key, 0), each.line.estimate.repetitions)
    for key, (card, each) in zip(keys, cells, strict=True):
        if each.line.estimate.repetitions == most[key]:
            yield card, each


def _number_of(card: Card, each: Judged) -> Hashable:
    command = shlex.split(card.manifest["command"])  # which has no flag that came later
    told = tuple(word for word in command if not word.startswith(_MORE_OR_FEWER))
    return told, each.line.row.repeated


def key_of(row: Row) -> tuple[str, str, str]:
    """Where a row's published number is found.

    A point of a sweep has numbers of its own only: the table's belong to the run
    without a sweep.
    """
    return row.point or row.setting, row.attack, row.metric


def _differs(row: Row, reference: Reference) -> str:
    """What keeps a row from being compared, in a few words."""
    found = []
    if not reference.same_data:
        found.append("other data")
    if row.model != reference.model:
        found.append("other model")
    if reference.defended not in (None, row.defense != "none"):
        found.append("with defense" if row.defense != "none" else "without defense")
    return ", ".join(found)
