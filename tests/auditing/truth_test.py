"""The wall between what attacks are given and what scores compare with."""

import importlib
import sys

import numpy as np
import pandas as pd
import pytest

from fljax.attacks import registry
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.estimates import NotApplicable
from fljax.auditing import case, inputs
from tests import truth as walker

_ATTACKS = ("model", "grad", "trajectory", "reconstruct")
_APART = {"fljax.metrics", "fljax.verdicts", "fljax.data", "fljax.results"}


def test_nothing_reachable_from_a_view_holds_the_sensitive_column(linear, config):
    chosen = config(linear)
    ready = case.prepare(chosen, inputs.read(chosen.files, chosen.rows))
    sensitive = ready.truth.sensitive
    assert walker.leaks(ready, {"married": sensitive})  # it is there to be found
    strangers = ready.strangers.truth.sensitive
    assert walker.leaks(ready, {"strangers": strangers})
    for view in (ready.view, ready.view_of_strangers):
        assert not walker.leaks(view, {"married": sensitive, "strangers": strangers})


@pytest.mark.parametrize("name", registry.ATTACKS)
def test_an_attack_gets_a_view_and_imports_no_truth(name):
    spec = registry.ATTACKS[name]
    hints = spec.run.__annotations__
    assert hints["view"] is AdversaryView and set(hints) == {
        "view",
        "settings",
        "return",
    }
    assert not walker.leaks(spec, {"anything": np.arange(8.0)})
    imports = walker.imports(sys.modules[spec.run.__module__], "fljax")
    assert "fljax.attacks.adversary" in imports  # it sees imports
    assert not {n for n in imports if n.startswith("fljax.auditing")} | imports & _APART


def test_only_rows_and_scores_import_the_truth():
    importlib.import_module("fljax.auditing.library")  # and all that it uses
    package = {
        name: module
        for name, module in sys.modules.items()
        if name.startswith("fljax.auditing.")
    }
    direct = {
        name
        for name, module in package.items()
        if getattr(module, "Truth", None) is not None
    }
    expected = {
        "truth", "rows", "case", "ceilings", "fits", "measuring", "scoring", "population", "unusual",
    }  # fmt: skip
    assert direct == {f"fljax.auditing.{each}" for each in expected}


@pytest.mark.long("two whole audits")
def test_the_truth_reaches_no_attack(linear, audited):
    """Other values in the sensitive column change scores, and nothing else."""
    before, scores = audited(linear, attacks=_ATTACKS)
    frame = pd.read_csv(linear / "rows.csv")
    frame["married"] = frame["married"].to_numpy()[::-1]
    frame.to_csv(linear / "rows.csv", index=False)
    after, others = audited(linear, attacks=_ATTACKS)
    assert list(before) == list(after)
    measured = [n for n in before if not isinstance(before[n], NotApplicable)]
    assert len(measured) == 5
    for name in measured:
        np.testing.assert_array_equal(before[name].value, after[name].value)
    pairs = zip(scores, others, strict=True)
    changed = [a.attack for a, b in pairs if a.total and a.total.value != b.total.value]
    assert set(changed) >= {"reconstruct", "trajectory"}
