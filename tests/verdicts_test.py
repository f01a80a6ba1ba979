"""One rule for what counts as a leak."""

import math

import numpy as np
import pytest
from scipy import stats

from fljax import verdicts
from fljax.verdicts import ACCURACY, DISTANCE, Baseline


def _judge(scores, baseline, measure=ACCURACY, **more):
    return verdicts.judge(scores, Baseline("majority", baseline), measure, **more)


@pytest.mark.parametrize(
    ("gains", "kind"),
    [
        ((10.0, 11.0, 12.0), verdicts.LEAKS),
        ((0.0, 0.0, 0.0), verdicts.NO_GAIN),
        ((-3.0, -2.0, -4.0), verdicts.NO_GAIN),
        ((-3.0, 0.0, 9.0), verdicts.NOT_CLEAR),
        ((50.0,), verdicts.NO_INTERVAL),
        ((50.0, math.nan), verdicts.NO_INTERVAL),
    ],
)
def test_the_interval_of_the_mean_gain_decides(gains, kind):
    base = np.array([57.0, 80.0, 66.0])[: len(gains)]  # pairing takes these out
    found = _judge(base + gains, base)
    assert found.kind == kind
    np.testing.assert_allclose(found.gain, np.mean(gains))


def test_less_of_a_distance_is_a_leak():
    assert _judge([0.1, 0.11, 0.1], [0.3, 0.3, 0.3], DISTANCE).kind == verdicts.LEAKS
    assert _judge([0.3, 0.301, 0.3], [0.3, 0.3, 0.3], DISTANCE).kind == verdicts.NO_GAIN


def test_one_client_is_judged_by_the_interval_over_its_own_rows():
    found = _judge([70.0], [57.0], own=[(60.0, 78.0)])
    assert found[:4] == (verdicts.LEAKS, 13.0, 3.0, 21.0)
    assert _judge([70.0], [57.0], own=[(55.0, 80.0)]).kind == verdicts.NOT_CLEAR
    assert _judge([50.0], [57.0], own=[(43.0, 57.9)]).kind == verdicts.NO_GAIN


def test_one_client_of_several_suffices():
    found = _judge([90.0, 50.0], [57.0, 57.0], own=[(70.0, 99.0), (40.0, 60.0)])
    assert (found.kind, found.units, found.units_alone) == (verdicts.LEAKS, 2, 1)


def test_an_estimated_baseline_widens_the_interval():
    base = Baseline("mean_distribution", [0.30], [0.02])
    found = verdicts.judge([0.27], base, DISTANCE, own=[(0.26, 0.28)])
    assert found.kind == verdicts.NOT_CLEAR
    np.testing.assert_allclose((found.low, found.high), (0.0, 0.06), atol=1e-12)


def test_a_single_distance_is_never_a_leak():
    assert _judge([0.0], [0.3], DISTANCE).kind == verdicts.NO_INTERVAL


def test_equal_scores_are_no_leak_whatever_the_rounding():
    assert _judge([0.1 + 0.2] * 3, [0.3] * 3).kind == verdicts.NO_GAIN


@pytest.mark.parametrize(
    ("attack", "setting", "judged"),
    [
        ("grad", "passive", True),
        ("model", "active_50", True),
        ("grad_oracle", "passive", False),
        ("model_oracle_or_active", "active_50", False),
        ("model", "oracle", False),
        ("trajectory_permuted", "passive", False),
        ("model_other", "passive", False),
        ("majority", "baseline", False),
        ("local_optimum", "local_steps=1", False),
    ],
)
def test_controls_and_what_was_chosen_with_the_truth_are_not_judged(
    attack, setting, judged
):
    assert verdicts.is_judged(attack, setting) == judged


_AUDITS = 1000
_ALLOWED = 1 / 40 + 3 * math.sqrt(1 / 40 * 39 / 40 / _AUDITS)


@pytest.mark.parametrize("clients", [1, 4, 20, 100])
def test_accuracies_of_blind_guesses_leak_in_at_most_one_audit_in_forty(clients):
    rng = np.random.default_rng(clients)
    level, rows = verdicts.own_level(clients), 50
    quantile = stats.norm.ppf(0.5 + level / 2)
    leaks = 0
    for _ in range(_AUDITS):
        share = rng.uniform(0.5, 0.9, (clients, 1))
        truth = rng.random((clients, rows)) < share
        guess = rng.random((clients, rows)) < share  # as frequent as the truth
        hits, counts = (guess == truth).mean(axis=1), truth.mean(axis=1)
        middle = (hits + quantile**2 / (2 * rows)) / (1 + quantile**2 / rows)
        half = quantile * np.sqrt(hits * (1 - hits) / rows + (quantile / rows) ** 2 / 4)
        half /= 1 + quantile**2 / rows  # Wilson's
        own = 100 * np.stack([middle - half, middle + half], axis=1)
        base = 100 * np.maximum(counts, 1 - counts)
        leaks += _judge(100 * hits, base, own=own).kind == verdicts.LEAKS
    assert leaks / _AUDITS <= _ALLOWED


@pytest.mark.parametrize("clients", [1, 4, 20, 100])
def test_blind_label_distributions_leak_in_at_most_one_audit_in_forty(clients):
    """The half of a baseline, which one client needed, called 8 to 100 % of them one."""
    rng = np.random.default_rng(clients)
    leaks = 0
    for _ in range(_AUDITS):
        truth, guess = rng.dirichlet(np.ones(3), (2, clients))
        ours = 0.5 * np.abs(guess - truth).sum(axis=1)
        base = 0.5 * np.abs(1 / 3 - truth).sum(axis=1)
        leaks += _judge(ours, base, DISTANCE).kind == verdicts.LEAKS
    assert leaks / _AUDITS <= _ALLOWED


def test_gains_of_mean_zero_leak_in_one_audit_in_forty():
    rng = np.random.default_rng(0)
    gains = rng.normal(size=(4000, 10))
    found = [_judge(each, np.zeros(10)).kind for each in gains]
    share = found.count(verdicts.LEAKS) / len(found)
    assert abs(share - 1 / 40) < 3 * math.sqrt(1 / 40 / len(found))
