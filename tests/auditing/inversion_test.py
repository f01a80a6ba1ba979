"""Rows rebuilt from a message that is one gradient of them."""

import jax
import numpy as np
import pandas as pd
import pytest

from fljax import losses, models, transcript, verdicts
from fljax.attacks.estimates import Reconstruction
from fljax.auditing import scoring
from fljax.auditing.measuring import Controls
from fljax.auditing.truth import Truth
from fljax.types import Features


def _recorded(folder, owner, clients):
    """One full-batch step of `mlp:64` by some of the clients `owner` of rows."""
    rng, count = np.random.default_rng(0), len(owner)
    frame = pd.DataFrame(rng.normal(size=(count, 2)).round(3), columns=["a", "b"])
    frame = frame.assign(sex=rng.permutation(count) % 2, client=owner)
    frame = frame.assign(y=(frame.a - frame.b + frame.sex).round(3))
    frame.to_csv(folder / "rows.csv", index=False)
    model = models.mlp(3, hidden=(64,))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    params = model.init(jax.random.key(0))

    def returned(mine):
        x = mine[["a", "b", "sex"]].to_numpy(np.float32)
        rows = Features(x, np.zeros((len(x), 0), np.int32)), mine.y.to_numpy(np.float32)

        def mean_loss(params):
            return jax.vmap(loss_fn, (None, 0, 0))(params, *rows).mean()

        slope = jax.grad(mean_loss)(params)
        return jax.tree.map(lambda p, g: p - 0.5 * g, params, slope)

    about = {"batch_size": 0, "learning_rate": 0.5, "epochs": 1}
    with transcript.Recorder(folder / "seen", about) as recorder:
        sent = {client: returned(frame[frame.client == client]) for client in clients}
        recorder.record(0, params, sent)
    return folder


@pytest.fixture
def folder(tmp_path):
    """One client with two rows."""
    return _recorded(tmp_path, np.arange(20) // 2, [3])


def test_a_gradient_of_two_rows_is_inverted(folder, audited):
    answers, (line,) = audited(
        folder, sensitive="sex", model="mlp:64", attacks=("inversion",),
        inversion_iterations=40,
    )  # fmt: skip
    assert line.metric == verdicts.REBUILT.metric and line.total.n == 2
    frame = pd.read_csv(folder / "rows.csv")
    true = frame[frame.client == 3][["a", "b", "sex"]].to_numpy()
    found = answers["inversion"].value[0]
    apart = np.abs(found[:, None] - true[None]).max(axis=-1)
    assert (apart.min(axis=0) < 0.05).all() and line.total.value == 100
    assert line.verdict == verdicts.LEAKS


@pytest.mark.slow
def test_a_client_is_inverted_as_if_it_were_alone(tmp_path, audited):
    folder = _recorded(tmp_path, np.repeat([1, 2, 3], [1, 2, 4]), [1, 2, 3])
    config = {
        "sensitive": "sex", "model": "mlp:64", "attacks": ("inversion",),
        "inversion_iterations": 40,
    }  # fmt: skip
    answers, _ = audited(folder, **config)
    found = answers["inversion"].value
    assert found.shape == (3, 4, 3)
    has = np.isfinite(found).all(axis=-1)
    np.testing.assert_array_equal(has, np.arange(4) < np.array([[1], [2], [4]]))
    alone, _ = audited(folder, **config, client=(2,))
    np.testing.assert_allclose(found[1, :2], alone["inversion"].value[0], atol=1e-3)
    true = pd.read_csv(folder / "rows.csv")[["a", "b", "sex"]].to_numpy()[0]
    np.testing.assert_allclose(found[0, 0], true, atol=0.05)


def test_proxy_rows_of_a_regression_need_no_classes(folder, audited):
    rows = pd.read_csv(folder / "rows.csv")
    rows.assign(y=rows.y + 0.5).to_csv(folder / "proxy.csv", index=False)
    config = {"sensitive": "sex", "model": "mlp:64", "attacks": ("model",)}
    answers, _ = audited(folder, **config, proxy=str(folder / "proxy.csv"))
    assert answers["model"].value.shape == (1, 2)


def test_more_rows_or_steps_are_said_not_to_apply(folder, audited):
    config = {"sensitive": "sex", "model": "mlp:64", "attacks": ("inversion",)}
    _, (line,) = audited(folder, **config, inversion_rows=1)
    assert line.detail.endswith("of 1 at most, it is 1 step over 2 rows")
    _, (line,) = audited(folder, **config, local_epochs=3)
    assert line.detail.endswith("it is 3 steps over 2 rows")
    _, (line,) = audited(folder, **config, batch_size=1, local_steps=1)
    assert line.detail.endswith("it is one over 1 of 2 rows, not known which")


@pytest.mark.parametrize("size", [1, 2, 4])
def test_rows_that_are_rebuilt_are_a_leak_also_of_clients_with_one_row(size):
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(2, 40, size, 6))
    every, labels = np.ones((40, size), bool), np.full((40, 2), 0.5)
    truth = Truth(np.zeros((40, size)), every, 1.0, labels, rows, np.ones(6))
    strange = Controls(strangers=truth._replace(rows=others))
    for values, verdict in ((rows, verdicts.LEAKS), (others, verdicts.NOT_SHOWN)):
        (line,) = scoring.lines(
            {"inversion": Reconstruction(values + 1e-4)}, truth, continuous=False,
            controls=strange if values is rows else Controls(),
        )  # fmt: skip
        assert line.verdict == verdict


def test_who_guesses_the_mean_of_rows_that_are_alike_rebuilds_them_without_a_message():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 1, 6)) + 0.01 * rng.normal(size=(40, 4, 6))
    every, labels = np.ones((40, 4), bool), np.full((40, 2), 0.5)
    truth = Truth(np.zeros((40, 4)), every, 1.0, labels, rows, np.ones(6))
    (line,) = scoring.lines(
        {"inversion": Reconstruction(rows)}, truth, continuous=False
    )
    assert line.total.references == {"mean_row": 100} and line.verdict != verdicts.LEAKS
