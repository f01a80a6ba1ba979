"""Label distributions of two clients, from a softmax regression in NumPy."""

import numpy as np
import pandas as pd
import pytest

from fljax import transcript, verdicts
from fljax.auditing import lines as lines_lib
from fljax.auditing import measuring

_CLIENTS, _ROWS, _RATE = (0, 1), 60, 0.05
_ABOUT = {"batch_size": 0, "learning_rate": _RATE, "epochs": 2}
_SHARES = ([0.7, 0.2, 0.1], [0.1, 0.1, 0.8])
_NAMES = (
    "last_layer", "class_gradients", "predictor", "predictor_posterior", "simulated_path",
)  # fmt: skip


def _frame(rng, labels, client):
    centres = np.array([[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])
    x = centres[labels] + 0.3 * rng.normal(size=(len(labels), 2))
    return pd.DataFrame(
        {
            "a": x[:, 0], "b": x[:, 1], "sex": rng.choice(["f", "m"], len(labels)),
            "client": client, "y": labels,
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Transcript, rows and proxy rows."""
    folder, rng = tmp_path_factory.mktemp("labels"), np.random.default_rng(0)
    frames = [
        _frame(rng, rng.choice(3, _ROWS, p=_SHARES[client]), client)
        for client in _CLIENTS
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame.to_csv(folder / "rows.csv", index=False)
    proxy = _frame(rng, np.repeat([0, 1, 2], 20), 9)
    proxy.to_csv(folder / "proxy.csv", index=False)
    model = {"kernel": np.zeros((3, 3)), "bias": np.zeros(3)}
    with transcript.Recorder(folder / "seen", dict(_ABOUT)) as recorder:
        for number in range(3):
            returned = {client: _train(model, frames[client]) for client in _CLIENTS}
            recorder.record(number, model, returned)
            model = {k: (returned[0][k] + returned[1][k]) / 2 for k in model}
    return folder


def _train(model, frame):
    x = frame[["a", "b"]].assign(sex=(frame.sex == "m").astype(float)).to_numpy()
    kernel, bias = model["kernel"], model["bias"]
    for _ in range(2):
        scores = np.exp(x @ kernel + bias)
        slope = scores / scores.sum(axis=1, keepdims=True) - np.eye(3)[frame.y]
        kernel = kernel - _RATE * x.T @ slope / len(x)
        bias = bias - _RATE * slope.mean(axis=0)
    return {"kernel": kernel, "bias": bias}


def _lines(audited, folder, **changes):
    config = {"target": "y", "sensitive": "sex", "task": "multiclass", **changes}
    return audited(folder, attacks=("label_distribution",), **config)


@pytest.mark.slow
def test_every_attack_is_nearer_than_what_needs_no_message(folder, audited):
    proxy = str(folder / "proxy.csv")
    answers, lines = _lines(audited, folder, proxy=proxy, shadow_clients=64)
    truth = pd.read_csv(folder / "rows.csv").groupby("client").y
    shares = truth.value_counts(normalize=True).unstack(fill_value=0).to_numpy()
    assert [line.attack for line in lines] == list(_NAMES)
    for line in lines:
        assert line.metric == verdicts.DISTANCE.metric
        guess = answers[line.attack].value
        distance = 0.5 * np.abs(guess - shares).sum(axis=1)
        assert line.total.value == pytest.approx(distance.mean())
        assert line.total.value < 0.2 < line.total.baseline
        assert line.total.value < line.total.references[measuring.OTHERS]
        np.testing.assert_allclose(answers[line.attack].baseline, 1 / 3)


@pytest.mark.slow
def test_a_model_that_knows_her_rows_is_no_leak_of_her_messages(tmp_path, audited):
    """Everybody returns the mean of all: rows and models tell the labels, messages none."""
    rng, clients = np.random.default_rng(0), range(6)
    shares = rng.dirichlet([0.5] * 3, len(clients))
    frames = [_frame(rng, rng.choice(3, _ROWS, p=shares[c]), c) for c in clients]
    frame = pd.concat(frames, ignore_index=True)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model, about = {"kernel": np.zeros((3, 3)), "bias": np.zeros(3)}, dict(_ABOUT)
    with transcript.Recorder(tmp_path / "seen", about) as recorder:
        for number in range(20):
            each = [_train(model, own) for own in frames]
            mean = {k: np.mean([one[k] for one in each], axis=0) for k in model}
            noise = [{k: 1e-9 * rng.normal(size=v.shape) for k, v in mean.items()}
                     for _ in clients]  # fmt: skip
            returned = {c: {k: mean[k] + noise[c][k] for k in mean} for c in clients}
            recorder.record(number, model, returned)
            model = mean
    told = {"target": "y", "sensitive": "sex", "task": "multiclass"}
    _, (line,) = audited(tmp_path, attacks=("last_layer",), **told)
    assert line.total.value < 0.2 and line.verdict == verdicts.NOT_SHOWN
    beside = line.total.references[measuring.OTHERS]
    assert line.total.value == pytest.approx(beside, abs=1e-3)


def test_without_proxy_rows_the_bias_still_tells(folder, audited):
    _, lines = _lines(audited, folder, client=(1,))
    assert lines[0].verdict == verdicts.NOT_SHOWN
    for line in lines[1:]:
        assert line.verdict == lines_lib.NOT_APPLICABLE and "proxy rows" in line.detail


def test_her_targets_are_not_used(folder, audited, tmp_path):
    before, _ = _lines(audited, folder)
    frame = pd.read_csv(folder / "rows.csv")
    frame["y"] = frame.y.to_numpy()[::-1]
    frame.to_csv(tmp_path / "other.csv", index=False)
    after, _ = _lines(audited, folder, known=str(tmp_path / "other.csv"))
    np.testing.assert_array_equal(before["last_layer"].value, after["last_layer"].value)


def test_proxy_rows_must_be_like_the_known_ones(folder, audited, tmp_path):
    path = tmp_path / "proxy.csv"
    proxy = pd.read_csv(folder / "proxy.csv")
    proxy.drop(columns="a").to_csv(path, index=False)
    with pytest.raises(ValueError, match="--proxy: .*lack the column 'a'"):
        _lines(audited, folder, proxy=str(path))
    proxy.assign(sex="x").to_csv(path, index=False)
    with pytest.raises(ValueError, match="--proxy: .*unknown category 'x'"):
        _lines(audited, folder, proxy=str(path))
    proxy[proxy.y < 2].to_csv(path, index=False)
    _, lines = _lines(audited, folder, proxy=str(path))
    assert lines[1].detail == "has no proxy row of class 2"


def test_classes_are_not_renumbered_in_silence(folder, audited, tmp_path):
    frame = pd.read_csv(folder / "rows.csv")
    frame[frame.y != 1].to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="expected classes 0 to K - 1, .* found 0, 2"):
        _lines(audited, folder, known=str(tmp_path / "rows.csv"))
