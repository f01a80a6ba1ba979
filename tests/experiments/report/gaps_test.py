"""Gaps of two attacks, seed by seed."""

import pytest

from experiments.report import kept
from experiments.report.documents import blocks, gaps
from fljax.driver.config import ConfigError
from fljax.results import Labels

_POINT = "active_start=10 defense=none"


def test_seeds_are_paired_and_only_those_of_both(monkeypatch):
    def rows(attack, values):
        labels = Labels("aia", "pums2016", "mlp", point=_POINT)
        metric = "aia_accuracy_percent"
        return [
            labels.row(attack, "active_50", seed, metric, value, 10)
            for seed, value in values.items()
        ]

    found = {
        "aia.fig5": rows("model", {0: 70.0, 1: 80.0, 2: 0.0}),
        "aia.fig5.gradients": rows("grad", {0: 60.0, 1: 68.0}),
    }
    read = {name: kept.read(name)._replace(rows=own) for name, own in found.items()}
    monkeypatch.setattr(kept, "read", read.__getitem__)
    (line,) = gaps.text("fig5").splitlines()[2:]
    assert line.startswith("| 10 |") and line.endswith("| 11.0 [-1.7, 23.7] | 2 |")


def test_a_picture_without_a_pair_is_refused():
    with pytest.raises(ConfigError, match="gaps.sums: expected one of fig1, "):
        gaps.text("sums")
    with pytest.raises(ConfigError, match="expected one of "):
        blocks.make("gaps.nothing")
