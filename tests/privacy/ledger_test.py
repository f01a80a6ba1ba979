"""What each client of a running federation has spent, and who can afford another round."""

import json

import numpy as np
import pytest

from fljax import participation, privacy
from fljax.types import NoiseSpec

DELTA, ROUNDS, STEPS = 1e-5, 7, 3
KINDS = [(u, s) for u in ("record", "client") for s in ("poisson", "fixed", "all")]


def _noise(unit="record", sampling="poisson", multiplier=4.0, rate=0.4):
    words = "put nothing in its place", unit, sampling
    return NoiseSpec(multiplier, 2.0, rate, *words)


def _ledger(noise, **more):
    return privacy.Ledger(noise, delta=DELTA, steps=STEPS, **more)


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
@pytest.mark.parametrize(("unit", "sampling"), KINDS)
def test_at_the_end_a_ledger_is_the_accountant_to_the_last_bit(
    unit, sampling, accountant
):
    noise = _noise(unit, sampling)
    ledger = _ledger(noise, accountant=accountant)
    for number in range(ROUNDS):
        ledger.charge(number, [0, 1])
    if (unit, sampling) == ("client", "fixed"):  # who was drawn is known by now
        noise = noise._replace(sampling="all", sampling_rate=1.0)
    sums = ROUNDS * (STEPS if unit == "record" else 1)
    whole = privacy.guarantee(noise, sums, DELTA, rounds=ROUNDS)
    assert ledger.spent(1) == getattr(whole, f"epsilon_{accountant}")[0] > 0
    assert ledger.statement()["assumption"] == whole.assumption


def test_each_client_is_charged_for_its_own_rounds_and_numbers():
    ledger = _ledger(_noise(multiplier=np.array([4.0, 8.0, 4.0])))
    for number, clients in enumerate([[0], [0, 1], [0, 1]]):
        ledger.charge(number, clients)
    for client, sigma, rounds in ((0, 4.0, 3), (1, 8.0, 2)):
        found = privacy.guarantee(_noise(multiplier=sigma), STEPS * rounds, DELTA)
        assert ledger.spent(client) == found.epsilon_rdp[0]
    assert ledger.spent(2) == 0


def test_where_it_is_not_seen_who_came_every_round_is_charged_to_everybody():
    ledger = _ledger(_noise("client", "poisson"))
    ledger.charge(0, [0])
    ledger.charge(4, [])  # rounds 1 to 3 were empty
    assert ledger.rounds(1) == 5
    assert ledger.spent(0) == ledger.spent(1) == privacy.epsilon(4.0, 0.4, 5, DELTA)
    told = ledger.statement()
    assert told["rounds"] == {"everybody": 5}
    assert told["epsilon"] == {"everybody": ledger.spent(0)}
    each = _ledger(_noise("client", "poisson", multiplier=np.array([4.0, 8.0])))
    each.charge(0, [])
    told = each.statement()
    assert told["rounds"] == {"0": 1, "1": 1}
    assert told["epsilon"]["0"] > told["epsilon"]["1"] > 0


@pytest.mark.parametrize(("unit", "sampling"), KINDS)
def test_a_plan_within_the_budget_is_what_asking_before_each_round_comes_to(
    unit, sampling
):
    noise = _noise(unit, sampling, multiplier=np.array([4.0, 8.0, 2.0, 4.0]))
    drawn = participation.uniform(np.random.default_rng(0), 4, 20, 0.5)
    present = participation.table(drawn, 4, 20)
    ledger = _ledger(noise, budget=2.5)
    planned, found = ledger.within(present), np.zeros_like(present)
    for number, clients in enumerate(drawn):
        found[number, there := [c for c in clients if ledger.affords([c])]] = True
        if there:
            ledger.charge(number, there)
    np.testing.assert_array_equal(planned, found)
    assert found.sum() < present.sum()
    assert 0 < max(
        ledger.spent(client) for client in range(4) if found[:, client].any()
    )


def test_a_budget_that_is_spent_to_the_last_bit_is_kept():
    budget = privacy.guarantee(_noise(), 3 * STEPS, DELTA).epsilon_rdp[0]
    ledger = _ledger(_noise(), budget=budget)
    assert ledger.within(np.ones((5, 1))).sum() == 3
    for number in range(3):
        assert ledger.affords([0])
        ledger.charge(number, [0])
    assert ledger.spent(0) == budget and not ledger.affords([0])


def test_what_it_states_is_json_and_no_noise_is_no_promise():
    ledger = _ledger(_noise(multiplier=0.0), budget=1.0)
    assert not ledger.affords([3])
    ledger.charge(0, [3])
    told = json.loads(json.dumps(ledger.statement()))
    assert (told["rounds"], told["epsilon"]) == ({"3": 1}, {"3": "inf"})
    assert (told["budget"], told["delta"], told["unit"]) == (1.0, DELTA, "record")


def test_refusals_say_what_was_expected():
    ledger = _ledger(_noise(multiplier=np.array([4.0, 8.0])))
    ledger.charge(2, [0])
    for round_, clients, said in (
        (2, [0], "expected 3 or more, .*, got 2"),
        (3, [0, 0], "each client once"),
        (3, [2], "an id below 2, got 2"),
    ):
        with pytest.raises(ValueError, match=said):
            ledger.charge(round_, clients)
    for round_, clients, said in (
        (3, [0.9], "client: expected a whole number, got 0.9"),
        (3, [True], "client: expected a whole number, got True"),
        (3.5, [0], "round: expected a whole number, got 3.5"),
        (1, [0], "expected 3 or more, none that is charged or before it, got 1"),
    ):
        with pytest.raises(ValueError, match=said):
            ledger.charge(round_, clients)
    with pytest.raises(ValueError, match="present: expected .rounds, clients., got"):
        ledger.within([True, False])
    with pytest.raises(ValueError, match="client: expected a whole number, got 0.9"):
        ledger.spent(0.9)
    assert ledger.rounds(0) == 1
    with pytest.raises(ValueError, match="budget must be > 0"):
        _ledger(_noise(), budget=0.0)
    with pytest.raises(ValueError, match="steps must be whole, got 2.7"):
        privacy.Ledger(_noise(), delta=DELTA, steps=2.7)
    for steps, said in (([[2, 2]], "got .1, 2."), ("2", "got '2'"), (None, "got nan")):
        with pytest.raises(ValueError, match=said):
            privacy.Ledger(_noise(), delta=DELTA, steps=steps)
    with pytest.raises(ValueError, match="delta"):
        privacy.Ledger(_noise(), delta=1.5)
