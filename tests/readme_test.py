"""What README and BUILD show: the example runs, and what they name is there."""

import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_PAGES = ("README.md", "BUILD.md")


def _text(page):
    return (_ROOT / page).read_text()


def _blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", _text(page), re.MULTILINE | re.DOTALL
    )


def test_the_example_of_the_library_runs():
    example = _blocks("README.md", "python")[-1]
    done = subprocess.run(
        (sys.executable, "-c", example),
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    accuracy = float(re.fullmatch(r"accuracy on client 0: (\S+)\n", done.stdout)[1])
    assert 0.5 < accuracy <= 1


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
