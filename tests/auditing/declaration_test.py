"""A budget of the clients' defense: the noise that attacks imagine."""

from types import SimpleNamespace

import numpy as np
import pytest

from fljax import models, privacy
from fljax.attacks.adversary import LocalTraining
from fljax.auditing import declaration
from fljax.auditing.declaration import Declared
from fljax.defenses import specs


def _view(sizes=(8, 8), **training):
    """Three rounds of a training, in which the second client once did not come."""
    num_rounds = training.pop("num_rounds", 3)
    known = {"batch_size": 4, "epochs": 1, "learning_rate": 0.1} | training
    model = models.linear(1)
    return SimpleNamespace(
        transcript=SimpleNamespace(round=np.arange(3), params=model),
        messages=SimpleNamespace(count=np.array([3, 2])),
        sizes=np.array(sizes),
        sees="messages",
        loss_fn=lambda params, x, y: 0.0,
        num_rounds=num_rounds,
        training=LocalTraining(**known),
    )


def _simulated(text, view, delta=1e-5):
    spec = specs.parse(text)
    return declaration.simulated(Declared(spec, delta), view)


@pytest.mark.parametrize("text", ["none", "dp_sgd(clip=1, sigma=2)", "median"])
def test_without_a_budget_nothing_changes_and_nothing_is_said(text):
    spec, said = _simulated(text, _view(), delta=None)
    assert (str(spec), said) == (text, [])


def test_a_budget_is_the_sigma_that_keeps_it_over_all_rounds():
    """Three rounds of two steps, of which each takes half of the rows."""
    spec, (said,) = _simulated("dp_sgd(clip=0.5, epsilon=8)", _view())
    (part,) = spec.parts
    assert part.values["epsilon"] is None and part.values["clip"] == 0.5
    sigma = part.values["sigma"]
    assert privacy.epsilon(sigma, 0.5, 6, delta=1e-5) == pytest.approx(8, rel=0.02)
    assert said == (
        f"dp_sgd(clip=0.5, epsilon=8) at delta 1e-05 is simulated with a sigma of "
        f"{sigma:.3g}."
    )


def test_the_rounds_of_a_budget_are_those_that_were_planned():
    """Not those that were recorded, nor those that a client came into."""
    spec, _ = _simulated("dp_sgd(clip=0.5, epsilon=8)", _view(num_rounds=30))
    sigma = spec.parts[0].values["sigma"]
    assert privacy.epsilon(sigma, 0.5, 60, delta=1e-5) == pytest.approx(8, rel=0.02)


@pytest.mark.slow
def test_clients_of_other_sizes_are_imagined_with_the_mean():
    large, _ = _simulated("dp_sgd(clip=1, epsilon=8)", _view((40, 40)))
    small, _ = _simulated("dp_sgd(clip=1, epsilon=8)", _view((8, 8)))
    both, (said,) = _simulated("dp_sgd(clip=1, epsilon=8)", _view((8, 40)))
    of = [each.parts[0].values["sigma"] for each in (large, small, both)]
    assert of[0] < of[2] < of[1]
    assert of[2] == pytest.approx((of[0] + of[1]) / 2, rel=1e-5)
    assert f", the mean over clients ({of[0]:.3g} to {of[1]:.3g})" in said


@pytest.mark.parametrize(
    ("delta", "training", "why"),
    [
        (None, {}, "depends on its delta; say --delta, or sigma"),
        (1e-5, {"batch_size": None}, "nothing says batch_size, so how often"),
        (1e-5, {"epochs": None}, "nothing says local_epochs"),
        (1e-5, {"epochs": None, "steps": 3, "batch_size": None}, "batch_size"),
    ],
)
def test_of_a_budget_that_means_nothing_yet_it_is_said_why(delta, training, why):
    text = "dp_sgd(clip=1, epsilon=8)"
    spec, (said,) = _simulated(text, _view(**training), delta)
    assert str(spec) == text
    assert said.startswith(f"The noise of {text} is not simulated: ") and why in said
