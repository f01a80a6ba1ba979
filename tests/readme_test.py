"""What README and BUILD name is there, and the README is short."""

import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_PAGES = ("README.md", "BUILD.md")


def _text(page):
    return (_ROOT / page).read_text()


def test_the_readme_is_a_door():
    text = _text("README.md")
    assert len(text.splitlines()) <= 130 and len(text.split()) <= 700


@pytest.mark.parametrize("page", _PAGES)
def test_named_flagfiles_are_there(page):
    flagfiles = {path.name for path in (_ROOT / "experiments/flags").iterdir()}
    named = re.findall(r"\b([a-z]\w*(?:\.\w+)+\.flags)\b", _text(page))
    assert named or page == "BUILD.md"
    assert set(named) <= flagfiles


@pytest.mark.parametrize("page", _PAGES)
def test_named_paths_are_there(page):
    named = re.findall(
        r"`((?:fljax|experiments|tests|third_party)/[\w./]*)`", _text(page)
    )
    assert named
    assert [path for path in named if not (_ROOT / path).exists()] == []
