"""What is said of whole trainings, against numbers worked out apart from this code.

The references are those of Wei et al.'s five trainings (sigma = 6, delta = 1e-5, T of
100, 100, 60, 10, 3 rounds), by dp_accounting's loss distributions in cells of 1e-4, or
exact for Gaussians without sampling.
"""

import dataclasses
import math

import pytest

from fljax import privacy
from fljax.privacy import exact, fed_cdp, fed_sdp
from tests.privacy.wei import MNIST

_CIFAR = dataclasses.replace(MNIST, batch_size=4, records=400)
_LFW = dataclasses.replace(MNIST, rounds=60, batch_size=3, records=300, copies=132)
_ADULT = dataclasses.replace(_LFW, rounds=10, copies=8)
_CANCER = dataclasses.replace(MNIST, rounds=3, batch_size=4, records=400, copies=1000)


def _drawn(told):
    return fed_cdp.implemented(told, every=False)


def _of_one_round(told):
    return fed_cdp.implemented_client(told, rounds=1)


_ONE_STEP, _SIX = {"local_steps": 1}, {"layers": 6}
_EACH, _PASS = {"draws": "each"}, {"batches": "fixed"}
_FIXED_SIZE = {"batches": "without_replacement"}
_REFERENCES = {
    "recommended": (
        fed_cdp.recommended, {}, (0.6010, 0.6010, 0.4553, 0.1724, 0.0899)),
    "recommended, L = 1": (
        fed_cdp.recommended, _ONE_STEP, (0.0496, 0.0496, 0.0377, 0.0144, 0.0077)),
    "Poisson": (fed_cdp.implemented, {}, (1.1164, 1.1164, 0.8448, 0.3210, 0.1687)),
    "Poisson, M = 6": (
        fed_cdp.implemented, _SIX, (1.6806, 1.6806, 1.2699, 0.4833, 0.2559)),
    "Poisson, B draws": (
        fed_cdp.implemented, _EACH, (0.4533, 0.5126, 0.4553, 0.1724, 0.0764)),
    "Poisson, L = 1": (
        fed_cdp.implemented, _ONE_STEP, (0.0944, 0.0944, 0.0723, 0.0291, 0.0164)),
    "drawn clients": (_drawn, {}, (0.3530, 0.3530, 0.2794, 0.1367, 0.0928)),
    "drawn clients, B draws": (
        _drawn, _EACH, (0.1414, 0.1603, 0.1485, 0.0712, 0.0402)),
    "one pass": (fed_cdp.implemented, _PASS, (15.867, 15.867, 11.480, 3.940, 1.993)),
    "one pass, B draws": (
        fed_cdp.implemented, {**_PASS, **_EACH}, (5.9, 6.735, 5.9, 2.114, 0.926)),
    "one pass, drawn": (_drawn, _PASS, (4.595, 4.595, 3.618, 1.782, 1.225)),
    "one pass, drawn, B draws": (
        _drawn, {**_PASS, **_EACH}, (1.805, 2.049, 1.910, 0.946, 0.551)),
    "copies": (fed_cdp.copied, _PASS, (16.45, 16.45, 67.5, 4.13, 33.7)),
    "without replacement": (
        fed_cdp.implemented, _FIXED_SIZE, (6.293, 6.293, 4.677, 1.742, 0.925)),
    "one example seen": (
        fed_cdp.example, _EACH, (1.0849, 1.0849, 1.0849, 1.0849, 1.0849)),
    "whole client, one round": (_of_one_round, _PASS, (165, None, None, None, None)),
    "whole client, B draws": (
        _of_one_round, {**_PASS, **_EACH}, (48, None, None, None, None)),
    "Fed-SDP": (fed_sdp.recommended, {}, (0.6157, None, 0.4696, 0.1855, 0.1022)),
    "Fed-SDP, one draw": (
        fed_sdp.implemented, {}, (1.1658, None, 0.8934, 0.3668, 0.2134)),
    "Fed-SDP, M = 6": (
        fed_sdp.implemented, _SIX, (1.7891, None, 1.3777, 0.5889, 0.3616)),
    "Fed-SDP, K_t draws": (
        fed_sdp.implemented, _EACH, (0.0882, None, 0.0667, 0.0249, 0.0128)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("say", "changed", "expected"), _REFERENCES.values(), ids=_REFERENCES
)
def test_epsilons_are_those_worked_out_elsewhere(say, changed, expected):
    trainings = MNIST, _CIFAR, _LFW, _ADULT, _CANCER
    for told, number in zip(trainings, expected, strict=True):
        of_same_rate = told is _CIFAR and number == expected[0]
        if number is not None and not of_same_rate:
            found = say(dataclasses.replace(told, **changed)).epsilon
            assert found == pytest.approx(number, rel=0.01)


def test_a_replaced_example_is_harder_to_hide():
    told = dataclasses.replace(MNIST, draws="each")
    assert fed_cdp.example(told, replace=True).epsilon == pytest.approx(
        2.3414, rel=1e-3
    )


@pytest.mark.slow
def test_copies_in_poisson_batches():
    found = fed_cdp.copied(MNIST)
    assert found.epsilon == pytest.approx(1.1337, rel=0.01)
    assert "approximate" in found.reason


def _whatever():
    small = dataclasses.replace(MNIST, rounds=2, local_steps=3, copies=2)
    for draws in ("one", "each"):
        yield "fed_sdp", dataclasses.replace(small, draws=draws)
        for batches in ("poisson", "fixed", "without_replacement"):
            yield "fed_cdp", dataclasses.replace(small, draws=draws, batches=batches)


@pytest.mark.slow
def test_every_statement_has_a_number_and_assumptions_or_a_reason():
    ways = set()
    for method, told in _whatever():
        found = privacy.statements(method, told)
        assert len({(s.way, s.unit, s.name) for s in found}) == len(found)
        for said in found:
            ways.add((said.way, said.unit))
            if said.epsilon is None:
                assert said.way == "refused" and len(said.reason) > 40
            else:
                assert said.epsilon > 0
                assert said.adjacency.startswith(("neighbours", "all 2 copies"))
                assert said.sampling and said.composition and said.delta == 1e-5
    assert ways == {
        ("printed", "record"), ("printed", "client"), ("implemented", "record"),
        ("implemented", "client"), ("recommended", "record"),
        ("recommended", "client"), ("refused", "record"), ("refused", "client"),
    }  # fmt: skip


def test_claims_that_no_theorem_covers_get_no_number():
    told = dataclasses.replace(MNIST, draws="each")
    found = [*fed_cdp.refused(told), *fed_sdp.refused(told)]
    assert {said.epsilon for said in found} == {None}
    refused = {said.name: said.reason for said in found}
    assert set(refused) == {
        "sampling rate q p = 0.001",
        "batches drawn from the records of all clients",
        "a draw per example that is present",
        "a draw per client who came, any number of whom may",
        "sampling rate K_t / K = 0.1 against the server",
    }
    assert "who takes part is seen" in refused["sampling rate q p = 0.001"]


def test_without_noise_nothing_is_promised():
    for method, told in _whatever():
        silent = dataclasses.replace(told, sigma=0.0)
        for said in privacy.statements(method, silent):
            assert said.epsilon in (None, math.inf)


def test_noise_on_the_sum_hides_neither_one_example_nor_one_message():
    assert fed_cdp.example(MNIST).epsilon == math.inf
    assert fed_sdp.messages(MNIST).epsilon == math.inf
    each = dataclasses.replace(MNIST, draws="each")
    assert fed_sdp.messages(each).epsilon == pytest.approx(4.595, rel=1e-3)


def test_neither_clip_nor_its_schedule_counts():
    small = dataclasses.replace(MNIST, rounds=1, clip=0.1)
    same = dataclasses.replace(small, clip=6.0)
    assert fed_cdp.implemented(small).epsilon == fed_cdp.implemented(same).epsilon


def test_a_pass_that_starts_anew_in_each_round_meets_a_record_in_each():
    told = dataclasses.replace(MNIST, batches="fixed", rounds=10)
    short, epoch, more = (
        fed_cdp.implemented(dataclasses.replace(told, local_steps=steps)).epsilon
        for steps in (1, 100, 101)
    )
    assert short == epoch < more


_UNEVEN = {
    "the most uneven of a mean": ({}, [100, 1]),
    "as told": ({"largest": 60}, [60, 41]),
    "a pass cut short": ({"local_steps": 3}, [100, 1, 100]),
    "a whole mean of unlike batches": (
        {"batch_size": 50, "records": 100, "largest": 75}, [75, 25]),
    "equal batches": ({"batch_size": 50, "records": 100}, [50, 50]),
    "a size that does not divide": ({"batch_size": 60}, [60, 41]),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "sizes"), _UNEVEN.values(), ids=_UNEVEN)
