"""Lines: which numbers stand beside which baseline and bound."""

import math

import pytest

from experiments import epsilons
from experiments.report import lines
from experiments.report.reproduction import Number, judge
from fljax import metrics, verdicts

_BOUND = "aia_accuracy_bound_percent"


def _by_attack(found):
    return {(line.row.attack, line.row.setting): line for line in found}


def test_curves_clients_and_diagnostics_are_left_out(rows):
    made = rows(1.0, metric="test_loss", setting="round_3", attack="none")
    made += rows(50.0, client=0) + rows(4.0, metric="rank") + rows(80.0)
    made += rows(0.5, metric="drift", setting="round_0")
    (line,) = lines.lines(made)
    assert line.estimate.mean == 80.0


def test_baselines_belong_to_their_point_and_metric(rows):
    made = []
    for point, base in {"h=0": 50.0, "h=1": 60.0}.items():
        made += rows(base, attack="majority", point=point)
        made += rows(80.0, point=point) + rows(0.1, point=point, metric="distance")
    found = lines.lines(made)
    found = [line.references.get("majority") for line in found]
    assert found == [None, 50.0, None, None, 60.0, None]


def test_imputation_and_strangers_stand_beside_an_attack(rows):
    made = rows(50.0, attack="majority")
    made += rows(60.0, attack="imputation", setting="baseline")
    made += rows(55.0, attack="imputation", setting="rows_100")
    made += rows(70.0) + rows(65.0, attack="model_strangers")
    found = _by_attack(lines.lines(made))
    assert ("model_strangers", "passive") not in found
    assert found["model", "passive"].references == {
        "majority": 50.0, "imputation": 60.0, "strangers": 65.0
    }  # fmt: skip
    assert found["imputation", "baseline"].references == {"majority": 50.0}


def test_the_accuracy_of_one_seed_has_an_interval_over_its_rows(rows):
    (line,) = lines.lines([row._replace(n=100) for row in rows(50.0)])
    assert line.shown.low == pytest.approx(40.38, abs=0.01)
    assert line.shown.high == pytest.approx(59.62, abs=0.01)
    assert math.isnan(line.estimate.low)  # no other seed: nothing about reproduction


def test_an_accuracy_that_is_the_same_with_every_seed_has_the_one_over_its_rows(rows):
    (line,) = lines.lines([row._replace(n=100) for row in rows(90.0, 90.0, 90.0)])
    low, high = metrics.of_rows(90.0, 100)
    assert line.measured[:3] == (90.0, low, high) and line.shown[:3] == (
        90.0,
        low,
        high,
    )
    (line,) = lines.lines(rows(90.0, 90.0, 90.3))
    assert line.measured == line.estimate
    (line,) = lines.lines(rows(57.0, 57.0, attack="majority"))  # nothing that was drawn
    assert (line.measured.low, line.measured.high) == (57.0, 57.0)


def test_the_success_of_an_attack_has_an_interval_over_clients(rows):
    told = rows(0.0, metric="attack_success")
    (line,) = lines.lines([row._replace(n=100) for row in told])
    assert line.measured.low == pytest.approx(0, abs=1e-9) and line.whole == 1
    assert line.measured.high == pytest.approx(0.037, abs=5e-4)
    assert str(judge(line.measured, Number(1.0), whole=line.whole)) == "below by 0.96"
    (line,) = lines.lines([row._replace(n=6) for row in told])
    assert (
        judge(line.measured, Number(0.0), whole=line.whole).kind == "too wide to tell"
    )


@pytest.mark.parametrize(
    ("metric", "judged"), [("reconstruction_distance", True), ("kl_divergence", False)]
)
def test_what_one_seed_does_to_each_client_has_an_interval_over_them(
    rows, metric, judged
):
    made = rows(0.5, metric=metric) + rows(0.1, metric=f"{metric}_half_width")
    (line,) = lines.lines(made + rows(0.2, metric="other_half_width"))
    assert line.shown[:3] == (0.5, 0.4, 0.6)
    assert (
        math.isfinite(line.measured.low) == judged
    )  # the other is published over seeds
    (line, _) = lines.lines(made[:1] + rows(0.1, metric="ssim") + made[1:])
    assert line.shown[:3] == (0.5, 0.4, 0.6)


