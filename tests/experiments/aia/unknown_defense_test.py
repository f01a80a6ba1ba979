"""A defense that does not say what it does is warned of where attacks would simulate it."""

import dataclasses
import sys
import types
import warnings

import pytest

from fljax.defenses.registry import DEFENSES


@pytest.fixture
def warned(run, monkeypatch):
    """What a dry run with such a defense warns of."""
    silent = dataclasses.replace(DEFENSES["median"], effects=None)
    monkeypatch.setitem(sys.modules, "mute", types.SimpleNamespace(SILENT=silent))

    def call(*told):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            assert run("--dry_run", "--defense=mute:SILENT", *told)[0] == 0
        return [str(each.message) for each in found if "mute" in str(each.message)]

    return call


def test_it_is_named_once(warned):
    (said,) = warned("--attack_kinds=trajectory,linear_inversion")
    assert said.startswith("--defense: attacks do not know what mute:SILENT does")


@pytest.mark.parametrize(
    "told", ["--attack_kinds=model", "--attack_knows_defense=false"], ids=str
)
def test_where_nothing_would_be_simulated_nothing_is_said(warned, told):
    assert not warned(told)