def test_a_whole_client_moves_each_sum_by_the_rows_of_its_batch(changed, sizes):
    told = {"local_steps": 2, "batch_size": 101 / 2, "records": 101, "sigma": 30.0}
    told |= {"layers": 1, "batches": "fixed", **changed}
    told = dataclasses.replace(MNIST, **told)
    for rounds in (1, 3):
        shift = (rounds * sum(size**2 for size in sizes)) ** 0.5 / 30
        found = fed_cdp.implemented_client(told, rounds=rounds).epsilon
        expected = exact.gaussian(1 / shift, [1], [1.0], 1e-5)
        assert found == pytest.approx(expected, rel=1e-9)


_SAYS = {
    "recommended": fed_cdp.recommended,
    "Poisson": fed_cdp.implemented,
    "drawn": _drawn,
    "whole client": fed_cdp.implemented_client,
    "Fed-SDP": fed_sdp.implemented,
    "messages": fed_sdp.messages,
    "a record of Fed-SDP": fed_sdp.record,
    "printed": fed_cdp.printed,
}


@pytest.mark.parametrize("batches", ["poisson", "fixed"])
@pytest.mark.parametrize("say", _SAYS.values(), ids=_SAYS)
def test_epsilon_falls_with_noise_and_grows_with_rounds(say, batches):
    told = dataclasses.replace(
        MNIST, rounds=8, local_steps=50, draws="each", batches=batches
    )
    base = say(told).epsilon
    assert say(dataclasses.replace(told, sigma=9.0)).epsilon < base
    assert say(dataclasses.replace(told, rounds=16)).epsilon > base
    assert say(dataclasses.replace(told, delta=1e-3)).epsilon < base


