"""Which defense would have stopped this attack, and at what cost?

Compares runs, and points of a sweep over a defense, that differ in the defense.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from experiments import epsilons
from experiments.report import facts, figures, gains, tables
from experiments.report import lines as lines_lib
from experiments.report.cards import Card
from experiments.report.figures import selection
from experiments.report.lines import Line
from experiments.report.tables import Mark, Table
from fljax import fit, verdicts
from fljax.driver.option import PLACES
from fljax.results import Row

_STOPPED = "stopped"  # by the defense
_UNLEARNT = "hardly learnt"  # by the model, so that there is nothing to read
_COLOURS = {verdicts.LEAKS: "bad", _STOPPED: "good"}
_UNCOMPARED = (*PLACES, "paper_table", "seeds", "sweep")


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
    found: dict[tuple[str, tuple[str, ...]], dict[tuple, list[Row]]] = {}
    for index, card in enumerate(cards):
        for row in card.rows:
            if not row.point or row.point.startswith("defense"):
                at = index, row.defense, row.point
                about = facts.subject(card, row), facts.data_of(card)
                found.setdefault(about, {}).setdefault(at, []).append(row)
    chosen, several = {}, Counter(about for about, _ in found)
    for (about, _), parts in found.items():
        variants = _labelled(
            [Variant(_label(rows), cards[at[0]], rows)
             for at, rows in parts.items()]
        )  # fmt: skip
        attacked = any(_accuracies(v.rows) for v in variants)
        if attacked and len(variants) > 1 and any(v.defended for v in variants):
            runs = (variant.card for variant in variants)
            key = about if several[about] == 1 else facts.of_runs(about, runs)
            chosen[key] = sorted(variants, key=lambda v: v.defended)
    return chosen


class Comparison(NamedTuple):
    """The variants of one subject.

    Attributes:
      about: data, model, inferred column.
      table: accuracy of each attack, with its verdict, and the loss, by variant.
      differing: flags, other than the defense's, that the runs do not share.
      figure: SVG, None where there is none.
    """

    about: str
    table: Table
    differing: str
    figure: bytes | None


def comparisons(cards: Sequence[Card]) -> list[Comparison]:
    """One for each subject with a choice of defenses."""
    return [_comparison(about, each) for about, each in groups(cards).items()]


def _comparison(about: str, variants: Sequence[Variant]) -> Comparison:
    columns = [_accuracies(v.rows) for v in variants]
    leaking = {
        at
        for v in variants
        if not v.defended
        for at, score in _scores(v.rows).items()
        if score.verdict.kind == verdicts.LEAKS
    }
    judged = [_verdicts(v, leaking) for v in variants]
    attacks = list(dict.fromkeys(at for column in columns for at in column))
    body: list[list[tables.Cell]] = [
        [
            *at,
            *(
                _cell(c.get(at), v.get(at))
                for c, v in zip(columns, judged, strict=True)
            ),
        ]
        for at in attacks
    ]
    most = [_most(column) for column in columns]
    if any(most):
        body.append(["the most that any adversary can have", "", *most])
    body.append(["loss of the last model sent", "", *_losses(variants)])
    labels = [v.label for v in variants]
    caption = f"Accuracy in % by defense: {about}"
    shown = tables.table(caption, ["attack", "setting", *labels], body, labels)
    rows = [r._replace(point=v.label) for v in variants for r in v.rows]
    figure = figures.accuracy_by_loss(rows)
    drawn = None if figure is None else figures.svg(figure)
    return Comparison(about, shown, _differing(variants), drawn)


def _label(rows: Sequence[Row]) -> str:
    row = rows[0]
    if row.defense == "none":
        return "no defense"
    promised = epsilons.stated(rows).get((row.defense, row.point))
    if row.point or promised is None:
        return row.defense
    return f"{row.defense}, epsilon {promised.text}"


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


def _scores(rows: Sequence[Row]) -> dict[tuple[str, str], gains.Score]:
    return {
        (score.row.attack, score.row.setting): score
        for score in gains.scores(rows)
        if score.row.metric == lines_lib.ACCURACY
    }


def _verdicts(
    variant: Variant, leaking: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """A verdict for each attack; a leak without the defense may be stopped by it."""
    learnt = all(
        fit.has_learnt(each.get(selection.EXPLAINED[0], math.nan))
        for each in selection.explained(variant.rows).values()
    )
    found = {}
    for at, score in _scores(variant.rows).items():
        found[at] = score.verdict.kind
        if variant.defended and score.is_stopped and not learnt:
            found[at] = _UNLEARNT
        elif variant.defended and score.is_stopped and at in leaking:
            found[at] = _STOPPED
    return found


def _cell(line: Line | None, kind: str | None) -> tables.Cell:
    if line is None:
        return ""
    text = lines_lib.interval(line.shown)
    if line.is_impossible:
        return Mark(f"{text} {verdicts.IMPOSSIBLE}", "bad")
    return text if kind is None else Mark(f"{text} {kind}", _COLOURS.get(kind, "open"))


def _most(column: Mapping[tuple[str, str], Line]) -> str:
    """Empty where the defense promises nothing to whom it was measured against."""
    known = [line.ceiling for line in column.values() if line.ceiling is not None]
    return f"{known[0]:.2f}" if known else ""


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
