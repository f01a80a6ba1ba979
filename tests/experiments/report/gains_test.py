"""Gains over what needs no message, from kept rows."""

import math

import pytest
from scipy import stats

from experiments.report import gains
from fljax import metrics


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


def test_strangers_of_several_clients_count_once(rows):
    def told(attack, value, **more):
        found = []
        for client in ("all", 0, 1, 2, 3):
            found += rows(value, attack=attack, client=client, n=400, **more)
        return found

    made = told("majority", 50.0, setting="baseline") + told("model", 62.0)
    made += told("model_strangers", 60.0)
    once = rows(1.0, attack="strangers", setting="baseline", metric="strangers_uses")
    often = [row._replace(value=4.0) for row in once]
    found = [list(gains.scores(made + more)) for more in ([], once, often)]
    beyond = [
        next(g for g in score.verdict.gains if g.name == "strangers")
        for (score,) in found
    ]
    reach = [each.mean - each.low for each in beyond]
    assert reach[0] == reach[1]
    assert reach[2] == pytest.approx(reach[0] * math.sqrt((1 + 4) / 2), rel=0.03)


@pytest.mark.parametrize("size", [20, 400])
def test_two_seeds_that_are_equal_are_certain_to_a_row(rows, size):
    made = rows(50.0, 50.0, attack="majority", n=size)
    made += rows(80.0, 80.0, attack="model", n=size)
    (found,) = gains.scores(made)
    (gain,) = found.verdict.gains
    apart = 100 / size * math.sqrt(2)  # one more row and one less: a deviation
    reach = stats.t.ppf(0.975, 1) * apart / math.sqrt(2)
    assert gain.high - gain.mean == pytest.approx(reach)
    ends = metrics.of_rows(80.0, size)
    assert (found.estimate.low, found.estimate.high) == pytest.approx(ends)


def test_clients_of_few_rows_have_the_spread_of_their_shares(rows):
    made = []
    for client in ("all", *range(10)):
        about = {"client": client, "n": 50 if client == "all" else 5}
        made += rows(40.0, attack="majority", setting="baseline", **about)
        made += rows(60.0, attack="model", **about)
    (found,) = gains.scores(made)
    (gain,) = found.verdict.gains
    error = 100 * math.sqrt(0.6 * 0.4 / 4 / 10)
    assert gain.high - gain.mean >= stats.norm.ppf(0.975) * error * 0.999
