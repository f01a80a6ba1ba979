"""Losses that clients may have, other than the usual one of their target."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest

import fljax
from fljax import losses, transcript
from fljax.auditing import case, client_loss, fits, inputs, learnt
from fljax.auditing import settings as s
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError

_COLUMNS = ("age", "married", "height")
_RATE = 0.3
_SLOPES = {  # of a row's loss by its output, as a framework has them
    "absolute": lambda fit, y: np.sign(fit - y),
    "huber": lambda fit, y: np.clip(fit - y, -0.5, 0.5),
    "logistic": lambda fit, y: (
        np.where(y == 1, 3.0, 1.0) * (1 / (1 + np.exp(-fit)) - y)
    ),
    "own": lambda fit, y: np.expm1(fit - y),
    "squared": lambda fit, y: 2 * (fit - y),
    "squared of signs": lambda fit, y: 2 * (fit - (2 * y - 1)),
}
_BINARY = ("logistic", "squared", "squared of signs")


@dataclasses.dataclass
class _Unhashable:
    def __call__(self, output, target):
        return output - target


def linex(output, target):
    """Varian's asymmetric loss, whose slope is the last above."""
    return jnp.exp(output - target) - (output - target)


def _frame(binary):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=60).round(3) for name in _COLUMNS})
    frame["married"] = rng.integers(0, 2, 60)
    y = frame.age + 2 * frame.married - frame.height + rng.normal(size=60)
    frame["y"] = (y > y.quantile(0.75)).astype(int) if binary else (y / 2).round(3)
    frame["client"] = np.repeat([4, 7], 30)
    return frame


@pytest.fixture
def recorded(tmp_path):
    """`(name, **about)` records clients with that loss, and keeps their rows."""

    def record(name, **about):
        frame, rng = _frame(name in _BINARY), np.random.default_rng(1)
        x, y = frame[list(_COLUMNS)].to_numpy(float), frame.y.to_numpy(float)
        told = {"batch_size": None, "learning_rate": _RATE, "local_epochs": 1} | about
        with transcript.Recorder(tmp_path / "seen", told) as recorder:
            for number in range(8):
                model = {"kernel": rng.normal(size=(3, 1)), "bias": rng.normal(size=1)}
                returned = {}
                for client in (4, 7):
                    mine = (frame.client == client).to_numpy()
                    fit = x[mine] @ model["kernel"][:, 0] + model["bias"]
                    slope = _RATE * _SLOPES[name](fit, y[mine]) / len(fit)
                    returned[client] = {
                        "kernel": model["kernel"] - (x[mine].T @ slope)[:, None],
                        "bias": model["bias"] - slope.sum(),
                    }
                recorder.record(number, model, returned)
        frame.to_csv(tmp_path / "rows.csv", index=False)
        return tmp_path

    return record


def _fit(folder, config, **flags):
    """How well the messages fit the rows."""
    told = config(folder, **flags)
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    return fits.of_rows(ready.view, ready.truth, s.simulation(told.audit), 100)


@pytest.mark.parametrize(
    ("name", "flags", "about"),
    [
        ("absolute", {}, {"loss": "L1Loss"}),
        pytest.param(
            "huber", {"loss": "huber", "huber_delta": 0.5}, {}, marks=pytest.mark.slow
        ),
        pytest.param(
            "logistic",
            {},
            {"loss": "BCEWithLogitsLoss", "pos_weight": 3.0},
            marks=pytest.mark.slow,
        ),
        ("own", {"loss": f"{__name__}:linex"}, {}),
    ],
)
def test_messages_of_the_loss_that_is_told_fit(recorded, config, name, flags, about):
    found = _fit(recorded(name, **about), config, **flags)
    assert (found.misfit < 1.5).all() and not found.slip
    if name == "own":  # what the least of it may be nobody says
        assert np.isnan(found.explained).all()
    else:
        assert (found.explained < 100).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("absolute", "absolute"),
        ("logistic", "logistic with a pos_weight of 3"),
        ("squared", "squared (task=regression) (misfit"),
        ("squared of signs", "squared (task=regression), its target -1 or 1"),
    ],
)
def test_another_loss_than_the_usual_one_is_told(recorded, config, name, loss):
    found = _fit(recorded(name), config)
    assert (found.misfit > 10).all()
    assert f"the loss of a row is {loss}" in found.slip


@pytest.mark.slow
def test_messages_of_a_loss_of_ones_own_are_read(recorded):
    folder = recorded("own")
    found = fljax.audit(
        folder / "seen", folder / "rows.csv", target="y", sensitive="married",
        loss=linex, client_column="client", attacks=("trajectory", "reconstruct"),
        trajectory_iterations=60, controls=(),
    )  # fmt: skip
    trajectory, reconstruct = found.lines
    assert trajectory.total.value > 95  # 65 have the most frequent value
    assert "needs the squared loss, clients have another" in reconstruct.detail
    assert found.audited.flags["loss"] == "loss"


