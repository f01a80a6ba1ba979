"""One rule for what counts as a leak."""

import math

import numpy as np
import pytest
from scipy import stats

from fljax import metrics, verdicts
from fljax.verdicts import ACCURACY, DISTANCE, LEAKS, NOT_SHOWN, PREDICTABLE, Reference


def _judge(scores, baseline, measure=ACCURACY, **more):
    return verdicts.judge(scores, [Reference("majority", baseline)], measure, **more)


@pytest.mark.parametrize(
    ("gains", "kind", "stopped"),
    [
        ((10.0, 11.0, 12.0), LEAKS, False),
        ((0.0, 0.0, 0.0), NOT_SHOWN, True),
        ((-3.0, -2.0, -4.0), NOT_SHOWN, True),
        ((-3.0, 0.0, 9.0), NOT_SHOWN, False),
        ((50.0,), NOT_SHOWN, False),
        ((50.0, math.nan), NOT_SHOWN, False),
    ],
)
def test_the_interval_of_the_mean_gain_decides(gains, kind, stopped):
    base = np.array([57.0, 80.0, 66.0])[: len(gains)]  # pairing takes these out
    found = _judge(base + gains, base)
    assert (found.kind, found.is_stopped) == (kind, stopped)
    np.testing.assert_allclose(found.beyond.mean, np.mean(gains))
    assert found.has_interval is (len(gains) > 2)


def test_a_leak_is_above_every_reference():
    ours, majority = [95.8, 95.9, 95.7], Reference("majority", [79.0, 80.0, 79.5])
    imputation = Reference("imputation", [96.0, 96.5, 95.8])
    strangers = Reference("strangers", [90.0, 90.5, 90.1])
    assert verdicts.judge(ours, [majority], ACCURACY).kind == LEAKS
    found = verdicts.judge(ours, [majority, imputation, strangers], ACCURACY)
    assert found.kind == PREDICTABLE and found.beyond.name == "imputation"
    found = verdicts.judge([99.9] * 3, [majority, imputation, strangers], ACCURACY)
    assert found.kind == LEAKS and found.beyond.mean == pytest.approx(3.8)
    strangers = Reference("strangers", [99.8, 99.9, 99.9])  # as good on anyone
    found = verdicts.judge([99.9] * 3, [majority, imputation, strangers], ACCURACY)
    assert found.kind == PREDICTABLE


def test_a_gain_that_may_be_chance_is_not_called_predictable():
    majority = Reference("majority", [60.0], None)
    imputation = Reference("imputation", [70.0], [(60.0, 80.0)])
    found = verdicts.judge([75.0], [majority, imputation], ACCURACY, [(66.0, 84.0)])
    assert found.kind == NOT_SHOWN and not found.is_stopped


def test_rows_that_are_drawn_for_every_client_count_once():
    ours, exact = [80.0] * 4, [(80.0, 80.0)] * 4
    strangers = Reference("strangers", [70.0] * 4, [(64.0, 76.0)] * 4, uses=4.0)
    gain = verdicts.judge(ours, [strangers], ACCURACY, exact).beyond
    ratio = stats.norm.ppf(0.975) / stats.norm.ppf(1 - 0.025 / 4)
    np.testing.assert_allclose([gain.low, gain.high], [10 - 6 * ratio, 10 + 6 * ratio])
    assert gain.alone.all()  # within a client each counts once


def test_errors_of_rows_that_are_drawn_for_every_client_count_once():
    ours, exact = [80.0] * 4, [(80.0, 80.0)] * 4
    half = []
    for uses in (1.0, 4.0):
        strangers = Reference(
            "strangers", [70.0] * 4, [(70.0, 70.0)] * 4, uses=uses, errors=[3.0] * 4
        )
        told = ours, [strangers], ACCURACY, exact
        gain = verdicts.judge(*told, errors=[0.0] * 4).beyond
        half.append(gain.high - gain.mean)
    assert half[1] == pytest.approx(2 * half[0]) and half[0] > 0


def test_a_client_without_a_number_does_not_hide_the_others():
    ends = [(95.0, 99.9), (math.nan, math.nan), (60.0, 80.0)]
    scores = [99.0, math.nan, 70.0]
    found = _judge(scores, [50.0] * 3, own=ends)
    assert (found.kind, found.units) == (LEAKS, 2) and math.isfinite(found.beyond.low)
    assert _judge([math.nan], [50.0], own=ends[1:2]).kind == NOT_SHOWN


