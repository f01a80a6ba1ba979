"""The benchmark of rounds, at a tiny size."""

import types

import jax
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("torch._dynamo")

from experiments.benchmarks import attributes, problems, rounds, torch_baseline
from fljax.driver import config

_KEYS = {
    "benchmark", "shape", "implementation", "clients", "trainings", "num_rows", "inputs", "lanes",
    "devices", "threads", "rounds", "trace_seconds", "compile_seconds",
    "first_seconds", "median", "iqr", "best", "repeats", "rounds_per_second",
    "seconds_per_100_rounds", "ratio", "occupancy", "difference",
}  # fmt: skip
_TINY = rounds.Config(
    shapes=("medical",), rounds=1, threads=(1,), repeats=1, smoke=True
)


def test_every_way_of_training_is_a_complete_row_that_agrees_with_the_baseline():
    rows, targets = rounds.run(_TINY)
    assert all(set(row) == _KEYS for row in rows)
    assert [row["implementation"] for row in rows] == ["torch", "fljax"]
    theirs, ours = rows
    assert theirs["ratio"] == 1
    assert ours["trainings"] == ours["devices"] == len(jax.devices())
    together = ours["median"] / ours["trainings"]
    assert ours["ratio"] == pytest.approx(theirs["median"] / together)
    assert ours["difference"] < 1e-4
    assert [target.value for target in targets] == [ours["ratio"]]


def test_nothing_is_timed_when_the_two_sides_disagree(monkeypatch):
    train = torch_baseline.train_rounds

    def spoiled(*args, **kwargs):
        params, returned = train(*args, **kwargs)
        return params | {"output_bias": params["output_bias"] + 0.01}, returned

    monkeypatch.setattr(torch_baseline, "train_rounds", spoiled)
    with pytest.raises(ArithmeticError, match="medical, 2 lanes: results differ"):
        rounds.run(_TINY)


def test_full_size_ragged_clients_fill_the_lanes():
    problem = problems.build("medical", _TINY, 2)
    for lanes in (2, 8):
        shape = rounds.federations.shape("income_a")
        schedule = problem._replace(shape=shape).schedule(lanes)
        assert schedule.occupancy >= 0.95
        assert np.asarray(schedule.recorded_rounds).tolist() == [1]


def test_targets_are_the_best_ratio_and_the_lowest_occupancy():
    ratios = [{"ratio": ratio, "trainings": 1} for ratio in (29.0, 31.0)]
    assert rounds._targets("medical", ratios)[0].met
    together = {
        "ratio": 300.0,
        "trainings": 16,
    }  # of sixteen trainings is another thing
    assert not rounds._targets("medical", [ratios[0], together])[0].met
    assert not rounds._targets("medical", [{"ratio": None, "trainings": 1}])[0].met
    lanes = [{"occupancy": 0.99}, {"occupancy": 0.94}]
    assert not rounds._targets("income_a", lanes)[0].met


@pytest.mark.parametrize("cls", [rounds.Config, attributes.Config])
def test_flags_out_of_range_are_refused(parsed, cls):
    program = types.SimpleNamespace(
        define=lambda values: config.define(cls, flag_values=values),
        read=lambda values: config.read(cls, flag_values=values),
    )
    with pytest.raises(config.ConfigError, match="--repeats: .* >= 1, got 0"):
        parsed(program, "--repeats=0", "--threads=1")
