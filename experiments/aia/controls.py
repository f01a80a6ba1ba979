"""Trajectory matching with what must not help it: negative controls.

They show that a gain is the client's own: with the messages of the next client
(`trajectory_other`, beside `model_other`, the model-based attack on that client's
model), and with its own messages but the targets of its rows permuted
(`trajectory_permuted`). Neither may gain anything.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia.adversary import (
    Adversary,
    Attacked,
    each_seed,
    of_seeds,
    stacked,
)
from experiments.aia.settings import TrajectoryConfig
from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.attribute import last_model
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.trajectory import Inference
from fljax.attacks.trajectory import clients as trajectory
from fljax.transcript import views
from fljax.types import Array, Known, Params


def run(
    adversary: Adversary, settings: trajectory.Settings, simulated: TrajectoryConfig
) -> list[Attacked]:
    """The controls of every seed."""
    sent = adversary.messages.has_messages
    permuted = functools.partial(_permuted, settings, simulated)
    other = functools.partial(_other, settings, simulated)
    mixed = each_seed(adversary, "trajectory, permuted targets", permuted)
    returned, _ = views.last_models(adversary.transcript, adversary.messages)
    of_next = of_seeds(jax.tree.map(lambda leaf: np.roll(leaf, -1, axis=1), returned))
    swapped = each_seed(adversary, "trajectory, next client's messages", other, of_next)
    found = stacked([a | b for a, b in zip(mixed, swapped, strict=True)])
    of_other = np.roll(sent, -1, axis=1)
    return [
        Attacked(name, each, sent if name == "trajectory_permuted" else of_other)
        for name, each in found.items()
    ]


def misjudged(view: AdversaryView, factor: float) -> AdversaryView:
    """The same with a learning rate that is taken for so many times what it is."""
    rate = view.training.learning_rate
    assert rate is not None
    training = view.training._replace(learning_rate=rate * factor)
    return view._replace(training=training)


def prediction(
    view: AdversaryView, found: Inference, simulated: TrajectoryConfig, value: Array
) -> Prediction:
    """What is reported of trajectory matching, given the view that it had."""
    diagnostics = {"misfit": found.misfit}
    if simulated.estimate_scale:
        scale = _scales(view) / np.float32(simulated.scale_error)
        diagnostics["relative_scale"] = found.scale / scale
    details = {} if view.continuous else {"probability": found.probability}
    return Prediction(value, diagnostics, details)


def _permuted(settings, simulated: TrajectoryConfig, view: AdversaryView) -> Estimates:
    y = _mixed(np.uint32(view.seed), view.clients, view.known)
    view = misjudged(
        view._replace(known=view.known._replace(y=np.asarray(y))), simulated.scale_error
    )
    found = trajectory.infer(view, settings)
    return {"trajectory_permuted": _prediction(view, found, simulated)}


def _other(
    settings, simulated: TrajectoryConfig, view: AdversaryView, returned: Params
) -> Estimates:
    """With the messages, and the steps, of the next client."""
    messages = jax.tree.map(lambda leaf: np.roll(leaf, -1, axis=0), view.messages)
    swapped = misjudged(view._replace(messages=messages), simulated.scale_error)
    scales = np.roll(_scales(swapped), -1)
    found = trajectory.infer(swapped, settings, scales=scales)
    return {
        "trajectory_other": _prediction(swapped, found, simulated),
        "model_other": Prediction(last_model.with_models(view, returned)),
    }


def _prediction(view, found: Inference, simulated) -> Prediction:
    value = found.value[..., 0] if view.continuous else found.index
    return prediction(view, found, simulated, value)


def _scales(view: AdversaryView) -> np.ndarray:
    """Learning rate times local steps `[C]`."""
    rate = view.training.learning_rate
    return np.asarray(rate * view.training.local_steps(view.sizes), np.float32)


@jax.jit
def _mixed(seed: Array, clients: Array, known: Known) -> Array:
    """Targets `[C, n]` of the real rows in random order; padding stays at the end."""

    def one(client, y, mask):
        order = jax.random.uniform(
            streams.key(seed, streams.PERMUTATION, client), y.shape
        )
        return y[jnp.argsort(jnp.where(mask, order, jnp.inf))]

    return jax.vmap(one)(jnp.asarray(clients), jnp.asarray(known.y), known.mask)