def test_less_of_a_distance_is_a_leak():
    assert _judge([0.1, 0.11, 0.1], [0.3, 0.3, 0.3], DISTANCE).kind == LEAKS
    found = _judge([0.3, 0.301, 0.3], [0.3, 0.3, 0.3], DISTANCE)
    assert found.kind == NOT_SHOWN and found.is_stopped


def test_one_client_is_judged_by_the_interval_over_its_own_rows():
    found = _judge([70.0], [57.0], own=[(60.0, 78.0)])
    assert found.kind == LEAKS
    np.testing.assert_allclose(found.gains[0][1:4], (13.0, 3.0, 21.0))
    assert _judge([70.0], [57.0], own=[(55.0, 80.0)]).kind == NOT_SHOWN
    assert _judge([50.0], [57.0], own=[(43.0, 57.9)]).is_stopped


def test_one_client_of_several_suffices_unless_others_are_as_far_below():
    ends = [(70.0, 99.0), (40.0, 60.0)]
    found = _judge([90.0, 50.0], [57.0, 57.0], own=ends)
    assert (found.kind, found.units, found.units_alone) == (LEAKS, 2, 1)
    ends = [(58.0, 62.0), (30.0, 50.0)]
    assert _judge([60.0, 40.0], [57.0, 57.0], own=ends).kind == NOT_SHOWN


def test_a_client_who_is_read_wholly_is_not_hidden_by_those_who_are_not():
    ends = [(93.0, 100.0)] + [(40.0, 60.0)] * 40
    scores, usual = [100.0] + [50.0] * 40, [57.0] * 41
    imputed = Reference("imputation", usual)

    def judged(scores, ends, *more):
        references = [Reference("majority", usual), imputed, *more]
        return verdicts.judge(scores, references, ACCURACY, own=ends)

    found = judged(scores, ends)
    assert found.gains[0].mean == pytest.approx(-5.78, abs=0.01)
    assert (found.kind, found.units_alone) == (LEAKS, 1)
    # Without imputation it may be what a population's model tells of a kind of clients.
    assert _judge(scores, usual, own=ends).kind == NOT_SHOWN
    # A coin that is as often wrong: what it says the wrong way round would count.
    scores[-1], ends[-1] = 0.0, (0.0, 7.0)
    assert judged(scores, ends).kind == NOT_SHOWN
    ends[-1] = (0.0, 90.0)  # of a row or two
    assert judged(scores, ends).kind == LEAKS
    strange = Reference("strangers", [90.0] * 41)  # whom noise would hide as well
    assert judged(scores, ends, strange).kind == NOT_SHOWN


def test_an_estimated_baseline_widens_the_interval():
    base = Reference("mean_distribution", [0.30], [(0.26, 0.34)])
    found = verdicts.judge([0.27], [base], DISTANCE, own=[(0.24, 0.30)])
    assert found.kind == NOT_SHOWN
    np.testing.assert_allclose(found.gains[0][2:4], (-0.02, 0.08), atol=1e-12)


def test_more_attacks_and_clients_make_intervals_wider():
    assert verdicts.own_level(1) == verdicts.level() == 0.95
    assert verdicts.own_level(4, attacks=5) == pytest.approx(1 - 0.05 / 20)
    gains = [57.0 + 3, 57.0 + 4, 57.0 + 8]
    assert _judge(gains, [57.0] * 3).kind == NOT_SHOWN
    gains = [57.0 + 4, 57.0 + 5, 57.0 + 6]
    assert _judge(gains, [57.0] * 3).kind == LEAKS
    assert _judge(gains, [57.0] * 3, attacks=6).kind == NOT_SHOWN


def test_a_single_distance_is_never_a_leak():
    found = _judge([0.0], [0.3], DISTANCE)
    assert found.kind == NOT_SHOWN and not found.has_interval


def test_equal_scores_are_no_leak_whatever_the_rounding():
    assert _judge([0.1 + 0.2] * 3, [0.3] * 3).kind == NOT_SHOWN


_AUDITS = 600
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
        leaks += _judge(100 * hits, base, own=own).kind == LEAKS
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
        leaks += _judge(ours, base, DISTANCE).kind == LEAKS
    assert leaks / _AUDITS <= _ALLOWED


def test_gains_of_mean_zero_leak_in_one_audit_in_forty():
    rng = np.random.default_rng(0)
    gains = rng.normal(size=(4000, 10))
    found = [_judge(each, np.zeros(10)).kind for each in gains]
    share = found.count(LEAKS) / len(found)
    assert abs(share - 1 / 40) < 3 * math.sqrt(1 / 40 / len(found))


