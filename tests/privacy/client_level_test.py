"""What is promised to a whole client, and to a record by noise on messages."""

import dataclasses

import numpy as np
import pytest

from fljax.privacy import Training, exact, fed_cdp, fed_sdp, sampled

_MNIST = Training(
    rounds=100, local_steps=100, batch_size=5, records=500, clients=1000,
    clients_per_round=100, sigma=6, clip=4, layers=3, delta=1e-5, copies=10,
)  # fmt: skip


def test_all_of_a_client_at_once_is_composed_over_every_step():
    told = dataclasses.replace(
        _MNIST, local_steps=2, records=4, batch_size=4, sigma=60.0, layers=1
    )  # every row is in every batch
    found = fed_cdp.implemented_client(told, rounds=3).epsilon
    wanted = exact.gaussian(60.0 / 4, [2 * 3], [1.0], told.delta)
    assert wanted <= found <= 1.02 * wanted


def test_a_record_is_promised_what_a_client_that_is_replaced_is():
    told = dataclasses.replace(_MNIST, clients_per_round=1000)  # all, in every round
    wanted = exact.gaussian(6 / 3**0.5 / 2, [100], [1.0], 1e-5)
    assert fed_sdp.record(told).epsilon == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("draws", "deviations"), [("each", 6 * (1000 / 3) ** 0.5), ("one", 6 / 3**0.5)]
)
def test_a_client_of_a_fixed_number_is_promised_what_a_sum_is(draws, deviations):
    told = dataclasses.replace(_MNIST, clients_per_round=1000, draws=draws)
    wanted = exact.gaussian(deviations, [100], [1.0], 1e-5)
    assert fed_sdp.fixed_size(told).epsilon == pytest.approx(wanted)
    few = dataclasses.replace(_MNIST, draws=draws)  # 100 of 1,000, who may be seen
    of_rounds = exact.drawn(100, 0.1)
    least = deviations / (1000 / 100) ** (0.5 * (draws == "each"))
    assert fed_sdp.fixed_size(few).epsilon == pytest.approx(
        exact.gaussian(least, *of_rounds, 1e-5)
    )


def test_noise_without_end_is_counted_as_less():
    for noise in (1e7, 1e9, 1e12):
        found = sampled.whole_batches(noise, 0.01, 5, 3, 1e-5)
        assert found == sampled.whole_batches(1e5, 0.01, 5, 3, 1e-5)
        found = sampled.without_replacement(noise, 100, 10, 50, 1e-5)
        assert found == sampled.without_replacement(1e5, 100, 10, 50, 1e-5)


@pytest.mark.parametrize(
    "total",
    [500, *(pytest.param(each, marks=pytest.mark.slow) for each in (350, 300))],
)
def test_batches_that_are_never_empty_are_composed(total):
    """Empty ones of 4e-15, 8e-11 and 2e-9: of the first two the mixture has none."""
    found = [
        sampled.whole_batches(5.0, 32 / 500, n, 5, 1e-5) for n in (total, total + 1)
    ]
    assert np.isfinite(found).all() and found[0] < found[1] < 1.02 * found[0]
