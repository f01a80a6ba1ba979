"""Small federations of others, recorded as their owners would."""

import contextlib
import pathlib

import numpy as np
import pandas as pd
import pytest

from fljax import transcript
from fljax.auditing import attacking, case, inputs, scoring
from fljax.auditing import settings as s

COLUMNS = ("age", "married", "height")
_RATE = 0.1


def _config(folder, **changes) -> s.Config:
    """Settings of an audit of the linear federation, and changes."""
    values = {
        "transcript": str(folder / "seen"), "known": str(folder / "rows.csv"),
        "target": "y", "sensitive": "married", "model": "linear",
        "client_column": "client", "run_dir": str(folder / "out"),
        "grad_rounds": (1, 4), "grad_learning_rates": (1e2, 1e4),
        "grad_iterations": 5, "trajectory_iterations": 12, "shadow_clients": 8,
    } | changes  # fmt: skip
    groups = (s.FilesConfig, s.RowsConfig, s.TrainingConfig, s.AuditConfig)
    fields = [group.__dataclass_fields__ for group in groups]
    return s.Config(
        *(
            group(**{name: v for name, v in values.items() if name in names})
            for group, names in zip(groups, fields, strict=True)
        )
    )


def _audited(folder, **changes):
    """Estimates of the attacks, and the lines of their scores."""
    config = _config(folder, **changes)
    ready = case.prepare(config, inputs.read(config.files, config.rows))
    estimates = attacking.estimates(
        ready.view,
        attacking.chosen(config.audit.attacks),
        s.of_attacks(config.audit),
        lambda name: contextlib.nullcontext(),
        lambda name, compute: compute(),
    )
    return estimates, scoring.lines(
        estimates, ready.truth, continuous=ready.view.continuous
    )


@pytest.fixture
def linear(tmp_path):
    """Two clients' linear regression by full-batch steps, and their rows."""
    rng = np.random.default_rng(0)
    size = 60
    frame = pd.DataFrame(
        {
            "age": rng.normal(size=size).round(3),
            "married": rng.integers(0, 2, size),
            "height": rng.normal(size=size).round(3),
            "client": np.repeat([4, 7], size // 2),
        }
    )
    noise = 0.2 * rng.normal(size=size)
    frame["y"] = (frame.age + 2 * frame.married - frame.height + noise).round(3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    _record(tmp_path / "seen", frame)
    return tmp_path


def _record(stem, frame, about=None, rounds=12, change=None):
    """Trains on the rows of a frame and records every round."""
    known = {"batch_size": None, "learning_rate": _RATE, "local_epochs": 1}
    x, y = frame[list(COLUMNS)].to_numpy(float), frame.y.to_numpy(float)
    rng = np.random.default_rng(1)
    pathlib.Path(f"{stem}.npz").unlink(missing_ok=True)
    with transcript.Recorder(stem, known if about is None else about) as recorder:
        for number in range(rounds):
            # A server that perturbs its model makes messages that determine optima.
            model = {
                "out/kernel": rng.normal(size=(3, 1)),
                "out/bias": rng.normal(size=1),
            }
            returned = {}
            for client in (4, 7):
                mine = (frame.client == client).to_numpy()
                fit = x[mine] @ model["out/kernel"][:, 0] + model["out/bias"]
                error = fit - y[mine]
                slope = 2 * x[mine].T @ error / mine.sum()
                returned[client] = {
                    "out/kernel": model["out/kernel"] - _RATE * slope[:, None],
                    "out/bias": model["out/bias"] - 2 * _RATE * error.mean(),
                }
            if change is not None:
                change(number, model, returned)
            recorder.record(number, model, returned)


@pytest.fixture
def config():
    """`(folder, **changes) -> Config`."""
    return _config


@pytest.fixture
def audited():
    """`(folder, **changes) -> estimates, lines`."""
    return _audited


@pytest.fixture
def record():
    """Records the training of a frame's rows again, in another way."""
    return _record
