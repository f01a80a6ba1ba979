"""Noise, steps and rounds for a budget: kept, and nearly spent."""

import dataclasses

import pytest

from fljax import privacy
from fljax.privacy import Training, fed_cdp, fed_sdp

_TOLD = Training(
    rounds=10,
    local_steps=10,
    batch_size=10,
    records=100,
    clients=20,
    clients_per_round=10,
    sigma=4.0,
    clip=1.0,
    layers=2,
    delta=1e-5,
)


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_one_step_more_would_exceed_the_budget(accountant):
    steps = privacy.steps_for(1.0, 1e-5, 4.0, 0.05, accountant)
    told = (4.0, 0.05)
    assert privacy.epsilon(*told, steps, 1e-5, accountant) <= 1
    assert privacy.epsilon(*told, steps + 1, 1e-5, accountant) > 1


def test_there_may_be_no_step_to_take_and_no_end():
    assert privacy.steps_for(0.01, 1e-5, 0.5, 0.5) == 0
    with pytest.raises(privacy.Unattainable, match="stays below 1"):
        privacy.steps_for(1.0, 1e-5, float("inf"), 0.5)


_SAYS = {
    "recommended": fed_cdp.recommended,
    "one pass": lambda told: fed_cdp.implemented(
        dataclasses.replace(told, batches="fixed")
    ),
    "Fed-SDP": fed_sdp.implemented,
}


@pytest.mark.parametrize("say", _SAYS.values(), ids=_SAYS)
def test_a_statement_keeps_its_budget(say):
    sigma = privacy.sigma_for(0.5, _TOLD, say)
    assert 0.499 < say(dataclasses.replace(_TOLD, sigma=sigma)).epsilon <= 0.5
    budget = say(_TOLD).epsilon
    assert privacy.rounds_for(budget, _TOLD, say) == _TOLD.rounds


def test_a_search_for_rounds_ends_at_a_million():
    asked = []

    def hardly_spent(training):
        asked.append(training.rounds)
        return fed_cdp.recommended(_TOLD)._replace(epsilon=1e-9 * training.rounds)

    with pytest.raises(privacy.Unattainable, match="for 1048576 rounds and more"):
        privacy.rounds_for(1.0, _TOLD, hardly_spent)
    assert max(asked) == 2**20


def test_what_cannot_be_had_is_refused():
    def refused(told):
        return fed_cdp.refused(told)[0]

    with pytest.raises(ValueError, match="has no epsilon: who takes part is seen"):
        privacy.sigma_for(1.0, _TOLD, refused)
    with pytest.raises(privacy.Unattainable, match="epsilon down to 0.01"):
        privacy.sigma_for(0.01, _TOLD, fed_cdp.printed)  # its conversion costs more


@pytest.mark.parametrize("budget", [0.0, -1.0, float("inf"), float("nan")], ids=str)
def test_a_budget_is_positive_and_finite(budget):
    for ask in (
        lambda: privacy.steps_for(budget, 1e-5, 1.0, 0.1),
        lambda: privacy.sigma_for(budget, _TOLD, fed_cdp.recommended),
        lambda: privacy.rounds_for(budget, _TOLD, fed_cdp.recommended),
    ):
        with pytest.raises(ValueError, match="epsilon must be > 0 and finite"):
            ask()


@pytest.mark.parametrize("budget", [0.3, 1.0, 3.0])
def test_a_budget_is_never_exceeded(budget):
    sigma = privacy.noise_multiplier_for(budget, 1e-5, 0.1, 50)
    assert 0.999 * budget < privacy.epsilon(sigma, 0.1, 50, 1e-5) <= budget
