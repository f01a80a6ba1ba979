"""The benchmark of per-example clipping, at a tiny size."""

import dataclasses

import numpy as np
import pytest

from experiments.benchmarks import clipping, clipping_ways
from fljax.driver.config import ConfigError

_TINY = clipping.Config(
    models=("table",), clients=2, steps=2, repeats=1, opacus=False, round=False
)


@pytest.mark.slow
def test_every_way_is_a_row_with_its_ratio_to_the_faster_sgd():
    rows, targets = clipping.run(_TINY)
    problem = clipping_ways.build("table", 2, 2)
    assert [row["way"] for row in rows] == list(clipping_ways.ways(problem))
    fastest = min(r["milliseconds"] for r in rows if r["way"].startswith("sgd, "))
    assert min(row["ratio"] for row in rows) <= 1
    assert fastest > 0
    assert max(row["difference"] or 0 for row in rows) < 1e-3
    assert [target.bound for target in targets] == [1.2, 1.15]


@pytest.mark.slow
def test_nothing_is_timed_when_two_ways_disagree(monkeypatch):
    ways = clipping_ways.ways

    def spoiled(problem, scale=6.0):
        found = ways(problem, scale)
        return found | {"clip": found["sgd, autodiff"]}

    monkeypatch.setattr(clipping_ways, "CLIP", 0.01)
    monkeypatch.setattr(clipping_ways, "ways", spoiled)
    with pytest.raises(ArithmeticError, match="table, clip, vmap"):
        clipping.run(_TINY)


def test_without_opacus_nothing_is_timed_in_vain(monkeypatch):
    monkeypatch.setattr(clipping.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="--opacus: is not installed"):
        clipping.run(dataclasses.replace(_TINY, opacus=True))


def test_targets_of_images_are_those_of_the_protocol():
    spent = {
        "clip": 1.0, "clip, one draw": 1.5, "sgd, by layers, one draw": 1.4,
        "sgd, autodiff, one draw": 1.6, "opacus": 4.0,
    }  # fmt: skip
    targets = clipping._targets("mnist", spent, 1.0)
    assert [t.bound for t in targets] == [1.45, 1.05, 1.15, 2.0]
    assert [t.met for t in targets] == [False, True, True, True]


@pytest.mark.slow
def test_opacus_takes_the_same_steps():
    pytest.importorskip("opacus")
    from experiments.benchmarks import opacus_baseline

    problem = clipping_ways.build("mnist", 1, 2)
    x, y = clipping_ways.batches(problem, 2)
    kernels = [np.asarray(k) for k in clipping_ways.kernels(problem)]
    program, args = clipping._program(
        problem, clipping_ways.ways(problem, 0.0)["clip"], 1, 2
    )
    ours = clipping_ways.kernels(problem, program.call(*args))
    told = {"clip": 4.0, "learning_rate": 1e-3, "threads": 1}
    theirs = opacus_baseline.train(
        kernels, x, y.astype(np.int64), noise_scale=0.0, **told
    )
    for new, other, old in zip(ours, theirs, kernels, strict=True):
        change = np.asarray(new) - old
        np.testing.assert_allclose(other - old, change, atol=1e-3 * abs(change).max())
