"""How sure, and how rightly: against hand arithmetic and honest posteriors."""

import numpy as np
import pytest

from fljax import certainty


def _given(named, truth):
    """Of a binary column: probabilities of the value 1."""
    named = np.asarray(named, float)
    both = np.stack([1 - named, named], axis=1)
    return certainty.posterior(both, truth, np.ones(len(named), bool))


def test_brier_score_of_certainty_doubt_and_error():
    assert certainty.brier_score(_given([0, 1], [0, 1])) == 0
    assert certainty.brier_score(_given([0.5, 0.5], [0, 1])) == 0.5
    assert certainty.brier_score(_given([1, 0], [0, 1])) == 2


def test_calibration_error_compares_confidence_with_accuracy():
    truth = [0] * 8 + [1] * 2
    assert certainty.calibration_error(_given([0.2] * 10, truth)) == pytest.approx(0)
    boastful = certainty.calibration_error(_given([0.01] * 10, truth))
    assert boastful == pytest.approx(0.19)


def test_an_honest_posterior_has_the_error_that_chance_gives_it():
    rng = np.random.default_rng(0)
    sure = rng.random((300, 400))
    found, expected = [], []
    for each in sure:
        given = _given(each, (rng.random(400) < each).astype(int))
        found.append(certainty.calibration_error(given))
        expected.append(certainty.calibration_error_by_chance(given))
    assert np.mean(found) == pytest.approx(np.mean(expected), rel=0.05)
    assert np.mean(found) > 0.03  # far from none, with 400 records


def test_even_odds_are_right_by_half_and_never_by_chance():
    given = _given([0.5] * 200, [0, 1] * 100)
    assert certainty.calibration_error(given) == 0
    assert certainty.calibration_error_by_chance(given) == 0


def test_records_are_named_in_the_order_of_confidence_while_it_is_right():
    truth = np.ones(200, int)
    truth[150] = 0
    sure = np.linspace(0.99, 0.6, 200)
    assert certainty.named(_given(sure, truth)) == 1.0  # 199 of 200
    truth[[5, 150]] = 0
    assert certainty.named(_given(sure, truth)) == 1.0
    truth[[5, 100, 150]] = 0
    assert certainty.named(_given(sure, truth)) == 0.5  # 99 of the first 100


def test_records_of_equal_confidence_are_named_together():
    sure = [0.9] * 4 + [0.8] * 4
    assert certainty.named(_given(sure, [1, 1, 1, 1, 1, 1, 1, 0])) == 0.5
    assert certainty.named(_given(sure, [1, 1, 1, 0, 1, 1, 1, 1])) == 0


def test_by_chance_a_random_order_names_some():
    # Of one wrong and one right record the right one comes first in half of all orders.
    half = certainty.named_by_chance(_given([0.9, 0.6], [1, 0]), precision=1)
    assert half == pytest.approx(0.25, abs=0.1)
    assert certainty.named_by_chance(_given([0.9] * 5, [1] * 5)) == 1
    assert certainty.named_by_chance(_given([0.9] * 5, [0] * 5)) == 0
    # Nine in ten: what is sure of the right ones names them all, luck hardly any.
    truth = np.r_[np.ones(180, int), np.zeros(20, int)]
    sure = np.r_[np.linspace(0.99, 0.9, 180), np.linspace(0.6, 0.51, 20)]
    given = _given(sure, truth)
    assert certainty.named(given) > 0.9
    assert 0.01 < certainty.named_by_chance(given) < 0.1


def test_those_with_a_value_are_found_before_the_first_without_it():
    given = _given([0.9, 0.8, 0.7, 0.6, 0.2, 0.1], [1, 1, 0, 1, 0, 0])
    area, found = certainty.discrimination(given)
    assert area == pytest.approx(8 / 9)  # of nine pairs one is the wrong way round
    assert found == pytest.approx(2 / 3)  # two of three, of either value
    constant = certainty.discrimination(_given([0.3] * 4, [0, 0, 0, 0]))
    assert np.isnan(constant).all()


def test_what_is_not_finite_believes_nothing_and_what_is_masked_is_left_out():
    found = certainty.posterior(
        [[[np.nan, 1.0], [0.2, 0.8]]], [[1, 0]], [[True, False]]
    )
    assert found.probability.tolist() == [[0.5, 0.5]] and found.truth.tolist() == [1]
    assert certainty.scores(certainty.posterior(np.ones((2, 2)), [0, 0], [0, 0])) == {}


def test_bins_hold_every_record_once():
    found = certainty.bins(_given([0.5, 0.97, 0.99, 1.0], [1, 1, 1, 0]))
    assert found.count.tolist() == [1, *[0] * 8, 3]
    assert found.accuracy[-1] == pytest.approx(2 / 3) and np.isnan(found.accuracy[1])
    assert certainty.confidence_of("aia_accuracy_percent") is None


def test_who_believes_nothing_names_no_value_rather_than_the_first():
    given = certainty.posterior(
        np.full((8, 2), np.nan), np.zeros(8, int), np.ones(8, bool)
    )
    np.testing.assert_array_equal(given.right, 0.5)
    assert certainty.calibration_error(given) == certainty.named(given) == 0


def test_what_is_found_is_found_at_one_false_alarm_in_a_thousand():
    truth = np.r_[np.ones(1000, int), np.zeros(2000, int)]
    sure = np.full(3000, 0.01)
    sure[:400], sure[400:700], sure[700:1000] = 0.99, 0.97, 0.95
    sure[1000:1002], sure[1002] = 0.98, 0.96  # a rate of 0.001, and of 0.0015
    _, found = certainty.discrimination(_given(sure, truth))
    assert found == pytest.approx((0.7 + 1997 / 2000) / 2)


@pytest.mark.parametrize("others", [30, 1500])
def test_by_chance_more_than_the_rate_are_found_of_few_others(others):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], others)
    found = [
        certainty.discrimination(_given(rng.random(2 * others), truth))[1]
        for _ in range(300)
    ]
    error = np.std(found) / len(found) ** 0.5
    chance = certainty.found_by_chance(others)
    assert chance > certainty.FALSE_POSITIVES
    assert abs(np.mean(found) - chance) < 4 * error
    given = certainty.scores(_given(rng.random(2 * others), truth))
    assert given[certainty.FOUND_BY_CHANCE] == pytest.approx(100 * chance)
