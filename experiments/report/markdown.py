"""How a text is written so that GitHub-flavoured Markdown shows it letter by letter."""

import re

# Brackets only where they could make a link, an image or a definition: intervals
# stay readable.
_SPECIAL = re.compile(r"[\\`*|~$]|!(?=\[)|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_])")
_BRACKET = re.compile(r"[\\`*|~$\[\]]|(?<![^\W_])_|_(?![^\W_])")
_LINK = re.compile(r"(?<=\w):(?=//)|(?<=www)\.", re.IGNORECASE)
_LEADING = re.compile(r"^(\s*)(#|[-+](?=\s|$)|[-=](?=[-=]*\s*$))")
_NUMBERED = re.compile(r"^(\s*\d{1,9})([.)])(?=\s|$)")


def escape(text: str, *, linked: bool = False) -> str:
    """Text that Markdown shows letter by letter; `linked`: inside of brackets."""
    special = _BRACKET if linked else _SPECIAL
    text = special.sub(lambda found: "\\" + found[0], text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _LINK.sub(lambda found: "\\" + found[0], text)
    return _NUMBERED.sub(r"\1\\\2", _LEADING.sub(r"\1\\\2", text))
