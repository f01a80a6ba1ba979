"""The noise of a defense, turned into a guarantee by its unit and sampling."""

import numpy as np
import pytest

from fljax import privacy
from fljax.privacy import exact, sampled
from fljax.types import NoiseSpec

_DELTA = 1e-5


def _spec(unit, sampling, multiplier=4.0, rate=0.1):
    return NoiseSpec(multiplier, 2.0, rate, "put nothing in its place", unit, sampling)


def _one(count, multiplier=4.0):
    return exact.gaussian(multiplier, [count], [1.0], _DELTA)


@pytest.mark.parametrize("unit", ["record", "client"])
def test_poisson_sampling_amplifies_whoever_it_samples(unit):
    found = privacy.guarantee(_spec(unit, "poisson"), 50, _DELTA)
    expected = privacy.epsilon(4.0, 0.1, 50, _DELTA, "pld")
    assert found.epsilon_pld == pytest.approx([expected])
    assert found.epsilon_rdp == pytest.approx([privacy.epsilon(4.0, 0.1, 50, _DELTA)])
    assert unit.replace("record", "row") in found.assumption
    assert ("not seen" in found.assumption) == (unit == "client")


@pytest.mark.parametrize("unit", ["record", "client"])
def test_who_is_in_every_sum_is_not_amplified(unit):
    found = privacy.guarantee(_spec(unit, "all"), 50, _DELTA)
    assert found.epsilon_pld == pytest.approx([_one(50)])


def test_a_record_of_fixed_batches_is_in_one_sum_of_each_pass():
    spec = _spec("record", "fixed")
    for steps, rounds, met in (
        (50, None, 5), (51, None, 6), (50, 1, 5), (50, 25, 25), (50, 50, 50),
        (50, 3, 6),
    ):  # fmt: skip
        found = privacy.guarantee(spec, steps, _DELTA, rounds=rounds)
        assert found.epsilon_pld == pytest.approx([_one(met)]), (steps, rounds)
    assert "nothing is gained by sampling" in found.assumption
    assert "50 such sums are composed, of which a row is in 6" in found.assumption


def test_sums_that_do_not_divide_into_rounds_count_as_those_of_the_longest():
    spec = _spec("record", "fixed", rate=0.5)
    assert privacy.as_poisson(spec, 7, 3)[1] == 6


def test_a_fixed_number_of_clients_averages_delta_over_the_rounds_of_each():
    found = privacy.guarantee(_spec("client", "fixed"), 50, _DELTA)
    expected = exact.gaussian(4.0, *exact.drawn(50, 0.1), _DELTA)
    assert found.epsilon_pld == pytest.approx([expected])
    assert expected < found.epsilon_rdp[0]
    assert _one(50) <= found.epsilon_rdp[0]
    assert "may be seen" in found.assumption


def test_numbers_may_be_of_one_client_or_of_each():
    spec = _spec("record", "poisson", multiplier=np.array([4.0, 8.0]))
    found = privacy.guarantee(spec, np.array([50, 50]), _DELTA)
    assert found.epsilon_pld.shape == (2,)
    assert found.epsilon_pld[1] < found.epsilon_pld[0]


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("sampling", ["poisson", "fixed", "all"])
def test_noise_for_the_poisson_sums_spends_the_budget_of_the_guarantee(unit, sampling):
    rates, steps = privacy.as_poisson(_spec(unit, sampling), np.array([60, 90]), 30)
    sigma = [
        privacy.noise_multiplier_for(2.0, _DELTA, rate, count)
        for rate, count in zip(rates, steps, strict=True)
    ]
    spec = _spec(unit, sampling, multiplier=np.array(sigma))
    spent = privacy.guarantee(spec, np.array([60, 90]), _DELTA, rounds=30)
    assert ((spent.epsilon_rdp > 1.99) & (spent.epsilon_rdp <= 2)).all()


def test_clients_with_the_same_numbers_are_accounted_for_once(monkeypatch):
    asked, really = [], sampled.epsilon

    def epsilon(*told):
        asked.append(told)
        return really(*told)

    monkeypatch.setattr(sampled, "epsilon", epsilon)
    spec = _spec("record", "poisson", multiplier=np.array([4.0, 8.0, 4.0, 8.0]))
    found = privacy.guarantee(spec, np.array([50, 50, 50, 60]), _DELTA)
    assert len(asked) == 2 * 3  # two accountants
    first, second, again, longer = found.epsilon_pld
    assert second < longer < first == again


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("sampling", ["poisson", "fixed", "all"])
def test_without_noise_epsilon_is_infinite(unit, sampling):
    found = privacy.guarantee(_spec(unit, sampling, multiplier=0.0), 5, _DELTA)
    assert np.isinf(found.epsilon_pld).all() and np.isinf(found.epsilon_rdp).all()


@pytest.mark.parametrize(
    ("spec", "steps", "delta", "message"),
    [
        (_spec("record", "shuffled"), 5, _DELTA, "no accounting for the unit and sampling"),
        (_spec("group", "all"), 5, _DELTA, "no accounting for the unit and sampling"),
        (_spec("record", "fixed", rate=0.0), 5, _DELTA, "sampling_rate must be in"),
        (_spec("client", "fixed", rate=1.5), 5, _DELTA, "sampling_rate must be in"),
        (_spec("client", "all", multiplier=-1.0), 5, _DELTA, "noise_multiplier must be"),
        (_spec("record", "all"), -5, _DELTA, "steps must be >= 0"),
        (_spec("record", "all"), 5, 1.0, "delta must be in"),
    ],
    ids=[
        "sampling", "unit", "rate of 0", "rate above 1", "multiplier", "steps", "delta"
    ],
)  # fmt: skip
def test_bad_input(spec, steps, delta, message):
    with pytest.raises(ValueError, match=message):
        privacy.guarantee(spec, steps, delta)


@pytest.mark.parametrize(
    ("spec", "steps", "message"),
    [
        (_spec("record", "shuffled"), 5, "no accounting for the unit and sampling"),
        (_spec("record", "all"), np.array([3, -5]), "steps must be >= 0, got -5"),
    ],
    ids=["sampling", "steps"],
)
def test_bad_input_of_poisson_sums(spec, steps, message):
    with pytest.raises(ValueError, match=message):
        privacy.as_poisson(spec, steps)
