"""`last_layer`: a client's label distribution from all its messages, in closed form.

Of plain SGD, the last bias says `delta / (learning rate * steps) = mean softmax - label
distribution` (`rules`). Here the mean softmax is that of the client's public rows under
every value of the sensitive column (of a number under that between its ends, which few
rows have), halfway between the model sent and the model
returned, and the result is a mean over its messages. Its targets are not used. Messages
of a client who clips, or is held back by FedProx, have not come as far as it takes for
granted: of the first it is not told, the second is refused.

A model that has learnt tells much of the labels of known rows without any message of their
client: what others' messages would say of them stands beside it (`others`).
"""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks import attribute, others
from fljax.attacks import needs as needs_lib
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.each_client import Client, Task, over_clients, task
from fljax.attacks.estimates import Estimates, LabelEstimate
from fljax.attacks.label_distribution import rules
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.types import Params


def run(view: AdversaryView, settings: None) -> Estimates:
    """The closed form of every client."""
    del settings
    assert view.transcript is not None
    training = view.training
    bias = needs_lib.last_bias(view.transcript.params, view.outputs)
    moved = (training.learning_rate or 0.0) * training.local_steps(view.sizes)
    static, moved = task(view, bias), np.asarray(moved, np.float32)
    value = over_clients(_one, static, view, moved)
    beside = None
    if (seen := others.messages(view)) is not None:
        beside = over_clients(_one, static, view._replace(transcript=seen), moved)
    found = LabelEstimate(value, without_messages(view), "closed_form", beside)
    return {"last_layer": found}


def without_messages(view: AdversaryView) -> np.ndarray:
    """The proxy rows' distribution for every client, uniform without any; `[C, K]`."""
    mean = np.full(view.outputs, 1 / view.outputs)
    if view.proxy is not None:
        counts = np.bincount(view.proxy.y, minlength=view.outputs)
        mean = counts / counts.sum()
    return np.tile(mean, (len(view.clients), 1))


def _one(static: Task, client: Client, distance: jax.Array) -> jax.Array:
    exchange, bias = client.exchange, static.settings

    def message(at):
        sent = jax.tree.map(lambda leaf: leaf[at], exchange.params)
        delta = jax.tree.map(lambda leaf: leaf[at], exchange.delta)
        half = jax.tree.map(lambda leaf, d: leaf - d / 2, sent, delta)
        moved = jax.tree.leaves(delta)[bias]
        return _mean_softmax(static, half, client) - moved / distance

    count = len(jax.tree.leaves(exchange)[0])
    found = jnp.mean(jax.lax.map(message, jnp.arange(count)), axis=0)
    return rules.to_simplex(found[None])[0]


def _mean_softmax(static: Task, params: Params, client: Client) -> jax.Array:
    known = client.known

    def under(candidate):
        def row(x):
            full = attribute.complete(x, candidate)
            return jax.nn.softmax(static.apply(params, full))

        values = jax.vmap(row)(known.public)
        real = known.mask[:, None]
        return jnp.sum(jnp.where(real, values, 0), axis=0) / jnp.sum(real)

    values = client.candidates
    if static.continuous:
        values = jnp.mean(values, axis=0, keepdims=True)
    return jnp.mean(jax.lax.map(under, values), axis=0)


SPEC = AttackSpec(
    "last_layer",
    Needs(
        task="multiclass",
        last_bias=True,
        training=True,
        optimisers=("sgd",),
        algorithms_not=("fed_prox",),
    ),
    run,
    gives=LabelEstimate,
    group="label_distribution",
)
