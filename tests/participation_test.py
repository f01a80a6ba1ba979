"""Who takes part: sorted ids, a function of the seed, the right share of rounds."""

import numpy as np
import pytest

from fljax import participation


def test_everyone_is_one_round_that_serves_for_all():
    (only,) = participation.everyone(3)
    np.testing.assert_array_equal(only, [0, 1, 2])


@pytest.mark.parametrize(
    ("num_clients", "fraction", "expected"),
    [(10, 0.3, 3), (10, 0.01, 1), (4, 1.0, 4)],
    ids=["three of ten", "at least one", "all"],
)
def test_uniform_draws_so_many_different_clients_each_round(
    num_clients, fraction, expected
):
    rng = np.random.default_rng(0)
    drawn = participation.uniform(rng, num_clients, 20, fraction)
    assert len(drawn) == 20
    for members in drawn:
        assert len(members) == expected
        assert (np.diff(members) > 0).all()
        assert members.min() >= 0 and members.max() < num_clients


def test_uniform_gives_every_client_her_share_of_rounds():
    num_rounds = 4000
    drawn = participation.uniform(np.random.default_rng(1), 10, num_rounds, 0.3)
    share = np.bincount(np.concatenate(drawn), minlength=10) / num_rounds
    tolerance = 4 * np.sqrt(0.3 * 0.7) / np.sqrt(num_rounds)
    np.testing.assert_allclose(share, 0.3, atol=tolerance)


def test_poisson_lets_clients_join_independently():
    num_rounds = 4000
    drawn = participation.poisson(np.random.default_rng(1), 10, num_rounds, 0.3)
    assert all((np.diff(members) > 0).all() for members in drawn)
    share = np.bincount(np.concatenate(drawn), minlength=10) / num_rounds
    tolerance = 4 * np.sqrt(0.3 * 0.7) / np.sqrt(num_rounds)
    np.testing.assert_allclose(share, 0.3, atol=tolerance)
    # The number of participants is binomial, not fixed: its variance is n q (1 - q).
    sizes = np.array([len(members) for members in drawn])
    spread = 4 * 2.1 * np.sqrt(2 / num_rounds)
    assert abs(sizes.var() - 10 * 0.3 * 0.7) < spread


def test_poisson_rounds_may_be_empty():
    drawn = participation.poisson(np.random.default_rng(0), 2, 100, 0.1)
    assert any(len(members) == 0 for members in drawn)


@pytest.mark.parametrize(
    "draw", [participation.uniform, participation.poisson], ids=["uniform", "poisson"]
)
def test_the_seed_alone_decides(draw):
    one, again, other = (draw(np.random.default_rng(s), 9, 30, 0.5) for s in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "draw", [participation.uniform, participation.poisson], ids=["uniform", "poisson"]
)
@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.1, float("nan")])
def test_a_fraction_must_be_a_share(draw, fraction):
    with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\]"):
        draw(np.random.default_rng(0), 4, 3, fraction)
