"""How much memory is left."""

import psutil
import pytest

from fljax import cgroups, memory


def _write(folder, names, limit):
    folder.mkdir(parents=True, exist_ok=True)
    most, used, cache = names
    (folder / most).write_text(limit)
    (folder / used).write_text("1000\n")
    # What was read of files is given up when memory is wanted.
    (folder / "memory.stat").write_text(f"anon 600\n{cache} 400\n")


@pytest.mark.parametrize("version", [2, 1])
@pytest.mark.parametrize(("limit", "expected"), [("max\n", None), ("3000\n", 2400.0)])
def test_a_container_has_what_its_limit_leaves(tmp_path, version, limit, expected):
    folder = tmp_path if version == 2 else tmp_path / "memory"
    _write(folder, memory._VERSIONS[2 - version], limit)
    free = memory.available(tmp_path)
    assert free == expected if expected else free > 1e8


def test_the_groups_above_limit_too(tmp_path, monkeypatch):
    (tmp_path / "groups").write_text("0::/outer/inner")
    monkeypatch.setattr(cgroups, "_GROUP_OF_PROCESS", tmp_path / "groups")
    _write(tmp_path / "outer", memory._VERSIONS[0], "2000")
    _write(tmp_path / "outer" / "inner", memory._VERSIONS[0], "max")
    assert memory.available(tmp_path) == 1400


def test_without_a_container_the_machine_counts(tmp_path):
    before = psutil.virtual_memory().available
    assert memory.available(tmp_path) == pytest.approx(before, rel=0.5)
