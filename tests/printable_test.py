"""Texts of strangers can be shown and written."""

import pytest

from fljax import printable


@pytest.mark.parametrize("text", ["\x1b[2J", "\u202e", "\ud800"])
def test_what_steers_or_cannot_be_written_is_shown_instead(text):
    assert not printable.is_plain(text)
    shown = printable.line(f"a{text}b")
    assert shown.encode() and text[0] not in shown
    assert printable.is_plain(shown)
