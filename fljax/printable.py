"""Texts of strangers on a screen: what would steer a terminal is shown, not sent.

Nor are halves of surrogate pairs, which JSON may hold and no file can.
"""

import re

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_HEAD, _TAIL = 1000, 400  # characters of a line that are shown


def is_plain(text: str) -> bool:
    """Whether nothing in it steers a terminal or turns the direction of writing."""
    return not _STEERING.search(text)


def escaped(text: str) -> str:
    """With `\\x1b` in place of an escape, and likewise of all that steers."""
    return _STEERING.sub(lambda found: repr(found[0])[1:-1], text)


def quoted(text: str) -> str:
    """In double quotes where a comma in it would end an item of a list."""
    return f'"{text}"' if "," in text else text


def line(text: object) -> str:
    """As one escaped line; of a very long one the beginning and the end."""
    one = escaped(" ".join(str(text).split()))
    if len(one) <= _HEAD + _TAIL:
        return one
    return f"{one[:_HEAD]} [{len(one) - _HEAD - _TAIL} characters] {one[-_TAIL:]}"
