"""Gains over what needs no message, from kept rows."""

import math

import pytest
from scipy import stats

from experiments.report import gains


def test_half_widths_widen_with_the_attacks_and_some_of_the_clients_are_not_judged(
    rows,
):
    def told(attack, value, half, **more):
        about = {"experiment": "label_distribution", "attack": attack} | more
        made = rows(value, metric="total_variation", **about)
        return made + rows(half, metric="total_variation_half_width", **about)

    made = []
    for point in ("", "alpha=1"):
        made += told("mean_distribution", 0.3, 0.03, setting="baseline", point=point)
        for attack in ("predictor", "fused"):
            made += told(attack, 0.1, 0.04, point=point)
    found = list(gains.scores(made))
    assert [each.row.point for each in found] == ["", ""]
    wider = stats.norm.ppf(1 - 0.05 / 4) / stats.norm.ppf(0.975)  # of two attacks
    for each in found:
        beyond = each.verdict.beyond
        reach = wider * math.hypot(0.03, 0.04)
        assert beyond.mean - beyond.low == pytest.approx(reach)
