"""The benchmark of scaling, at a tiny size."""

import jax
import pytest

from experiments.benchmarks import scaling

_TINY = scaling.Config(rounds=2, repeats=1, smoke=True)


@pytest.mark.slow
def test_every_part_is_timed_against_its_limit():
    rows, targets = scaling.run(_TINY)
    assert [row["part"] for row in rows[:4]] == ["clients"] * 2 + ["parameters"] * 2
    spread = [row["devices"] for row in rows if row["part"] == "devices"]
    assert spread == [1, len(jax.devices())]
    for row in rows:
        assert row["microseconds"] > 0 and row["limit"] > 0
        assert row["times_limit"] == pytest.approx(row["microseconds"] / row["limit"])
    assert targets == []  # four clients are too few to say


def test_the_parameters_are_those_of_the_model():
    (small, *_), full = scaling.cases("parameters", _TINY), scaling.Config()
    model = scaling.models.mlp(scaling._INPUTS, hidden=(small.hidden,))
    leaves = jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0)))
    assert scaling._parameters(small) == sum(leaf.size for leaf in leaves)
    sizes = [scaling._parameters(case) for case in scaling.cases("parameters", full)]
    assert sizes == [1001, 10_001, 100_001, 1_000_001, 10_000_001]


@pytest.mark.parametrize(("slowest", "met"), [(14.0, True), (16.0, False)])
def test_many_clients_may_not_take_longer_each(slowest, met):
    rows = [
        {"part": "clients", "clients": clients, "microseconds": time}
        for clients, time in ((10, 90.0), (100, 10.0), (10_000, slowest))
    ]
    (target,) = scaling.targets(rows)
    assert target.met is met


def test_a_limit_is_the_larger_of_two_times():
    case = scaling.Case("clients", 100, 128, 1, 100)
    multiplying = scaling.limit(case, scaling.Limits(1e9, 1e30))
    moving = scaling.limit(case, scaling.Limits(1e30, 1e9))
    assert multiplying == pytest.approx(32 * (4 * 8 * 128 + 6 * 128) / 1e9)
    assert moving == pytest.approx(4 * 6 * 1281 / 1e9)
    assert scaling.limit(case, scaling.Limits(1e9, 1e9)) == max(multiplying, moving)
