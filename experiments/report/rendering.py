"""The templates as Markdown, and as one HTML page that needs no other file.

Every text that a template prints is escaped, whichever the format, and is one line of
printable characters. Pictures are embedded in the page as images, in which no script
runs; the page's policy allows its one script, which sorts tables, and no connection.
"""

import base64
import hashlib
import pathlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from experiments.report import markdown

TEMPLATES = pathlib.Path(__file__).with_name("templates")
_TYPES = {"png": "image/png", "svg": "image/svg+xml"}


class Picture(NamedTuple):
    """An SVG or PNG, as the end of its file's name says, and what it shows."""

    name: str
    content: bytes
    caption: str
    alt_text: str

    @property
    def address(self) -> str:
        """The picture itself, for a page."""
        data = base64.b64encode(self.content).decode()
        return f"data:{_TYPES[self.name.rpartition('.')[2]]};base64,{data}"


def clean(text: Any) -> str:
    """One line of printable characters."""
    return "".join(c if c.isprintable() else " " for c in str(text))


def to_html(content: Mapping[str, Any]) -> str:
    """The page that shows the content of `page.content`."""
    script = (TEMPLATES / "sort.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = _environment(_html_text).get_template("page.html.j2")
    return page.render(
        content,
        format="html.j2",
        style=Markup((TEMPLATES / "style.css").read_text()),
        script=Markup(script),
        script_source=Markup(f"'sha256-{digest}'"),
    )


def to_markdown(content: Mapping[str, Any], folder: str) -> str:
    """The same as Markdown; `folder` is that of the pictures, relative to the file."""
    environment = _environment(_markdown_text)
    environment.filters["linked"] = lambda text: Markup(
        markdown.escape(clean(text), linked=True)
    )
    environment.filters["code"] = _code
    environment.filters["file"] = lambda name: Markup(f"{folder}/{name}")
    text = environment.get_template("report.j2").render(content, format="markdown.j2")
    lines = [line.rstrip() for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def drawing(template: str, **content: Any) -> str:
    """An SVG picture of a template: the same content gives the same bytes."""
    return _environment(_html_text).get_template(template).render(content)


def _environment(finalize) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        finalize=finalize,
    )


def _html_text(value: Any) -> Any:
    return value if isinstance(value, Markup) else clean(value)


def _markdown_text(value: Any) -> Markup:
    if isinstance(value, Markup):
        return value
    return Markup(markdown.escape(clean(value)))


def _code(value: Any) -> Markup:
    """What can be copied; a backtick would end it."""
    text = clean(value)
    return Markup(markdown.escape(text) if "`" in text else f"`{text}`")
