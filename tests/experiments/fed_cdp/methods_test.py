"""What an accountant is told of a variant is what its defense does."""

import pytest

from experiments.fed_cdp import clients, methods
from experiments.fed_cdp import setup as setup_lib
from experiments.fed_cdp.methods import Numbers, Variant
from experiments.fed_cdp.settings import Config, DataConfig, Told, complete

_NUMBERS = Numbers(0.1, 4.0, 6.0)


def _run(**changes) -> Config:
    small = {"num_rounds": 2, "local_steps": 4, "batch_size": 5, "rows_per_client": 7}
    told = Told(DataConfig(name="breast_cancer"), Config(**small | changes))
    return complete(told).run


def _guarantee(run: Config, variant: Variant) -> float:
    built = methods.defense(run, variant, lambda *_: 0.0, 3, _NUMBERS)
    (found,) = methods.guarantees(run, built)
    return methods.largest_epsilon(found)


def _implemented(run: Config, variant: Variant) -> dict[tuple[str, str], float | None]:
    training = methods.training(run, variant, 3, 1, _NUMBERS)
    said = methods.statements(variant, training)
    return {(s.unit, s.name): s.epsilon for s in said if s.way == "implemented"}


@pytest.mark.parametrize("mode", ["per_example", "per_batch"])
def test_batches_that_do_not_fill_a_pass_are_told_as_they_are_drawn(mode):
    run, variant = _run(), Variant("fed_cdp", mode, 4, 50.0, rows=7)
    (name,) = (
        name
        for unit, name in _implemented(run, variant)
        if unit == "record" and name.endswith("one pass, every round")
    )
    assert _guarantee(run, variant) == pytest.approx(
        _implemented(run, variant)["record", name], rel=1e-3
    )


def _of_fed_sdp(**changes):
    run, variant = _run(**changes), Variant("fed_sdp", "per_example", 4, 50.0, rows=7)
    (spec,) = methods.defense(run, variant, lambda *_: 0.0, 3, _NUMBERS).noise
    return spec, variant


def test_any_number_of_clients_who_may_come_amplifies_nothing():
    spec, variant = _of_fed_sdp(participation="poisson", where="server")
    assert (spec.sampling, spec.sampling_rate) == ("all", 1.0)
    assert spec.noise_multiplier == pytest.approx(6 / 3**0.5)  # its own alone
    run = _run(participation="poisson")
    assert methods.training(
        run, variant._replace(clients=5, percent=30), 3, 1, _NUMBERS
    ).participation == pytest.approx(0.3)


def test_who_sees_messages_has_her_own_noise_and_who_sees_models_that_of_the_sum():
    at_client, _ = _of_fed_sdp(where="client")
    assert (at_client.sampling, at_client.sampling_rate) == ("fixed", 0.5)
    assert at_client.adjacency.endswith("against whoever sees messages")
    at_server, variant = _of_fed_sdp(where="server")
    assert (at_server.sampling, at_server.sampling_rate) == ("fixed", 0.5)
    gain = at_server.noise_multiplier / at_client.noise_multiplier
    assert gain == pytest.approx(variant.per_round**0.5)


def test_copies_are_those_of_the_row_that_most_clients_hold():
    run = _run(partition="random", seeds=(0, 1))
    task = clients.load(DataConfig(name="breast_cancer"), run)
    setup = setup_lib.prepare(run, task, Variant("fed_cdp", "per_batch", 300, 1.0, 7))
    mean = 300 * 7 / len(task.train)
    assert setup.copies > 1.5 * mean
    assert setup.copies <= 300
