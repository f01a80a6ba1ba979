"""What a report is made of: blocks, which `markdown` and `web` turn into text.

Texts in blocks are as found in the results; only the renderers know how to escape them.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Mark(NamedTuple):
    """A cell that says of which kind it is, for its colour."""

    text: str
    kind: str


Cell = str | Mark


class Heading(NamedTuple):
    """A title of level 1 to 3; `anchor` is what `Contents` leads to."""

    level: int
    text: str
    anchor: str = ""


class Paragraph(NamedTuple):
    """Running text."""

    text: str


class Bullets(NamedTuple):
    """Items, each with a term in front, which may be empty."""

    items: Sequence[tuple[str, str]]


class Contents(NamedTuple):
    """Links to headings: `(anchor, text)`."""

    links: Sequence[tuple[str, str]]


class Table(NamedTuple):
    """A table; `numbers` are the names of the columns that hold numbers."""

    caption: str
    header: Sequence[str]
    body: Sequence[Sequence[Cell]]
    numbers: Collection[str] = ()


class Picture(NamedTuple):
    """An SVG or PNG, as the end of its file's name says, and what it shows."""

    name: str
    content: bytes
    caption: str
    alt: str


class Details(NamedTuple):
    """Blocks that are folded away."""

    summary: str
    blocks: Sequence["Block"]


Block = Heading | Paragraph | Bullets | Contents | Table | Picture | Details


def table(
    caption: str,
    header: Sequence[str],
    body: Sequence[Sequence[Cell]],
    numbers: Collection[str] = (),
) -> Table:
    """A table without those columns that are empty in every row."""
    kept = [i for i in range(len(header)) if any(_text(line[i]) for line in body)]
    return Table(
        caption,
        [header[i] for i in kept],
        [[line[i] for i in kept] for line in body],
        numbers,
    )


def clean(text: str) -> str:
    """One line of printable characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def _text(cell: Cell) -> str:
    return cell.text if isinstance(cell, Mark) else cell


def pictures(blocks: Sequence[Block]) -> list[Picture]:
    """All pictures, also those inside details."""
    found = []
    for block in blocks:
        if isinstance(block, Picture):
            found.append(block)
        elif isinstance(block, Details):
            found += pictures(block.blocks)
    return found
