"""Blocks as GitHub-flavoured Markdown; pictures are files in a folder beside it."""

import re
from collections.abc import Sequence

from experiments.report import document
from experiments.report.document import (
    Block,
    Bullets,
    Cell,
    Contents,
    Details,
    Heading,
    Mark,
    Paragraph,
    Picture,
    Table,
)

# Brackets only where they could make a link, an image or a definition: intervals
# stay readable.
_SPECIAL = re.compile(r"[\\`*|~$]|!(?=\[)|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])")
_BRACKET = re.compile(r"[\\`*|~$\[\]]|(?<![^\W_])_|_(?![^\W_])")
_LINK = re.compile(r"(?<=\w):(?=//)|(?<=www)\.", re.IGNORECASE)
_LEADING = re.compile(r"^(\s*)(#|[-+](?=\s|$)|[-=](?=[-=]*\s*$))")
_NUMBERED = re.compile(r"^(\s*\d{1,9})([.)])(?=\s|$)")


def render(blocks: Sequence[Block], *, folder: str) -> str:
    """The whole text; `folder` is that of the pictures, relative to the file."""
    return "\n\n".join(_block(block, folder) for block in blocks) + "\n"


def escape(text: str, *, linked: bool = False) -> str:
    """Text that Markdown shows letter by letter; `linked`: inside of brackets."""
    special = _BRACKET if linked else _SPECIAL
    text = special.sub(lambda found: "\\" + found[0], document.clean(text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _LINK.sub(lambda found: "\\" + found[0], text)
    return _NUMBERED.sub(r"\1\\\2", _LEADING.sub(r"\1\\\2", text))


def _block(block: Block, folder: str) -> str:
    match block:
        case Heading(level, text, anchor):
            # Links by name: each program derives its own anchors from the titles.
            target = f'<a id="{anchor}"></a>\n\n' if anchor else ""
            return f"{target}{'#' * level} {escape(text)}"
        case Paragraph(text):
            return escape(text)
        case Bullets(items):
            return "\n".join(_item(term, text) for term, text in items)
        case Contents(links):
            return "\n".join(
                f"- [{escape(text, linked=True)}](#{anchor})" for anchor, text in links
            )
        case Table():
            return _table(block)
        case Picture(name, _, caption, alt):
            image = f"![{escape(alt, linked=True)}]({folder}/{name})"
            return f"*{escape(caption)}*\n\n{image}"
        case Details(summary, blocks):
            inner = "\n\n".join(_block(each, folder) for each in blocks)
            head = f"<details>\n<summary>{escape(summary)}</summary>"
            return f"{head}\n\n{inner}\n\n</details>"


def _item(term: str, text: str) -> str:
    return f"- **{escape(term)}**: {escape(text)}" if term else f"- {escape(text)}"


def _table(table: Table) -> str:
    rule = ["---:" if name in table.numbers else "---" for name in table.header]
    body = [[_cell(cell) for cell in line] for line in table.body]
    lines = [[escape(name) for name in table.header], rule, *body]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"*{escape(table.caption)}*\n\n{text}"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Mark):
        return f"**{escape(cell.text)}**"
    return escape(cell)