def test_participation_lies_between_no_round_and_every_round():
    told = dataclasses.replace(MNIST, rounds=10)
    rare, half, most = (
        _drawn(dataclasses.replace(told, clients_per_round=count)).epsilon
        for count in (10, 500, 999)
    )
    every = _drawn(dataclasses.replace(told, clients_per_round=1000)).epsilon
    assert 0 < rare < half < most < every
    assert every == pytest.approx(fed_cdp.implemented(told).epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"delta": 0.0}, "delta must be in"),
        ({"delta": 1.0}, "delta must be in"),
        ({"sigma": -1.0}, "sigma must be >= 0"),
        ({"sigma": math.nan}, "sigma must be >= 0"),
        ({"clip": 0.0}, "clip must be > 0"),
        ({"rounds": 0}, "rounds must be whole and >= 1, got 0"),
        ({"rounds": math.nan}, "rounds must be whole and >= 1, got nan"),
        ({"layers": 1.5}, "layers must be whole and >= 1, got 1.5"),
        ({"batch_size": 501}, "batch_size must be <= records=500, got 501"),
        ({"largest": 4}, "batch_size must be <= largest=4, got 5"),
        ({"largest": 501}, "largest must be <= records=500, got 501"),
        ({"clients_per_round": 2000}, "clients_per_round must be <= clients=1000"),
        ({"copies": 2000}, "copies must be <= clients=1000"),
        ({"draws": "two"}, "draws must be one of one, each, got 'two'"),
        ({"batches": "shuffled"}, "batches must be one of poisson"),
        (
            {"participants": "all"},
            "participants must be one of poisson, fixed, got 'all'",
        ),
    ],
    ids=str,
)
def test_bad_input(changed, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(MNIST, **changed)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method must be one of fed_cdp, fed_sdp"):
        privacy.statements("fed_avg", MNIST)


def test_batches_drawn_anew_all_have_the_size_of_a_batch():
    told = dataclasses.replace(
        MNIST,
        rounds=1,
        local_steps=3,
        batch_size=4,
        records=10,
        layers=1,
        **_FIXED_SIZE,
    )
    found = fed_cdp.implemented_client(told).epsilon
    expected = exact.gaussian(told.sigma / 4, [3], [1.0], told.delta)
    assert found == pytest.approx(expected, rel=1e-9)


def test_epsilons_of_poisson_clients_are_not_said_of_a_fixed_number_of_them():
    def said(**changed):
        told = dataclasses.replace(MNIST, **changed)
        found = privacy.statements("fed_sdp", told)
        return [s.name for s in found if s.way == "implemented"]

    assert [n for n in said() if "Poisson" in n]
    assert not [n for n in said(participants="fixed") if "Poisson" in n]
    assert [n for n in said(participants="fixed") if "a fixed number" in n]