def test_the_epsilon_of_the_noise_stands_beside_what_the_last_model_reaches(rows):
    made = rows(80.0, setting="final", metric="accuracy_percent", attack="fed_cdp")
    made += rows(80.0, setting="round_3", metric="accuracy_percent", attack="fed_cdp")
    made += rows(80.0, setting="final", metric="accuracy_percent", attack="fed_sdp")
    drawn = epsilons.drawn("client")
    made += rows(3.0, setting=drawn, metric="epsilon", attack="fed_cdp")
    told = {key: line.epsilon for key, line in _by_attack(lines.lines(made)).items()}
    assert told.pop(("fed_cdp", "final")).text == "3 of a client"
    assert told == {("fed_sdp", "final"): None}


def test_a_bound_belongs_to_its_attack_and_setting(rows):
    made = rows(80.0) + rows(90.0, setting="active_10") + rows(70.0, attack="grad")
    made += rows(40.0, metric=_BOUND) + rows(85.0, metric=_BOUND, setting="active_10")
    found = _by_attack(lines.lines(made))
    assert found["model", "passive"].bound == 40.0
    assert found["model", "active_10"].bound == 85.0
    assert found["grad", "passive"].bound is None


def test_a_reconstruction_that_is_not_determined_says_so(rows):
    made = rows(80.0, attack="reconstruct")
    made += rows(0.9, attack="reconstruct", metric="determined") + rows(80.0)
    found = _by_attack(lines.lines(made))
    assert found["reconstruct", "passive"].metric == "accuracy % (not determined)"
    assert found["model", "passive"].metric == "accuracy %"


@pytest.mark.parametrize(
    ("values", "median"),
    [
        ((0.340, 0.163, 0.270, 2.545, 2.523), 0.340),
        ((79.0, 80.0, 81.0), None),
        ((1.0, 9.0), None),
        ((0.93, 0.93, 0.93), None),
        ((math.nan, 1.0, 1.0), None),
    ],
    ids=["skewed", "even", "two", "constant", "not finite"],
)
def test_the_median_stands_where_seeds_are_skewed(rows, values, median):
    (line,) = lines.lines(rows(*values))
    assert line.skewed_median == median


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((80.0,), "80.00"),
        ((80.0, 80.0), "80.00 [80.00, 80.00]"),
        ((0.0125, 0.0125), "0.0125 [0.0125, 0.0125]"),
        ((2.28123e7,), "2.281e+07"),
        ((math.nan, 1.0), "not finite"),
    ],
    ids=["one", "two", "small", "large", "nan"],
)
def test_an_interval_is_written_with_digits_that_say_something(values, text):
    assert lines.interval(metrics.interval(values)) == text


def test_no_adversary_is_above_what_a_defense_allows(rows):
    made = rows(76.0, attack="none", setting="defense", metric=verdicts.CEILING)
    made += rows(70.0) + rows(95.0, attack="grad") + rows(99.0, attack="model_oracle")
    made += rows(60.0, attack="majority") + rows(90.0, point="delta=1")
    made = [row._replace(n=400) for row in made]
    found = {
        at: (line.ceiling, line.is_impossible)
        for at, line in _by_attack(lines.lines(made[:5])).items()
    }
    assert found["model", "passive"] == (76.0, False)
    assert found["grad", "passive"] == (76.0, True)
    assert found["model_oracle", "passive"] == (None, False)
    assert found["majority", "baseline"] == (None, False)
    assert lines.lines(made)[-1].ceiling is None
    active = made[:1] + rows(95.0, setting="active_50")
    assert lines.lines(active)[-1].ceiling is None  # its trials share their noise
    few = [row._replace(n=4) for row in made]
    assert not _by_attack(lines.lines(few))["grad", "passive"].is_impossible


def test_seeds_on_the_same_rows_are_no_more_rows(rows):
    made = rows(*[76.0] * 3, attack="none", setting="defense", metric=verdicts.CEILING)
    made = [row._replace(n=200) for row in made + rows(*[84.0] * 3)]
    line = lines.lines(made)[-1]
    assert (line.row.attack, line.ceiling) == ("model", 76.0)
    assert not line.is_impossible  # of 600 rows it would be
