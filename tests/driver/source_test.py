"""Which code a run depends on."""

import pytest

from experiments.theory import program
from fljax.driver import source
from fljax.driver.autosave import Autosave
from fljax.driver.config import ConfigError

_TOLD = {"defense": "none; own_code:signs(step=0.01)", "coordinator": "localhost:12"}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A user's module in a folder of its own, and another one that it imports."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_code.py").write_text("import json\nfrom its_helper import x\n")
    (tmp_path / "its_helper.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("")
    source.sha256.cache_clear()
    yield tmp_path
    source.sha256.cache_clear()


def test_code_of_the_users_that_is_named_counts_with_what_it_imports(mine):
    found = source.identity(program.__name__, _TOLD)
    assert set(found) == {"fljax", "experiments", "own_code", "its_helper"}
    assert set(source.identity(program.__name__)) == {"fljax", "experiments"}


def test_what_is_no_module_counts_for_nothing():
    told = {"data_dir": "C:rows", "model": "mlp:128", "note": "no.such.module:thing"}
    assert set(source.identity("fljax.auditing", told)) == {"fljax"}


@pytest.mark.parametrize("name", ["own_code.py", "its_helper.py"])
def test_a_run_does_not_go_on_with_other_code_of_the_users(mine, name):
    folder = mine / "run"

    def begin():
        found = Autosave(folder, "a", 0.0, program.__name__, _TOLD)
        found.open()
        return found

    begin().offer(folder / "unfinished" / "x.json", lambda: "", lambda _: None)
    begin()
    (mine / name).write_text((mine / name).read_text() + "# another\n")
    source.sha256.cache_clear()
    with pytest.raises(ConfigError, match="with other code; remove it"):
        begin()


def test_a_package_of_the_users_counts_whole(mine):
    (mine / "own_code.py").unlink()
    (mine / "own_code").mkdir()
    for name in ("__init__", "parts"):
        (mine / "own_code" / f"{name}.py").write_text("")
    before = source.identity("fljax", {"model": "own_code.parts:net"})["own_code"]
    (mine / "own_code" / "__init__.py").write_text("x = 1")
    source.sha256.cache_clear()
    assert (
        source.identity("fljax", {"model": "own_code.parts:net"})["own_code"] != before
    )
