"""The docstring of a large package is a map: it names every module."""

import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).parent.parent
_MAPPED = (
    "fljax/attacks/rows", "fljax/attacks/trajectory", "fljax/auditing", "fljax/data",
    "fljax/driver", "experiments/aia", "experiments/benchmarks", "experiments/report",
)  # fmt: skip


@pytest.mark.parametrize("package", _MAPPED)
def test_a_package_names_its_modules(package):
    folder = _ROOT / package
    text = re.match(r'"""(.*?)"""', (folder / "__init__.py").read_text(), re.DOTALL)
    named = set(re.findall(r"`(\w+)`", text.group(1)))
    there = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert there - named == set()
