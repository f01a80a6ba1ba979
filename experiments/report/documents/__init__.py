"""Documents whose numbers are generated from the kept results.

README.md and every Markdown file below docs/ may hold blocks

    <!-- generated: headline -->
    <!-- end -->

between whose markers `python -m experiments.report --docs` writes what `blocks` makes
of the name; and it draws the pictures of `PICTURES`. A test fails where what is
committed says anything else.
"""

import functools
import pathlib
import re
from collections.abc import Callable, Iterator

from experiments.report.documents import (
    blocks,
    curve_picture,
    leak_picture,
    pictures,
    sizes_picture,
)
from fljax import files
from fljax.driver.config import ConfigError

ROOT = pathlib.Path(__file__).parents[3]
PICTURES = {
    "docs/images/fig4.svg": sizes_picture.draw,
    "docs/images/leak.svg": leak_picture.draw,
    **{
        f"docs/images/{name}.svg": functools.partial(curve_picture.draw, shown)
        for name, shown in pictures.PICTURES.items()
    },
}
_BEGIN = r"^<!-- generated: *(?P<name>\S+) *-->\n"
_MARK = re.compile(r"^<!-- (?:generated\b.*|end) -->$", re.MULTILINE)
_BLOCK = re.compile(
    rf"(?P<begin>{_BEGIN})(?P<text>.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL
)


def pages(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """README.md and the pages of the site."""
    below = (root / "docs").rglob("*.md")
    built = root / "docs" / "_build"
    return [root / "README.md", *sorted(p for p in below if built not in p.parents)]


def write(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Fills all blocks and draws all pictures; returns what was not up to date.

    Raises:
      ConfigError: naming the page with a block that cannot be made; nothing is written.
    """
    found = dict(stale(root))
    for path, text in found.items():
        files.write_text(path, text)
    return list(found)


def stale(root: pathlib.Path = ROOT) -> Iterator[tuple[pathlib.Path, str]]:
    """Pages and pictures that are not what the results give, and what they should be.

    Raises:
      ConfigError: as `write`.
    """
    for path in pages(root):
        text = path.read_text()
        try:
            now = filled(text, blocks.make)
        except ConfigError as error:
            raise ConfigError(f"{path.relative_to(root)}: {error}") from error
        if now != text:
            yield path, now
    if root == ROOT:
        yield from _pictures()


def _pictures() -> Iterator[tuple[pathlib.Path, str]]:
    for name, draw in PICTURES.items():
        path, now = ROOT / name, draw()
        if not path.is_file() or path.read_text() != now:
            yield path, now


def filled(text: str, make: Callable[[str], str]) -> str:
    """A page with its blocks made anew.

    Args:
      text: the page.
      make: name of a block -> its text.

    Raises:
      ConfigError: a marker without its other, or a name that no block has.
    """
    if 2 * len(_BLOCK.findall(text)) != len(_MARK.findall(text)):
        raise ConfigError(
            "expected each <!-- generated: NAME --> to be followed by one <!-- end -->"
        )
    return _BLOCK.sub(
        lambda block: f"{block['begin']}{make(block['name']).strip()}\n<!-- end -->",
        text,
    )
