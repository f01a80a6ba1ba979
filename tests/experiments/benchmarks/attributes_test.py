"""The benchmark of attribute inference, at a tiny size."""

import jax
import pytest

pytest.importorskip("torch")
pytest.importorskip("torch._dynamo")

from experiments.benchmarks import (
    attributes,
    attributes_baseline,
    federations,
    torch_baseline,
    victims,
)

_KEYS = {
    "benchmark", "task", "implementation", "devices", "threads", "trace_seconds",
    "compile_seconds", "first_seconds", "median", "iqr", "ratio", "accuracy",
    "difference",
}  # fmt: skip
_TINY = attributes.Config(threads=(1,), smoke=True)


@pytest.fixture(scope="module")
def scene():
    shape = federations.shape("medical", smoke=True)
    return victims.train(shape, num_rounds=3, seed=0)


def test_every_attack_is_a_complete_row_and_the_grid_agrees_with_the_baseline(
    scene, monkeypatch
):
    monkeypatch.setattr(victims, "train", lambda *_: scene)
    rows, targets = attributes.run(_TINY)
    assert all(set(row) >= _KEYS for row in rows)
    assert [(row["task"], row["implementation"]) for row in rows] == [
        ("gradient grid, extrapolated", "torch"), ("gradient grid", "fljax"),
        ("model-based, medical", "fljax"), ("model-based, income_a", "fljax"),
    ]  # fmt: skip
    torch_row, grid, *_ = rows
    assert torch_row["extrapolated"] and torch_row["cells"] == grid["cells"] == 8
    assert grid["difference"] < 1e-3
    assert grid["ratio"] == pytest.approx(torch_row["median"] / grid["median"])
    assert [target.value for target in targets] == [grid["median"], grid["ratio"]]


def test_nothing_is_timed_when_the_two_sides_disagree(scene, monkeypatch):
    attack = torch_baseline.gradient_attack

    def spoiled(*args, noise, **kwargs):
        start, gumbels = noise
        return attack(*args, noise=(start, -gumbels), **kwargs)

    monkeypatch.setattr(torch_baseline, "gradient_attack", spoiled)
    with pytest.raises(ArithmeticError, match="gradient-based attack: results differ"):
        attributes._check(scene, jax.random.key(0), 1)


def test_the_full_baseline_times_every_cell(scene, monkeypatch):
    cells = []

    def attack(clients, client, *, count, rate, iterations, threads):
        del clients, iterations, threads
        cells.append((client, count, rate))

    monkeypatch.setattr(attributes_baseline, "attack", attack)
    row = attributes_baseline.grid_row(
        scene.victims, counts=(1, 20), rates=(1.0, 2.0, 3.0),
        iterations=7, threads=(1,), repeats=1, full=True,
    )  # fmt: skip
    sampled = [(0, count, rate) for count in (1, 10) for rate in (1.0, 2.0)]
    assert set(cells[:8]) == set(sampled)
    assert len(set(cells[8:])) == len(cells[8:]) == row["cells"] == 12
    assert not row["extrapolated"]


def test_the_extrapolation_adds_a_fixed_cost_and_one_per_round():
    cost = attributes_baseline.Cost(fixed=2.0, per_round=0.5, threads=1)
    assert cost.total(counts=(1, 10), times=3) == 3 * (2 * 2.0 + 11 * 0.5)
