"""Whom the noise of a defense promises something."""

import numpy as np
import pytest

from fljax import federation, privacy
from fljax.defenses import fed_sdp, specs
from fljax.defenses.definition import Setting
from fljax.privacy import Guarantee, Promise, against
from fljax.types import NoiseSpec, Rows


def _promise(whom, epsilon):
    noise = NoiseSpec(1.0, 1.0, 1.0, "one client", unit="client", against=whom)
    given = dict.fromkeys(Guarantee._fields) | {"epsilon_rdp": np.array([epsilon])}
    return Promise(noise, Guarantee(**given))


@pytest.mark.parametrize(
    ("views", "epsilon"),
    [
        (["messages"], 8),
        (["sum"], 8),  # before the server adds its noise
        (["models", "sum"], 8),
        (["models", "final"], 2),
    ],
)
def test_noise_of_a_server_promises_to_who_sees_models_alone(views, epsilon):
    both = [_promise("messages", 8.0), _promise("models", 2.0)]
    held = against(both, views)
    assert held["client"].guarantee.epsilon_rdp == [epsilon]
    assert against(both[1:], views).keys() == ({"client"} if epsilon == 2 else set())


@pytest.mark.parametrize("where", ["client", "server"])
def test_a_ceiling_is_that_of_noise_that_messages_have(where):
    defense = fed_sdp.fed_sdp(
        clip=1.0, noise_scale=4.0, sampling_rate=1.0, num_layers=1, where=where,
        sampling="all",
    )  # fmt: skip
    found = privacy.ceiling(defense, privacy.Releases(5, 5), 0.5)
    if where == "server":
        assert found is None
    else:
        (noise,) = defense.noise
        np.testing.assert_array_equal(found, privacy.accuracy_without(noise, 5, 0.5))


@pytest.mark.parametrize("where", ["client", "server"])
def test_noise_of_clients_has_one_sigma(where):
    spec = specs.parse(f"fed_sdp(clip=1, epsilon=8, where={where})")
    setting = Setting(lambda *_: 0.0, 1, batches="fixed", sampling_rate=0.1)
    releases = privacy.Releases(np.full(4, 15), np.full(4, 3))
    (numbers,) = privacy.numbers_for(spec, setting, releases, 1e-5)
    assert np.shape(numbers["sigma"]) == ()
    (promise,) = privacy.promises(specs.bind(spec, setting, (numbers,)), releases, 1e-5)
    np.testing.assert_allclose(promise.guarantee.epsilon_rdp, 8, rtol=1e-3)


def test_releases_are_those_of_the_schedule():
    rows = Rows(np.zeros((17, 2), np.float32), np.zeros(17, np.float32))
    parts = [np.arange(5), np.arange(5, 17)]
    for poisson in (False, True):
        tables = federation.Tables.of(
            rows, parts, num_rounds=7, batch_size=4, epochs=3, poisson=poisson
        )
        found = privacy.Releases.of_tables(tables)
        np.testing.assert_array_equal(found.steps, [7 * 3 * 2, 7 * 3 * 3])
        np.testing.assert_array_equal(found.rounds, [7, 7])
    some = federation.Tables.of(
        rows, parts, num_rounds=2, batch_size=4, participants=[[0], [0]]
    )
    with pytest.raises(ValueError, match="client 1 is in none"):
        privacy.Releases.of_tables(some)


_PASSES = privacy.Releases(np.array([20]), np.array([20]))  # a step in each round


def _per_batch():
    """Ten fixed batches of ten of 100 rows, so that each row is in two of 20 steps."""
    spec = specs.parse("fed_cdp(clip=1, epsilon=8, mode=per_batch)")
    return spec, Setting(lambda *_: 0.0, 1, batches="fixed", sampling_rate=0.1)


def test_rounds_shorter_than_a_pass_release_a_row_in_each_of_them():
    """A batch may hold the same row in every round: twenty releases, not two."""
    spec, setting = _per_batch()
    numbers = privacy.numbers_for(spec, setting, _PASSES, 1e-5)
    (promise,) = privacy.promises(specs.bind(spec, setting, numbers), _PASSES, 1e-5)
    assert promise.guarantee.epsilon_rdp == pytest.approx(8, rel=1e-2)
    least = privacy.noise_multiplier_for(8.0, 1e-5, 1.0, 20)
    assert promise.noise.noise_multiplier == pytest.approx([least], rel=1e-3)


def test_a_ceiling_counts_the_rounds_that_are_shorter_than_a_pass():
    _, setting = _per_batch()
    defense = specs.bind(
        specs.parse("fed_cdp(clip=1, sigma=4, mode=per_batch)"), setting
    )
    (noise,) = defense.noise
    found = privacy.ceiling(defense, _PASSES, 0.5)
    whole = NoiseSpec(noise.noise_multiplier, 1.0, 1.0, "a record", sampling="all")
    np.testing.assert_allclose(found, privacy.accuracy_without(whole, 20, 0.5))


@pytest.mark.slow
def test_whoever_is_in_no_sum_costs_nobody_else_the_noise():
    releases = privacy.Releases(np.array([15, 0]), np.array([3, 0]))
    spec = specs.parse("dp_sgd(clip=1, epsilon=2)")
    setting = Setting(lambda *_: 0.0, 1, batches="poisson", sampling_rate=0.2)
    ((own,),) = (privacy.numbers_for(spec, setting, releases, 1e-5),)
    assert own["sigma"][0] == privacy.noise_multiplier_for(2.0, 1e-5, 0.2, 15)
    assert 0 < own["sigma"][1] < own["sigma"][0]
