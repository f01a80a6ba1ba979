"""Which defense would have stopped this attack, and at what cost?

Compares runs, and points of a sweep over a defense, that differ in the defense. A
reading of the measured attacks only: another attack may succeed where these fail.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from experiments.report import document, facts, figures, glossary
from experiments.report import lines as lines_lib
from experiments.report.cards import Card
from experiments.report.document import Block, Mark, Paragraph, Picture
from experiments.report.figures import selection
from experiments.report.lines import Line
from fljax.results import Row

STOPPED, LEAKS, UNCLEAR = "no gain", "leaks", "not clear"
_MARGIN = 1.0  # points above the baseline that still count as nothing learned
_COLOURS = {STOPPED: "good", UNCLEAR: "open"}
_WORDS = {
    STOPPED: "stopped by",
    LEAKS: "not stopped by",
    UNCLEAR: "not clear for",
}
_NO_ATTACK = ("baseline", "oracle")  # settings that know more than an adversary
_UNCOMPARED = ("run_dir", "data_dir", "dry_run", "paper_table", "seeds", "sweep")


class Variant(NamedTuple):
    """One defense as one run measured it.

    Attributes:
      label: of its column.
      card: the run.
      rows: those of the run that belong to it.
    """

    label: str
    card: Card
    rows: Sequence[Row]

    @property
    def defended(self) -> bool:
        """Whether there is a defense at all."""
        return self.rows[0].defense != "none"


def groups(cards: Sequence[Card]) -> dict[str, list[Variant]]:
    """Subject -> its variants, undefended first, where there is a choice."""
    found: dict[str, dict[tuple, list[Row]]] = {}
    for index, card in enumerate(cards):
        for row in card.rows:
            if not row.point or row.point.startswith("defense"):
                at = index, row.defense, row.point
                about = facts.subject(card, row)
                found.setdefault(about, {}).setdefault(at, []).append(row)
    chosen = {}
    for key, parts in found.items():
        variants = _labelled(
            [Variant(_label(rows), cards[at[0]], rows)
             for at, rows in parts.items()]
        )  # fmt: skip
        attacked = any(_accuracies(v.rows) for v in variants)
        if attacked and len(variants) > 1 and any(v.defended for v in variants):
            chosen[key] = sorted(variants, key=lambda v: v.defended)
    return chosen


def outcome(line: Line) -> str:
    """Whether an attack still gains over the baseline.

    No gain: the upper end of the 95 % interval is less than one point above the
    baseline. Leaks: the lower end is above the baseline. Without an interval, or
    without a baseline, it is not clear.
    """
    e = line.estimate
    if line.baseline is None or not math.isfinite(e.high - e.low):
        return UNCLEAR
    if e.high < line.baseline + _MARGIN:
        return STOPPED
    return LEAKS if e.low > line.baseline else UNCLEAR


def blocks(about: str, variants: Sequence[Variant], name: str) -> list[Block]:
    """Table, answers and figure of one group; `name` is that of the figure's file."""
    columns = [_accuracies(v.rows) for v in variants]
    attacks = list(dict.fromkeys(at for column in columns for at in column))
    body = [[*at, *(_cell(column.get(at)) for column in columns)] for at in attacks]
    measured = [at for at in attacks if _is_attack(*at)]
    body.append(["loss of the last model sent", "", *_losses(variants)])
    found: list[Block] = [
        document.table(
            f"Accuracy in % by defense: {about}",
            ["attack", "setting", *(v.label for v in variants)],
            body,
            [v.label for v in variants],
        ),
        document.Bullets(_answers(variants, columns, measured)),
    ]
    if differing := _differing(variants):
        found.append(
            Paragraph(f"These runs differ in more than the defense: {differing}.")
        )
    rows = [r._replace(point=v.label) for v in variants for r in v.rows]
    figure = figures.accuracy_by_loss(rows)
    if figure is not None:
        caption = "Accuracy of each attack against the loss of the last model sent"
        content = figures.svg(figure)
        alt = f"{caption}, by defense: {about}. {figures.words_of(content)}"
        found.append(Picture(name, content, caption, alt))
    return found


