"""The wall between what attacks are given and what scores compare with."""

import ast
import pathlib

import numpy as np
import pandas as pd
import pytest

from fljax.auditing import attributes, evidence, inversion, labels

_ATTACKS = ("model", "grad", "trajectory", "reconstruct")


def test_the_truth_reaches_no_attack(linear, guesses):
    """Other values in the sensitive column change scores, and nothing else."""
    before, scores = guesses(linear, attacks=_ATTACKS)
    frame = pd.read_csv(linear / "rows.csv")
    frame["married"] = frame["married"].to_numpy()[::-1]
    frame.to_csv(linear / "rows.csv", index=False)
    after, others = guesses(linear, attacks=_ATTACKS)
    assert list(before) == list(after)
    measured = [
        name for name in before if not isinstance(before[name], evidence.Skipped)
    ]
    assert len(measured) == 5
    for name in measured:
        np.testing.assert_array_equal(before[name].value, after[name].value)
    pairs = zip(scores, others, strict=True)
    changed = [a.attack for a, b in pairs if a.total and a.total.value != b.total.value]
    assert set(changed) >= {"reconstruct", "trajectory"}


@pytest.mark.parametrize("module", [attributes, evidence, inversion, labels])
def test_no_module_of_attacks_imports_rows_or_scores(module):
    tree = ast.parse(pathlib.Path(module.__file__).read_text())
    names = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert "fljax.types.Known" in names or module is not evidence  # it sees imports
    for name in names:
        assert not {"rows", "scoring", "table", "metrics", "data"} & set(
            name.split(".")
        )
