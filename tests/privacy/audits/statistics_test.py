"""Bounds of epsilon from scores whose law is known."""

import re

import numpy as np
import pytest

from fljax import privacy
from fljax.privacy import exact
from fljax.privacy.audits import guesses

_SHIFT, _DELTA = 2.0, 0.1


def _scores(seed, shift, count=2000):
    rng = np.random.default_rng(seed)
    present = np.arange(count) % 2 > 0
    return rng.normal(size=count) + shift * present, present


def test_a_bound_is_below_the_truth_and_not_far_below():
    truth = exact.gaussian(1 / _SHIFT, [1], [1.0], _DELTA)
    found = privacy.audited(*_scores(0, _SHIFT), delta=_DELTA)
    assert 0.5 * truth < found.epsilon <= truth
    assert found.epsilon < found.gaussian <= truth
    assert found.counts == (900, 900)
    assert found.tuned == (100, 100)


@pytest.mark.parametrize("shift", [0.0, pytest.param(1.0, marks=pytest.mark.slow)])
def test_bounds_are_too_high_in_no_more_than_their_share_of_audits(shift):
    truth = exact.gaussian(1 / shift, [1], [1.0], _DELTA) if shift else 0.0
    audits = [privacy.audited(*_scores(s, shift, 400), delta=_DELTA) for s in range(60)]
    # 5 % of 60, and three deviations more.
    assert sum(audit.epsilon > truth for audit in audits) <= 8
    assert sum(audit.gaussian > truth for audit in audits) <= 8


def test_the_area_of_scores_that_know_nothing_is_a_half():
    areas = [
        privacy.audited(*_scores(s, 0.0, 300), delta=_DELTA).auc for s in range(40)
    ]
    assert abs(np.mean(areas) - 0.5) < 4 * np.std(areas) / np.sqrt(len(areas))
    scores, present = _scores(0, 1.0)
    told = [privacy.audited(s, present, delta=_DELTA).auc for s in (scores, -scores)]
    assert sum(told) == pytest.approx(1)


def test_what_is_never_seen_with_a_canary_proves_as_much_as_what_is_never_seen_without():
    rng, present = np.random.default_rng(0), np.arange(2000) % 2 > 0
    coin = rng.random(2000) < 0.3
    betrayed = privacy.audited(1.0 * (present & coin), present, delta=0.01)
    missed = privacy.audited(-1.0 * (~present & coin), present, delta=0.01)
    assert betrayed.epsilon > 3
    assert missed.epsilon == pytest.approx(betrayed.epsilon, abs=0.5)
    assert missed.counts == (900, 900)


@pytest.mark.slow
def test_guesses_within_one_training_prove_less_than_many_trainings():
    scores = _scores(3, 4.0)
    alone = privacy.one_run(*scores, delta=1e-5)
    assert 0 < alone.epsilon < privacy.audited(*scores, delta=1e-5).epsilon
    assert alone.counts == (1000, 1000)


@pytest.mark.slow
def test_coins_that_scores_know_nothing_of_prove_little_of_one_training():
    rng, proven = np.random.default_rng(1), 0
    for _ in range(100):
        scores, coins = rng.normal(size=100), rng.random(100) < 0.5
        found = privacy.one_run(scores, coins, delta=1e-5, confidence=0.75)
        proven += found.epsilon > 0
    assert 0 < proven <= 25 + 13  # a quarter of 100, and three deviations more


def test_a_delta_at_which_right_guesses_prove_nothing_is_warned_of():
    coins = np.arange(60) % 2 > 0
    assert privacy.one_run(coins, coins, delta=1e-5).epsilon > 1
    with pytest.warns(
        UserWarning, match="with 60 canaries proves nothing, however right"
    ):
        found = privacy.one_run(coins, coins, delta=0.01)
    assert found.epsilon == 0


def test_how_many_guesses_are_made_does_not_depend_on_the_coins():
    scores = np.random.default_rng(1).permutation(100.0 * np.arange(100))
    found = guesses._thresholds(scores)
    assert [int((scores >= each).sum()) for each in found] == [100, 50, 25, 13, 7, 4]


@pytest.mark.slow
@pytest.mark.parametrize(
    "low, high",
    [
        (0.0, np.inf),
        (-np.inf, 0.0),
        (-np.inf, np.inf),
    ],
    ids=str,
)
def test_infinite_scores_prove_what_their_order_does(low, high):
    present = np.arange(2000) % 2 > 0
    scores, same = np.where(present, high, low), np.where(present, 1.0, 0.0)
    assert privacy.audited(same, present, delta=0.0).epsilon > 3
    for audit, delta in [(privacy.audited, 0.0), (privacy.one_run, 1e-5)]:
        found = audit(scores, present, delta=delta)
        assert found == audit(same, present, delta=delta)
        assert found.auc == 1


def test_a_few_infinite_scores_leave_the_rest_in_place():
    scores, present = _scores(0, _SHIFT)
    cut = np.where(scores > 3.5, np.inf, scores)
    assert np.isinf(cut[present]).mean() > 0.05
    found, whole = (privacy.audited(s, present, delta=_DELTA) for s in (cut, scores))
    assert (
        0.8 * whole.epsilon < found.epsilon <= exact.gaussian(0.5, [1], [1.0], _DELTA)
    )


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"delta": 1.0}, "delta must be in [0, 1), got 1.0"),
        ({"confidence": 0.4}, "confidence must be in (0.5, 1), got 0.4"),
        ({"scores": np.full(2000, np.nan)}, "scores: 2000 are NaN"),
        ({"present": np.ones(2000, bool)}, "expected 8 scores at least"),
        ({"present": np.ones(3, bool)}, "got shapes (2000,) and (3,)"),
    ],
)
def test_what_no_bound_can_be_computed_of(changed, said):
    scores, present = _scores(0, 1.0)
    told = {"scores": scores, "present": present, "delta": 0.1} | changed
    with pytest.raises(ValueError, match=re.escape(said)):
        privacy.audited(**told)


def test_scores_that_are_all_alike_measured_nothing():
    present = np.arange(200) % 2 > 0
    with pytest.warns(UserWarning, match="all are alike, so that nothing was measured"):
        found = privacy.audited(np.ones(200), present, delta=0.1)
    assert found.epsilon == 0
