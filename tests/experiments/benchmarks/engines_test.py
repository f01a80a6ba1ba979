"""The benchmark beside other simulators, at a tiny size."""

import importlib.util
import sys
import types

import numpy as np
import pytest

from experiments.benchmarks import engines, federations
from fljax.driver.config import ConfigError

_TINY = engines.Config(shapes=("medical",), peers=("fedjax",), repeats=1, smoke=True)
_NEEDS = {
    "fedjax": ("fedjax",),
    "pfl": ("pfl", "torch"),
    "flwr": ("flwr", "ray", "torch"),
    "torch": ("torch",),
}


def _step_by_step(clients, params, *, learning_rate, batch_size, shuffle, off=0.0):
    """FedAvg of a perceptron by hand in float64, batches in the order of the rows."""
    del shuffle

    def local(model, x, y):
        for begin in range(0, len(y), batch_size):
            rows = x[begin : begin + batch_size]
            pre = rows @ model["hidden_kernel"] + model["hidden_bias"]
            hidden = np.maximum(pre, 0)
            output = hidden @ model["output_kernel"] + model["output_bias"]
            error = 2 * (output - y[begin : begin + batch_size, None]) / len(rows)
            back = (error @ model["output_kernel"].T) * (pre > 0)
            slope = {
                "hidden_kernel": rows.T @ back, "hidden_bias": back.sum(0),
                "output_kernel": hidden.T @ error, "output_bias": error.sum(0),
            }  # fmt: skip
            model = {name: model[name] - learning_rate * slope[name] for name in model}
        return model

    def train(num_rounds):
        model = {name: leaf.astype(float) for name, leaf in params.items()}
        share = [len(y) / sum(len(y) for _, y in clients) for _, y in clients]
        for _ in range(num_rounds):
            found = [local(model, x, y) for x, y in clients]
            model = {
                name: sum(s * each[name] for s, each in zip(share, found, strict=True))
                for name in model
            }
        return model | {"output_bias": model["output_bias"] + off}

    return train


def _stand_in(monkeypatch, **more):
    module = types.SimpleNamespace(
        trainer=lambda *args, **kwargs: _step_by_step(*args, **kwargs, **more)
    )
    monkeypatch.setitem(sys.modules, "experiments.benchmarks.fedjax_baseline", module)
    monkeypatch.setattr(engines.importlib.metadata, "version", lambda name: "1")


@pytest.mark.slow
def test_an_engine_that_computes_the_same_is_timed_beside_ours(monkeypatch):
    _stand_in(monkeypatch)
    (ours, theirs), (target,) = engines.run(_TINY)
    assert set(ours) == set(theirs)
    assert (ours["implementation"], theirs["implementation"]) == ("fljax", "fedjax")
    assert theirs["ratio"] == theirs["median"] / ours["median"] == target.value
    assert 0 < theirs["difference"] < 1e-4


@pytest.mark.slow
def test_an_engine_that_computes_something_else_is_not(monkeypatch):
    _stand_in(monkeypatch, off=0.01)
    with pytest.raises(ArithmeticError, match="medical, fedjax: results differ"):
        engines.run(_TINY)


@pytest.mark.parametrize("peer", _NEEDS)
def test_every_engine_computes_what_ours_does(peer):
    for package in _NEEDS[peer]:
        pytest.importorskip(package)
    rows, _ = engines.run(_TINY.__class__(**{**vars(_TINY), "peers": (peer,)}))
    assert rows[1]["difference"] < 1e-4


@pytest.mark.slow
def test_who_fails_the_check_on_a_shape_is_not_timed_there():
    config = engines.Config(
        shapes=("thousand",), peers=("flwr",), repeats=1, smoke=True
    )
    (ours,), _ = engines.run(config)
    assert ours["implementation"] == "fljax"


@pytest.mark.skipif(bool(importlib.util.find_spec("pfl")), reason="pfl is installed")
def test_a_missing_engine_is_one_line():
    config = engines.Config(shapes=("medical",), peers=("pfl",), smoke=True)
    with pytest.raises(ConfigError, match="--peers=pfl: expected the package"):
        engines.run(config)


def test_a_thousand_clients():
    shape = federations.shape("thousand")
    assert len(shape.sizes) == 1000 and set(shape.sizes) == {50}
