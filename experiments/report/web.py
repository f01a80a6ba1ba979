"""Blocks as one HTML page that needs no other file, with no link to anywhere.

Pictures are embedded as images, in which no script runs; the only script of the page
sorts tables. The page follows the reader's choice of a dark or light screen, and wide
tables and figures scroll by themselves on a narrow one.
"""

import base64
import html
from collections.abc import Sequence

from experiments.report import document, sorting
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

_STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --soft: #57606a;
  --line: #d0d7de; --shade: #f3f5f7; --good: #116329; --bad: #a40e26; --open: #6e4b00; }
@media (prefers-color-scheme: dark) { :root { --back: #0f1318; --text: #e6e9ed;
  --soft: #9aa5b1; --line: #39424d; --shade: #1a2027; --good: #6fdc8c; --bad: #ff9492;
  --open: #f0c55b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1rem; }
h1 { line-height: 1.2; }
h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
p, li { max-width: 50rem; }
h1, h2, h3, p, li, summary, figcaption { overflow-wrap: anywhere; }
a { color: inherit; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.875rem;
  font-variant-numeric: tabular-nums; }
caption, figcaption { text-align: left; color: var(--soft); padding: 0.25rem 0; }
th, td { padding: 0.25rem 0.6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
thead th { background: var(--shade); }
tbody th { font-weight: 400; }
td:first-child, th:first-child { white-space: nowrap; }
th button { font: inherit; color: inherit; text-align: inherit; background: none;
  border: 0; margin: 0; padding: 0; cursor: pointer; }
th button::after { content: "\\2195"; color: var(--soft); padding-left: 0.25em; }
th[aria-sort="ascending"] button::after { content: "\\2191"; color: inherit; }
th[aria-sort="descending"] button::after { content: "\\2193"; color: inherit; }
.number { text-align: right; white-space: nowrap; }
.mark { font-weight: 600; white-space: nowrap; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.open { color: var(--open); }
caption, figcaption { font-size: 0.875rem; }
figure { margin: 1.5rem 0; }
img { max-width: max(100%, 56rem); height: auto; background: #fff; display: block; }
summary { cursor: pointer; }
details { margin: 0.75rem 0; }
"""
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    f"script-src {sorting.source()}; base-uri 'none'; form-action 'none'"
)
_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


def render(blocks: Sequence[Block]) -> str:
    """The whole page; its title is the first heading."""
    title = next((b.text for b in blocks if isinstance(b, Heading)), "")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{_blocks(blocks)}\n</main>\n"
        f"<script>{sorting.SCRIPT}</script>\n</body>\n</html>\n"
    )


def _text(text: str) -> str:
    return html.escape(document.clean(text))


def _blocks(blocks: Sequence[Block]) -> str:
    return "\n".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case Heading(level, text, anchor):
            name = f' id="{anchor}"' if anchor else ""
            return f"<h{level}{name}>{_text(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{_text(text)}</p>"
        case Bullets(items):
            each = (f"<li>{_item(term, text)}</li>" for term, text in items)
            return f"<ul>{''.join(each)}</ul>"
        case Contents(links):
            each = (f'<li><a href="#{a}">{_text(text)}</a></li>' for a, text in links)
            return f'<nav aria-label="Contents"><ul>{"".join(each)}</ul></nav>'
        case Table():
            return _table(block)
        case Picture(name, content, caption, alt):
            kind = _TYPES[name.rpartition(".")[2]]
            data = base64.b64encode(content).decode()
            image = f'<img alt="{_text(alt)}" src="data:{kind};base64,{data}">'
            shown = _scrolling(_text(caption), image)
            return f"<figure><figcaption>{_text(caption)}</figcaption>{shown}</figure>"
        case Details(summary, blocks):
            head = f"<summary>{_text(summary)}</summary>"
            return f"<details>{head}\n{_blocks(blocks)}\n</details>"


def _item(term: str, text: str) -> str:
    return f"<strong>{_text(term)}</strong>: {_text(text)}" if term else _text(text)


def _table(table: Table) -> str:
    classes = [
        ' class="number"' if name in table.numbers else "" for name in table.header
    ]
    head = "".join(
        f'<th scope="col"{css}>{_text(name)}</th>'
        for name, css in zip(table.header, classes, strict=True)
    )
    body = "\n".join(f"<tr>{_line(line, classes)}</tr>" for line in table.body)
    caption = _text(table.caption)
    return _scrolling(
        caption,
        f"<table>\n<caption>{caption}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>",
    )


def _scrolling(label: str, inner: str) -> str:
    """What is wider than the screen scrolls by itself, also by the keyboard."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">'
        f"{inner}</div>"
    )


def _line(line: Sequence[Cell], classes: Sequence[str]) -> str:
    first, *rest = zip(line, classes, strict=True)
    cells = [f'<th scope="row"{first[1]}>{_cell(first[0])}</th>']
    cells += [f"<td{css}>{_cell(cell)}</td>" for cell, css in rest]
    return "".join(cells)


def _cell(cell: Cell) -> str:
    if isinstance(cell, Mark):
        return f'<span class="mark {cell.kind}">{_text(cell.text)}</span>'
    return _text(cell)
