"""A paper item by item: the command, what it gave, the published numbers, the verdict."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from experiments.report import commands, kept, reproduction
from experiments.report.cards import Card
from experiments.report.documents import results


class Item(NamedTuple):
    """A table, figure or theorem of a paper.

    Attributes:
      title: its heading.
      result: name of the result, which is that of its flagfile.
      why: what a reader must know of the comparison, in a sentence or two.
    """

    title: str
    result: str
    why: str = ""


_STAND_IN = "PUMS 2016 stands in for the census file, so that nothing is comparable."
PAPERS = {
    "diana2025": (
        Item("Table 1, Medical", "aia.table1.medical"),
        Item("Table 1, Income-L", "aia.table1.income_l"),
        Item(
            "Table 1, Income-L's setting on PUMS 2016", "aia.table1.pums2016", _STAND_IN
        ),
        Item("Table 1, Income-A", "aia.table1.income_a"),
        Item("Table 2, Medical", "aia.table2"),
        Item("Table 3, Medical", "aia.table3"),
        Item("Figure 1", "aia.fig1", _STAND_IN),
        Item(
            "Figure 2",
            "aia.toy.linear",
            "The paper inverts 12 messages; least squares on all of them does better at "
            "every batch size.",
        ),
        Item("Figure 3", "aia.fig3", _STAND_IN),
        Item("Figure 4", "aia.fig4"),
        Item("Figure 5", "aia.fig5", _STAND_IN),
        Item("Figure 6", "aia.fig6", _STAND_IN),
        Item(
            "Theorem 1",
            "theory.theorem1",
            "The bound holds everywhere. Its rate in the number of messages is that of "
            "shuffled mini-batches.",
        ),
    ),
    "xu_neglia2021": (
        Item(
            "Table 1",
            "lmra.table1",
            "The paper leaves rounds and start open; this setting comes nearest to its "
            "last returned models.",
        ),
        Item("The setting of Table 1, searched", "lmra.search"),
        Item("Figure 1", "lmra.fig1"),
        Item("In small, without a file", "lmra.small"),
    ),
    "wei2021": (
        Item("Table I", "fed_cdp.table1"),
        Item("Table II", "fed_cdp.table2"),
        Item("Table III", "fed_cdp.table3"),
        Item("Table IV, breast cancer", "fed_cdp.table4.breast_cancer"),
        Item("Table IV, Adult", "fed_cdp.table4.adult"),
        Item("Table IV, MNIST", "fed_cdp.table4.mnist"),
        Item("Table V, breast cancer", "fed_cdp.table5.breast_cancer"),
        Item("Table V, Adult", "fed_cdp.table5.adult"),
        Item("Table V, MNIST", "fed_cdp.table5.mnist"),
        Item("Table VI", "accounting.table6"),
        Item("Table VII, MNIST", "gradient_leakage.mnist"),
        Item("Table VII, LFW", "gradient_leakage.lfw"),
        Item("Figure 1", "gradient_leakage.fig1"),
        Item("Figure 3", "fed_cdp.fig3"),
        Item("Figure 4", "gradient_leakage.fig4"),
        Item("Figure 5", "gradient_leakage.fig5"),
        Item("Training in small, without a file", "fed_cdp.digits"),
        Item("Table VII in small, without a file", "gradient_leakage.digits"),
    ),
    "rajani2023": (
        Item("The meta-dataset of section IV-B, MNIST", "label_distribution.mnist"),
        Item("Figure 2, MNIST", "label_distribution.fig2"),
        Item("Figures 2 and 3, CIFAR-10", "label_distribution.fig3"),
        Item("Figure 4, MNIST", "label_distribution.fig4"),
        Item("Figure 6, MNIST", "label_distribution.fig6"),
        Item("In small, without a file", "label_distribution.digits"),
    ),
}


def text(paper: str) -> str:
    """All items of a paper: a table of verdicts, then a section for each.

    Args:
      paper: a key of `PAPERS`.
    """
    items = PAPERS[paper]
    cards = {item.result: _cards(item) for item in items}
    verdicts = [
        [item.title, f"`{item.result}`", _verdicts(cards[item.result])]
        for item in items
    ]
    overview = [
        "| item | result | ours beside the published numbers |",
        "| --- | --- | --- |",
    ]
    overview += [f"| {' | '.join(line)} |" for line in verdicts]
    rules = [
        f"* *{kind}*: {reproduction.RULE[kind]}." for kind in _kinds(cards.values())
    ]
    sections = [_section(item, cards[item.result]) for item in items]
    parts = ["\n".join(overview), "\n".join(rules), *sections]
    return "\n\n".join(part for part in parts if part)


def _cards(item: Item) -> list[Card]:
    """The result of the flagfile as it stands, then those with more flags."""
    names = kept.names()
    return [kept.shown(n) for n in names if commands.flagfile(n) == item.result]


def _section(item: Item, cards: list[Card]) -> str:
    parts = [f"## {item.title}", item.why]
    if item.result in kept.reasons():
        parts.append(results.missing(item.result))
    parts += map(results.of_card, cards)
    return "\n\n".join(part for part in parts if part)


def _verdicts(cards: list[Card]) -> str:
    if not cards:
        return "no result"
    kinds = Counter(each.verdict.kind for card in cards for each in card.compared)
    said = ", ".join(f"{kinds[k]} {k}" for k in reproduction.KINDS if kinds[k])
    return said or "none in the paper"


def _kinds(cards: Iterable[Sequence[Card]]) -> list[str]:
    """The verdicts that occur."""
    every = [card for each in cards for card in each]
    seen = {each.verdict.kind for card in every for each in card.compared}
    return [kind for kind in reproduction.KINDS if kind in seen]
