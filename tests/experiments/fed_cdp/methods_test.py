"""What an accountant is told of a variant is what its defense does."""

import pytest

from experiments.fed_cdp import methods
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.settings import Config, DataConfig, Settings, complete
from fljax.defenses import specs


def _run(**changes) -> Config:
    small = {"num_rounds": 2, "local_steps": 4, "batch_size": 5, "rows_per_client": 7}
    told = Settings(DataConfig(name="breast_cancer"), Config(**small | changes))
    return complete(told).run


def _made(text, run: Config, **changes):
    """Variant, spec, setting and numbers of a federation of four."""
    spec = specs.parse(text)
    variant = Variant((spec,), 4, 50.0, rows=7)._replace(**changes)
    at = methods.setting(run, variant, lambda *_: 0.0, 3)
    return variant, spec, at, methods.numbers(run, at, Trial(0.1, spec))


@pytest.mark.parametrize("mode", ["per_example", "per_batch"])
def test_batches_that_do_not_fill_a_pass_are_told_as_they_are_drawn(mode):
    run = _run()
    variant, spec, at, told = _made(f"fed_cdp(clip=4, sigma=6, mode={mode})", run)
    said = methods.statements(run, variant, 3, 1, spec, told)
    (implemented,) = (
        each.epsilon
        for each in said
        if (each.way, each.unit) == ("implemented", "record")
        and each.name.endswith("one pass, every round")
    )
    (promise,) = methods.promises(run, methods.defense(at, spec, told))
    assert methods.largest_epsilon(promise) == pytest.approx(implemented, rel=1e-3)
    assert any("batches of 5, the last of a pass 2" in each.sampling for each in said)


def test_a_budget_becomes_the_sigma_that_keeps_it():
    run = _run()
    _, spec, at, told = _made("fed_cdp(clip=4, epsilon=3, accountant=pld)", run)
    (promise,) = methods.promises(run, methods.defense(at, spec, told))
    assert 0.99 * 3 < methods.largest_epsilon(promise) <= 3


def _of_fed_sdp(where, **changes):
    _, spec, at, told = _made(
        f"fed_sdp(clip=4, sigma=6, where={where})", _run(**changes)
    )
    (noise,) = methods.defense(at, spec, told).noise
    return noise


def test_any_number_of_clients_that_may_come_amplifies_nothing():
    noise = _of_fed_sdp("server", participation="poisson")
    assert (noise.sampling, noise.sampling_rate) == ("all", 1.0)
    assert noise.noise_multiplier == pytest.approx(6 / 3**0.5)  # its own alone
    run = _run(participation="poisson")
    variant, spec, _, told = _made(
        "fed_sdp(clip=4, sigma=6)", run, clients=5, percent=30
    )
    said = methods.statements(run, variant, 3, 1, spec, told)
    assert any("q = 0.3" in each.sampling for each in said)


def test_who_sees_messages_meets_one_noise_and_who_sees_models_that_of_the_sum():
    at_client = _of_fed_sdp("client")
    assert (at_client.sampling, at_client.sampling_rate) == ("fixed", 0.5)
    assert at_client.adjacency.endswith("against whoever sees messages")
    at_server = _of_fed_sdp("server")
    assert (at_server.sampling, at_server.sampling_rate) == ("fixed", 0.5)
    gain = at_server.noise_multiplier / at_client.noise_multiplier
    assert gain == pytest.approx(2**0.5)


def test_a_row_is_in_one_of_the_batches_of_a_pass():
    _, _, at, _ = _made("none", _run())
    assert (at.sampling_rate, at.batch_size) == (0.5, 5)
    _, _, at, _ = _made("none", _run(batches="poisson"))
    assert (at.sampling_rate, at.batch_size) == (0.5, 3.5)
