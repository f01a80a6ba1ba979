"""The benchmark of trajectory matching, at a tiny size."""

import pytest

from experiments.benchmarks import trajectory


@pytest.mark.slow
def test_an_attack_and_its_steps_are_timed():
    rows, (target,) = trajectory.run(trajectory.Config(shapes=("medical",), smoke=True))
    assert [row["task"] for row in rows] == ["attack", "gradient", "adjoint"]
    attack, gradient, adjoint = rows
    assert attack["accuracy"] > 0.8 and target.value == attack["median"]
    settings = trajectory.trajectory.Settings(path_steps=3, iterations=6)
    slopes, pulls = trajectory.counts(settings, 5)
    work = slopes * gradient["gigaflops"] + pulls * adjoint["gigaflops"]
    assert attack["gigaflops"] == pytest.approx(2 * work)
    assert gradient["difference"] < 1e-4 and adjoint["difference"] < 1e-4


def test_steps_are_counted():
    settings = trajectory.trajectory.Settings(
        path_steps=10, iterations=60, batch_rounds=2, stages=2, checkpoints=3
    )
    # 60 iterations of 2 rounds; 3 times all 20 rounds; 8 looks at 2 held-out ones.
    assert trajectory.counts(settings, 20) == (10 * (120 + 60 + 16), 10 * 120)
