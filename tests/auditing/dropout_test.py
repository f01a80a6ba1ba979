"""Clients that train with dropout, as somebody else would write them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import fljax
from fljax import transcript
from fljax.auditing import case, inputs, slips

_CLIENTS, _ROWS, _PUBLIC, _UNITS = 3, 100, 8, 32
_ABOUT = {
    "optimiser": "sgd",
    "learning_rate": 0.05,
    "batch_size": 32,
    "local_epochs": 1,
}


def _frame():
    rng = np.random.default_rng(0)
    count = _CLIENTS * _ROWS + 100
    x = rng.normal(size=(count, _PUBLIC))
    s = (0.3 * x[:, 0] + rng.normal(size=count) > 0).astype(float)
    y = np.sin(x[:, 1]) + 0.5 * s + 0.3 * x[:, 2] + 0.5 * rng.normal(size=count)
    frame = pd.DataFrame(x, columns=[f"x{at}" for at in range(_PUBLIC)])
    client = np.repeat(np.arange(_CLIENTS + 1), _ROWS)
    return frame.assign(s=s, y=y, client=np.where(client < _CLIENTS, client, -1))


def _trained(params, x, y, rate, rng):
    """A local epoch of a network whose hidden units are dropped."""
    params = {name: leaf.copy() for name, leaf in params.items()}
    size = _ABOUT["batch_size"] or len(x)
    order = rng.permutation(len(x))
    for rows in (order[at : at + size] for at in range(0, len(x), size)):
        before = x[rows] @ params["w1"] + params["b1"]
        mask = (rng.random(before.shape) >= rate) / (1 - rate)
        units = np.maximum(before, 0) * mask
        output = units @ params["w2"] + params["b2"]
        slope = 2 * (output - y[rows, None]) / len(rows)
        back = (slope @ params["w2"].T) * mask * (before > 0)
        steps = {"w1": x[rows].T @ back, "b1": back.sum(0)}
        steps |= {"w2": units.T @ slope, "b2": slope.sum(0)}
        for name, step in steps.items():
            params[name] = params[name] - np.float32(_ABOUT["learning_rate"]) * step
    return {name: leaf.astype(np.float32) for name, leaf in params.items()}


def _record(path, frame, rate, rounds=30):
    rng = np.random.default_rng(0)
    sizes = {
        "w1": (_PUBLIC + 1, _UNITS),
        "b1": (_UNITS,),
        "w2": (_UNITS, 1),
        "b2": (1,),
    }
    params = {
        name: (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
        for name, shape in sizes.items()
    }
    with transcript.Recorder(path, _ABOUT) as recorder:
        for number in range(rounds):
            returned = {}
            for client in range(_CLIENTS):
                own = frame[frame.client == client]
                x, y = own.drop(columns=["y", "client"]).to_numpy(), own.y.to_numpy()
                returned[client] = _trained(params, x, y, rate, rng)
            recorder.record(number, params, returned)
            params = {
                name: np.mean([each[name] for each in returned.values()], axis=0)
                for name in params
            }


@pytest.mark.slow
def test_told_of_dropout_more_is_read(tmp_path):
    frame = _frame()
    _record(tmp_path / "seen", frame, 0.5)
    found = [
        fljax.audit(
            tmp_path / "seen", frame, target="y", sensitive="s", categorical=["s"],
            client_column="client", model=f"mlp:{_UNITS}", dropout=rate,
            attacks=["trajectory"], controls=["imputation"],
        )
        for rate in (None, 0.5)
    ]  # fmt: skip
    plain, told = (each.table.set_index("attack").value["trajectory"] for each in found)
    assert told > plain + 4
    assert (found[1].audited.fit.misfit < 2).all()


def _ready(linear, config, **changes):
    told = config(linear, **changes)
    return case.prepare(told, inputs.read(told.files, told.rows))


def test_a_model_without_hidden_layers_drops_nothing(linear, config):
    ready = _ready(linear, config, dropout=0.5)
    assert any("Dropout is not simulated" in note for note in ready.notes)
    assert ready.view.mean_loss is ready.view.loss_fn
    assert not any("dropout" in name for name, _ in slips.tried(ready.view))
    assert not any("ropout" in note for note in _ready(linear, config).notes)


def test_dropout_is_tried_where_a_network_has_hidden_layers(tmp_path, config):
    frame = _frame()
    _record(tmp_path / "seen", frame, 0.0, rounds=2)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    of = {"model": f"mlp:{_UNITS}", "sensitive": "s", "target": "y"}
    view = _ready(tmp_path, config, dropout=0.2, **of).view
    assert dataclasses.asdict(view.mean_loss)["rate"] == 0.2
    views = dict(slips.tried(view))
    rates = [name for name in views if name.startswith("dropout is")]
    assert rates == ["dropout is 0", "dropout is 0.5"]
    assert views["dropout is 0"].mean_loss is view.loss_fn
