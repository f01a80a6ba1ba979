"""Docstrings as Sphinx reads them.

They are Google style (`sphinx.ext.napoleon`), with three habits of Markdown that
reStructuredText does not know: fenced code, tables, and code that is only indented.
Fields of a NamedTuple are described under `Attributes`, and left out here.
"""

import re
import typing
from collections.abc import Iterator

if typing.TYPE_CHECKING:
    from sphinx.application import Sphinx

_BEFORE_NAPOLEON = 400
_CODE = 4  # columns by which code is indented


def restructured(lines: list[str]) -> list[str]:
    """A docstring's lines, in reStructuredText where they were in Markdown."""
    return list(_indented(list(_tables(list(_fences(lines))))))


def _fences(lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        stripped = line.strip()
        indent = line[: len(line) - len(line.lstrip())]
        if stripped.startswith("```"):
            inside = not inside
            yield from ("", f"{indent}.. code-block:: python", "") if inside else ("",)
        else:
            yield " " * _CODE + line if inside and stripped else line


def _tables(lines: list[str]) -> Iterator[str]:
    for at, line in enumerate(lines):
        if not line.lstrip().startswith("|"):
            yield line
            continue
        indent = line[: len(line) - len(line.lstrip())]
        if at == 0 or not lines[at - 1].lstrip().startswith("|"):
            yield from (f"{indent}.. list-table::", f"{indent}   :header-rows: 1", "")
        cells = [
            cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))
        ]
        if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            continue
        for number, cell in enumerate(cells):
            yield f"{indent}   {'* -' if number == 0 else '  -'} {cell}"


def _indented(lines: list[str]) -> Iterator[str]:
    """Puts `::` above code that is set apart by a blank line and four columns."""
    depth, blank = 0, True
    for line in lines:
        stripped = line.strip()
        here = len(line) - len(line.lstrip())
        if stripped and blank and here >= depth + _CODE:
            yield from (" " * depth + "::", "")
        if stripped:  # what a directive says is indented, too
            depth = here + _CODE if stripped.startswith("..") else here
        blank = not stripped
        yield line


def _process(app, what, name, obj, options, lines: list[str]) -> None:
    del app, what, name, obj, options
    lines[:] = restructured(lines)


def _skip(app, what, name, obj, skip, options) -> bool | None:
    del app, what, name, skip, options
    return True if type(obj).__name__ == "_tuplegetter" else None


def setup(app: "Sphinx") -> dict[str, bool]:
    """Comes before napoleon, which cuts docstrings into fields."""
    app.connect("autodoc-process-docstring", _process, priority=_BEFORE_NAPOLEON)
    app.connect("autodoc-skip-member", _skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
