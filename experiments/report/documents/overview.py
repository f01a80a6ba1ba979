"""Every table and figure of the papers: how far it is repeated, and what is left.

The list is `experiments/report/items.toml`; how far follows from the kept results. An
item of which nothing is left must have every number that was published of data that can
be had, or writing the page fails: nobody can call a table done that is not. Of what is
printed without numbers the list alone says what is left.
"""

import pathlib
import tomllib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from experiments.fed_cdp.published import as_printed
from experiments.report import commands, kept, published, reproduction
from experiments.report.cards import of_most_seeds
from experiments.report.documents import writing
from experiments.report.reproduction import SINGLE_SEED
from fljax.driver.config import ConfigError

_FILE = pathlib.Path(__file__).parents[1] / "items.toml"
PAGES = {
    "diana2025": "Diana et al. 2025",
    "xu_neglia2021": "Xu and Neglia 2021",
    "wei2021": "Wei et al. 2021",
    "rajani2023": "Rajani et al. 2023",
}
DONE, REST = "done", "done but for data that could not be had"
LESS, OTHER = "done in less than the paper's size", "on other data"
PARTLY, MISSING = "partly", "not run"


class Item(NamedTuple):
    """A table or figure, as `items.toml` has it.

    Attributes:
      item: its name.
      results: flagfiles whose kept results belong to it.
      table: name in `published.csv`; empty without printed numbers.
      lacking: what could not be had, in words.
      without: words of `published.csv` whose lines are of that: a data set, a metric.
      stands_in: other data that all of it was run on, which makes nothing comparable.
      less: what was run in less than the paper's size, though every curve is there.
      left: what was run of an item that is not done, and what could be and was not.
      elsewhere: where it is measured, if not in a kept result.
      note: what else a reader must know.
    """

    item: str
    results: Sequence[str]
    table: str = ""
    lacking: str = ""
    without: Sequence[str] = ()
    stands_in: str = ""
    less: str = ""
    left: str = ""
    elsewhere: str = ""
    note: str = ""


class Standing(NamedTuple):
    """How far an item is repeated.

    Attributes:
      status: one of the six.
      published: numbers that the paper prints.
      measured: of them, those beside which a kept result has one of the same data.
      verdicts: kind -> how many; of a number with several results that of the first, in
        the order of the item's and by name, but of several seeds before one.
    """

    status: str
    published: int
    measured: int
    verdicts: Counter


def items() -> dict[str, list[Item]]:
    """Paper -> its items.

    Raises:
      ConfigError: a key of the file that no item has.
    """
    listed = tomllib.loads(_FILE.read_text())
    try:
        return {
            paper: [Item(**each) for each in told] for paper, told in listed.items()
        }
    except TypeError as error:
        raise ConfigError(f"{_FILE.name}: {error}") from error


def standing(paper: str, item: Item) -> Standing:
    """Of one item.

    Raises:
      ConfigError: nothing is left of it, but a published number has no neighbour; or
        more numbers were measured than there are.
    """
    own = [n for r in item.results for n in kept.names() if commands.flagfile(n) == r]
    printed = [line for line in published.stored(paper) if line["table"] == item.table]
    had = sum(_words(line).isdisjoint(item.without) for line in printed)
    kinds: dict[tuple[str, ...], tuple[str, str]] = {}
    for card, each in of_most_seeds(map(kept.shown, own)):
        if card.reference is None or card.reference.table != item.item:
            continue
        is_printed = each.number is not None and each.number.is_printed
        if is_printed and each.verdict.kind != reproduction.NOT_COMPARABLE:
            flagfile, row = commands.flagfile(card.name), each.line.row
            at = as_printed(item.item, row.point or row.setting, row.attack)
            number = row.data, *at, row.metric  # of which there may be two readings
            told = flagfile, each.verdict.kind
            if kinds.setdefault(number, told) == (flagfile, SINGLE_SEED):
                kinds[number] = told
    done = _status(item, bool(own))
    is_whole = done in (DONE, REST, LESS) and not item.elsewhere
    if len(kinds) > had or (is_whole and len(kinds) < had):
        raise ConfigError(
            f"{_FILE.name}: {PAGES[paper]}, {item.item}: expected what is left, or what "
            f"it is without, of {had} numbers that could be had: {len(kinds)} are measured"
        )
    verdicts = Counter(kind for _, kind in kinds.values())
    return Standing(done, len(printed), len(kinds), verdicts)


def _words(line: dict[str, str]) -> set[str]:
    """Of a stored number; a setting may be several, such as a client of an experiment."""
    return {word for text in line.values() for word in text.split(";")}


def _status(item: Item, has_result: bool) -> str:
    if not has_result and not item.elsewhere:
        return MISSING
    if item.left:
        return PARTLY
    if item.stands_in:
        return OTHER
    if item.less:
        return LESS
    return REST if item.lacking else DONE


def text() -> str:
    """How many items stand how, then a line for each."""
    every = [(paper, each) for paper, told in items().items() for each in told]
    found = [standing(paper, each) for paper, each in every]
    counts = Counter(each.status for each in found)
    every_status = DONE, REST, LESS, OTHER, PARTLY, MISSING
    said = ", ".join(f"{counts[s]} {s}" for s in every_status)
    body = [
        _line(paper, item, each)
        for (paper, item), each in zip(every, found, strict=True)
    ]
    header = [
        "paper",
        "item",
        "status",
        "numbers",
        "verdicts",
        "what is less, left or lacking",
    ]
    numbers = sum(each.measured for each in found), sum(e.published for e in found)
    total = (
        f"Of {len(every)} tables and figures: {said}. Beside {numbers[0]} of "
        f"{numbers[1]} published numbers stands one that was measured on the same data."
    )
    return f"{total}\n\n{writing.table(header, body, ('numbers',))}"


def _line(paper: str, item: Item, found: Standing) -> list[str]:
    verdicts = (f"{found.verdicts[k]} {k}" for k in reproduction.KINDS)
    why = [item.note, item.elsewhere, item.left]
    why += [f"Run on {item.stands_in}."] if item.stands_in else []
    why += [f"Less: {item.less}"] if item.less else []
    why += [f"Could not be had: {item.lacking}"] if item.lacking else []
    return [
        PAGES[paper],
        item.item,
        found.status,
        f"{found.measured} of {found.published}" if found.published else "none printed",
        ", ".join(v for v in verdicts if not v.startswith("0 ")),
        " ".join(filter(None, why)),
    ]