@pytest.mark.parametrize(
    ("about", "task", "flags", "loss"),
    [
        ({}, "regression", {}, losses.squared),
        ({"loss": 0.31}, "regression", {}, losses.squared),
        ({"loss": "focal"}, "binary", {}, losses.logistic),
        ({"loss": "mae"}, "regression", {"loss": "mse"}, losses.squared),
        ({"loss": "huber"}, "regression", {}, losses.Huber(1.0)),
        ({"pos_weight": 1}, "binary", {}, losses.logistic),
        ({"pos_weight": 1, "label_smoothing": 0.0}, "regression", {}, losses.squared),
        (
            {"loss": "huber", "huber_delta": 2},
            "regression",
            {"loss": "mse"},
            losses.squared,
        ),
        ({"loss": "huber", "huber_delta": 2}, "regression", {}, losses.Huber(2.0)),
        ({"loss": "focal", "pos_weight": 3}, "binary", {}, losses.logistic),
        (
            {"pos_weight": 2},
            "binary",
            {"pos_weight": 4.0},
            losses.WeightedLogistic(4.0),
        ),
        (
            {"loss": "CrossEntropyLoss", "label_smoothing": 0.1},
            "multiclass",
            {},
            losses.SmoothedCrossEntropy(0.1),
        ),
    ],
)
def test_what_the_user_says_goes_before_what_is_recorded(about, task, flags, loss):
    config = s.TrainingConfig(model="linear", **flags)
    assert client_loss.read(about, config, "seen", task, 1) == loss
    said = client_loss.notes(about, config, "seen")
    assert ("focal" in str(said)) == (about.get("loss") == "focal")


@pytest.mark.parametrize(
    ("about", "task", "flags", "error", "said"),
    [
        ({}, "binary", {"loss": "focal"}, ConfigError, "--loss: expected logistic, or"),
        ({}, "binary", {"loss": "mse"}, ConfigError, "which is of regression targets"),
        (
            {"loss": "BCELoss"},
            "regression",
            {},
            TranscriptError,
            "about, loss: expected",
        ),
        ({"loss": ["mse"]}, "regression", {}, TranscriptError, "loss: expected a name"),
        ({}, "regression", {"pos_weight": 2.0}, ConfigError, "--pos_weight: expected"),
        ({}, "regression", {"huber_delta": 2.0}, ConfigError, "got 2 beside squared"),
        ({"label_smoothing": 1}, "multiclass", {}, TranscriptError, ">= 0 and < 1"),
        ({}, "binary", {"loss": "nowhere:loss"}, ConfigError, "cannot be imported"),
        (
            {},
            "regression",
            {"loss": f"{__name__}:linex", "huber_delta": 2.0},
            ConfigError,
            "--huber_delta: expected none beside a loss of your own",
        ),
    ],
)
def test_a_loss_that_cannot_be_is_refused_in_one_line(about, task, flags, error, said):
    config = s.TrainingConfig(model="linear", **flags)
    with pytest.raises(error, match=said) as raised:
        client_loss.read(about, config, "seen", task, 1)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda output: output, "takes 1 positional argument"),
        (lambda output, target: jnp.stack([output, target]), r"got \[2\]"),
        (lambda output, target: None, "got NoneType"),
        (3.0, "got float"),
        (lambda output, target: output > target, "returns a float, got bool"),
        (_Unhashable(), "hashable, as a frozen dataclass is, got _Unhashable"),
    ],
)
def test_a_loss_of_ones_own_is_of_one_row(given, said):
    config = s.TrainingConfig(model="linear")
    with pytest.raises(ConfigError, match=said):
        client_loss.read({}, config, "seen", "regression", 1, given)


def test_losses_are_those_of_optax():
    rng = np.random.default_rng(2)
    logits, share = jnp.asarray(rng.normal(size=5)), 0.1
    smooth = optax.smooth_labels(jax.nn.one_hot(3, 5), share)
    np.testing.assert_allclose(
        losses.SmoothedCrossEntropy(share)(logits, jnp.int32(3)),
        optax.softmax_cross_entropy(logits, smooth),
        rtol=1e-6,
    )
    weighted = losses.WeightedLogistic(3.0)
    for target, times in ((0.0, 1.0), (1.0, 3.0)):
        np.testing.assert_allclose(
            weighted(logits[0], jnp.asarray(target)),
            times * losses.logistic(logits[0], jnp.asarray(target)),
            rtol=1e-6,
        )


@pytest.mark.parametrize(
    ("loss", "y", "least"),
    [
        (losses.absolute, [0.0, 1.0, 5.0], 5 / 3),
        (losses.Huber(1.0), [0.0, 4.0, 5.0], 4 / 3),
        (losses.WeightedLogistic(3.0), [0.0, 0.0, 0.0, 1.0], 1.5 * np.log(2)),
        (losses.SmoothedCrossEntropy(0.2), [0, 0, 1], None),
        (linex, [0.0, 1.0], np.nan),
    ],
)
def test_models_are_compared_with_the_best_constant(loss, y, least):
    found = learnt.of_constant(loss, np.asarray(y), 3)
    if least is None:  # shares of classes, a fifth of them spread
        share = 0.8 * np.array([2, 1, 0]) / 3 + 0.2 / 3
        least = -(share * np.log(share)).sum()
    assert found == pytest.approx(least, rel=1e-4, nan_ok=True)


def test_a_number_of_a_loss_that_is_not_named_is_said():
    config = s.TrainingConfig(model="linear")
    (said,) = client_loss.notes({"huber_delta": 0.5}, config, "seen")
    assert "huber_delta counts beside a loss of 'huber' alone" in said
