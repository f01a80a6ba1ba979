"""Whether clients move as far as the rows and the training that were declared say."""

from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import fljax
from fljax import transcript
from fljax.attacks.trajectory import misfits, noise
from fljax.auditing import pace
from fljax.auditing.lines import MISFIT

_ROUNDS, _WIDTH = 30, 20


@jax.jit
def _measured(residuals, changed):
    return misfits.pace(noise.estimate(residuals), residuals, changed)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_factor_of_what_is_simulated_is_found_under_noise(factor):
    rng = np.random.default_rng(0)
    simulated = rng.normal(size=(_ROUNDS, _WIDTH)) + 1
    spread = np.linspace(0.1, 3, _WIDTH)  # of which large ones tell little
    changed = factor * simulated + spread * rng.normal(size=simulated.shape)
    value, error = _measured(np.float32(simulated - changed), np.float32(changed))
    assert abs(value - factor) < 3 * error and error < 0.1


def _view(defense: str | None = None, count: int = 12) -> Any:
    messages = SimpleNamespace(count=np.full(3, count))
    return SimpleNamespace(messages=messages, defense=defense, sizes=np.full(3, 10))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, 1.0, 1.0], ""),
        ([1.15, 1.1, 0.9], ""),
        ([2.0, 1.0, 1.0], ""),
        ([1.0, 2.0, 2.2], "2 of 3 clients move 2.1 times as far"),
        ([0.6, 0.5, 0.4], "3 of 3 clients move 0.5 times as far"),
        ([0.5, 0.5, 2.0], "2 of 3 clients move 0.5 times as far"),
        ([np.nan, 0.5, 0.5], "2 of 3 clients"),
    ],
)
def test_it_is_said_where_half_of_the_clients_are_far_off(values, said):
    found = np.stack([values, np.full(3, 0.02)], axis=1)
    usual = np.tile([1.0, 0.01], (3, 1))
    told = pace.found(_view(), found, lambda: usual)
    assert said in told and bool(said) == bool(told)
    assert not pace.found(
        _view(), found * [1, 40], lambda: usual
    )  # nobody knows as well
    assert not pace.found(_view(), found, lambda: found)  # honest clients do so, too
    assert not pace.found(_view(), found, lambda: None)
    assert not pace.found(_view(count=7), found, lambda: usual)
    assert not pace.found(_view(defense="pruning"), found, lambda: usual)


@pytest.mark.parametrize(
    ("value", "usual"),
    [(1.0, True), (0.7, True), (0.4, False), (2, False), (-1, False)],
)
def test_what_hardly_moves_messages_does_not_explain_them(value, usual):
    found = np.tile([value, 0.5], (3, 1))
    assert pace.is_usual(_view(), found) == usual
    assert pace.is_usual(_view(defense="median"), found)


_COLUMNS, _ROWS, _CLIENTS = 6, 80, 2


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(_CLIENTS * _ROWS + 40, _COLUMNS))
    s = (x[:, 0] + rng.normal(size=len(x)) > 0).astype(float)
    y = 2 * x[:, 1] - 0.5 * s + 3 * rng.normal(size=len(x))
    client = np.repeat([0, 1, -1], [_ROWS, _ROWS, 40])
    frame = pd.DataFrame(x, columns=[f"x{at}" for at in range(_COLUMNS)])
    return frame.assign(s=s, y=y, client=client)


def _record(path, frame, rate):
    """Linear models by SGD in batches of 8, one epoch in each of 20 rounds."""
    rng, model = np.random.default_rng(0), {"w": np.zeros((7, 1)), "b": np.zeros(1)}
    about = {"optimiser": "sgd", "batch_size": 8, "local_epochs": 1}
    with transcript.Recorder(path, about) as recorder:
        for number in range(20):
            returned = {}
            for client, own in frame[frame.client >= 0].groupby("client"):
                x, y = own.drop(columns=["y", "client"]).to_numpy(), own.y.to_numpy()
                w, b = model["w"], model["b"]
                for rows in np.split(rng.permutation(_ROWS), _ROWS // 8):
                    slope = 2 / 8 * (x[rows] @ w + b - y[rows, None])
                    w, b = w - rate * x[rows].T @ slope, b - rate * slope.sum(0)
                returned[client] = {"w": w, "b": b}
            recorder.record(number, model, returned)
            model = {n: (returned[0][n] + returned[1][n]) / 2 for n in ("w", "b")}


@pytest.mark.slow
@pytest.mark.parametrize("true, off", [(0.02, False), (0.03, True)])
def test_an_audit_notices_another_learning_rate_in_small_batches(tmp_path, true, off):
    frame = _frame()
    _record(tmp_path / "seen", frame, true)
    found = fljax.audit(
        tmp_path / "seen", frame, target="y", sensitive="s", categorical=["s"],
        client_column="client", model="linear", learning_rate=0.02, attacks=["model"],
        controls=["imputation"],
    )  # fmt: skip
    fit = found.audited.fit
    assert bool(fit.paced) == off and (np.median(fit.misfit) < 3) == (not off)
    if off:
        line = found.table.set_index("attack").loc["model"]
        assert line.verdict == MISFIT and "times as far" in line.detail
