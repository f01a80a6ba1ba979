"""The benchmarks of devices and of local steps, at a tiny size."""

import pytest

pytest.importorskip("torch")

from experiments.benchmarks import exchange, federations, steps


@pytest.mark.slow
def test_every_way_to_use_devices_is_a_row():
    config = exchange.Flags(shapes=("medical",), repeats=1, smoke=True)
    rows, (target,) = exchange.run(config)
    assert [row["exchanges"] > 0 for row in rows[:3]] == [False, False, True]
    assert rows[0]["speedup"] == 1
    assert rows[1]["trainings"] == rows[1]["devices"]
    assert {row["numbers"] for row in rows[3:]} == {1, 1281, 70_401}
    assert target.value == rows[1]["speedup"]


@pytest.mark.slow
def test_a_step_stands_beside_its_limits():
    (row,), (target,) = steps.run(
        steps.Flags(shapes=("income_l",), repeats=1, smoke=True)
    )
    both = row["multiply"] + row["gather"]
    assert row["share"] == pytest.approx(both / row["step"]) == target.value
    assert row["share_moved"] > row["share"] > 0


def test_work_of_a_step_by_hand():
    shape = federations.Shape((32,), 2, (3, 4))
    todo, product = steps.work(shape), steps.work(shape, multiplies=True)
    more = product.multiplications - todo.multiplications
    assert more == 32 * 128 * 4 * 7 and product.gathered == 0
    assert product.moved == todo.moved
    assert todo.multiplications == 32 * 128 * (2 * 2 * 2 + 3 * 2)
    assert todo.gathered == 32 * 128 * 2 * 3 * 4
    assert todo.moved == 9 * 128 * 4 * 4