def _label(rows: Sequence[Row]) -> str:
    row = rows[0]
    if row.defense == "none":
        return "no defense"
    return row.defense if row.point else f"{row.defense} {_epsilon(rows)}".strip()


def _epsilon(rows: Sequence[Row]) -> str:
    """Of the run's rows; empty if it is not finite."""
    for row in rows:
        if "epsilon" in row.metric and row.client == "all":
            stated = f"{row.metric}={facts.text(row.value)}"
            return stated if math.isfinite(row.value) else ""
    return ""


def _labelled(variants: list[Variant]) -> list[Variant]:
    """Labels that several runs share get the name of the run."""
    labels = [v.label for v in variants]
    return [
        v._replace(label=f"{v.label} ({v.card.name})")
        if labels.count(v.label) > 1
        else v
        for v in variants
    ]


def _accuracies(rows: Sequence[Row]) -> dict[tuple[str, str], Line]:
    return {
        (line.row.attack, line.row.setting): line
        for line in lines_lib.lines(rows)
        if line.row.metric == lines_lib.ACCURACY
    }


def _is_attack(attack: str, setting: str) -> bool:
    """Whether an adversary could run it, and means to gain by it."""
    return setting not in _NO_ATTACK and attack not in glossary.CONTROLS


def _cell(line: Line | None) -> document.Cell:
    if line is None:
        return ""
    text = lines_lib.interval(line.shown)
    if not _is_attack(line.row.attack, line.row.setting):
        return text
    found = outcome(line)
    shown = f"{text} {found}"
    return Mark(shown, _COLOURS[found]) if found in _COLOURS else shown


def _answers(variants, columns, attacks) -> list[tuple[str, str]]:
    """Attack and, in words, which variants stop it."""
    losses, answers, unmeasured = _losses(variants), [], []
    for at in attacks:
        said: dict[str, list[str]] = {STOPPED: [], LEAKS: [], UNCLEAR: []}
        for variant, column, loss in zip(variants, columns, losses, strict=True):
            if variant.defended and at in column:
                found = outcome(column[at])
                cost = f" (loss {loss})" if loss and found == STOPPED else ""
                said[found].append(variant.label + cost)
        parts = [
            f"{words} {', '.join(said[kind])}"
            for kind, words in _WORDS.items()
            if said[kind]
        ]
        name = f"{at[0]} ({at[1]})"
        if parts:
            answers.append((name, "; ".join(parts)))
        else:
            unmeasured.append(name)
    if unmeasured:
        answers.append(("not measured with a defense", ", ".join(unmeasured)))
    return answers


def _losses(variants: Sequence[Variant]) -> list[str]:
    """Last test loss of each variant, and how many times that without defense."""
    means = []
    for variant in variants:
        found = list(selection.utility(variant.rows).values())
        means.append(found[0].estimate.mean if found else math.nan)
    bare = [m for v, m in zip(variants, means, strict=True) if not v.defended]
    base = bare[0] if len(bare) == 1 else math.nan
    return [
        _loss(mean, base if variant.defended else math.nan)
        for variant, mean in zip(variants, means, strict=True)
    ]


def _loss(mean: float, base: float) -> str:
    if not math.isfinite(mean):
        return ""
    return f"{mean:.4g}" + (f", x {mean / base:.2f}" if base > 0 else "")


def _differing(variants: Sequence[Variant]) -> str:
    """Flags, other than the defense's, that these runs do not share."""
    flags = [variant.card.manifest.get("flags", {}) for variant in variants]
    names = dict.fromkeys(name for each in flags for name in each)
    return ", ".join(
        name
        for name in names
        if name not in _UNCOMPARED
        and not name.startswith("defense")
        and any(each.get(name) != flags[0].get(name) for each in flags)
    )