def test_a_client_of_a_single_row_hides_nobody_elses_leak():
    scores, own = [0.1] * 11, [(0.05, 0.15)] * 10 + [(math.nan, math.nan)]
    spread = Reference(verdicts.MAJORITY, [1.0] * 11, [(0.9, 1.1)] * 11)
    found = verdicts.judge(scores, [spread], verdicts.ERROR, own)
    assert found.kind == verdicts.LEAKS and found.units == 10


def test_the_intervals_of_two_shares_are_joined_as_newcombe_does():
    base = Reference("imputation", [60.0], [(52.0, 61.0)])  # 8 below, 1 above
    gain = verdicts.judge([70.0], [base], ACCURACY, own=[(66.0, 90.0)]).beyond
    ends = 10 - math.hypot(4, 1), 10 + math.hypot(20, 8)
    np.testing.assert_allclose([gain.low, gain.high], ends)


def test_who_is_no_better_than_one_reference_is_stopped():
    majority = Reference("majority", [50.0] * 3)
    strangers = Reference("strangers", [70.0, 70.2, 70.1])
    found = verdicts.judge([70.1, 70.0, 70.2], [majority, strangers], ACCURACY)
    assert found.is_stopped


def test_what_stands_against_a_leak_is_told_beside_imputation():
    scores = [70.1, 70.0, 70.2]
    majority, imputed, strangers = (
        Reference(name, [value, value + 0.2, value + 0.1])
        for name, value in (
            ("majority", 50.0),
            ("imputation", 60.0),
            ("strangers", 70.0),
        )
    )
    found = verdicts.judge(scores, [majority, imputed, strangers], ACCURACY)
    assert found.kind == verdicts.PREDICTABLE
    assert [gain.name for gain in found.to_report] == ["imputation", "strangers"]
    found = verdicts.judge(scores, [majority, imputed], ACCURACY)
    assert [gain.name for gain in found.to_report] == ["imputation"]
    unknown = strangers._replace(values=[math.nan] * 3)
    found = verdicts.judge(scores, [majority, imputed, unknown], ACCURACY)
    assert [gain.name for gain in found.to_report] == ["imputation"]


def test_of_a_leak_the_least_gain_is_told():
    references = [
        Reference(name, [value, value + 0.2, value + 0.1])
        for name, value in (("majority", 52.0), ("imputation", 14.0))
    ]
    found = verdicts.judge([93.1, 93.0, 93.2], references, ACCURACY)
    assert found.kind == verdicts.LEAKS
    assert [gain.name for gain in found.to_report] == ["majority"]


def test_only_what_chance_does_not_explain_is_impossible():
    assert not verdicts.is_impossible(82.0, 400, ceiling=76.0)  # beyond two deviations
    assert verdicts.is_impossible(84.0, 400, ceiling=76.0)
    assert not verdicts.is_impossible(84.0, 40, ceiling=76.0)


def _blind(rng, clients, size, attacks):
    """Whether some attack that knows nothing is shown above strangers on average."""
    level, found = verdicts.own_level(clients, attacks), False
    for _ in range(attacks):
        told = []
        for percents in 100 * rng.binomial(size, 0.5, (2, clients)) / size:
            ends = [metrics.of_rows(percent, size, level) for percent in percents]
            errors = [metrics.standard_error(percent, size) for percent in percents]
            told.append((percents, ends, errors))
        (ours, own, errors), (values, ends, theirs) = told
        strangers = Reference("strangers", values, ends, errors=theirs)
        verdict = verdicts.judge(ours, [strangers], ACCURACY, own, attacks, errors)
        found |= verdict.gains[0].is_shown
    return found


@pytest.mark.parametrize(("clients", "size", "attacks"), [(20, 5, 5), (4, 10, 5)])
def test_clients_of_few_rows_show_no_more_leaks_by_chance(clients, size, attacks):
    rng = np.random.default_rng(clients)
    alarms = sum(_blind(rng, clients, size, attacks) for _ in range(150))
    # One in twenty, and three standard errors; Wilson's ends alone have 25 and 10 %.
    assert alarms <= 0.05 * 150 + 3 * np.sqrt(0.05 * 0.95 * 150)


def test_two_seeds_that_happen_to_be_equal_are_not_certain():
    strangers = Reference("strangers", [80.0, 80.0])
    told = [80.25, 80.25], [strangers], ACCURACY
    assert verdicts.judge(*told).kind == verdicts.LEAKS  # of exact numbers
    assert verdicts.judge(*told, resolution=0.25).kind != verdicts.LEAKS
    far = Reference("majority", [54.0, 54.0])
    found = verdicts.judge([99.5, 99.5], [far], ACCURACY, resolution=0.25)
    assert found.kind == verdicts.LEAKS
