"""`model`: equation 3 with the last model that each client returned, and was sent."""

import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses
from fljax.attacks import attribute
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.each_client import Client, Task, over_items, task
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.transcript import views
from fljax.types import Batch, Known, Params


def run(view: AdversaryView, settings: None) -> Estimates:
    """Both models' predictions.

    `loss_ratio` is the loss of the better one over that of the first model sent, with
    the sensitive block in the middle of its candidates: what the client has learned.
    """
    del settings
    (returned, sent), ratio = over_items(
        _one, task(view), view, np.arange(len(view.clients))
    )
    diagnostics = {"loss_ratio": ratio}
    assert view.transcript is not None and view.messages is not None
    models = views.last_models(view.transcript, view.messages)
    return {
        "model": Prediction(returned, diagnostics, {"params": models[0]}),
        "model_global": Prediction(sent, diagnostics, {"params": models[1]}),
    }


def with_models(view: AdversaryView, params: Params) -> np.ndarray:
    """Equation 3 with any model of each client, leaves `[C, ...]`; values `[C, n]`."""
    leaves, treedef = jax.tree.flatten(params)
    everyone = np.arange(len(view.clients))
    return over_items(_with_model, task(view, treedef), view, everyone, *leaves)


def _one(static: Task, client: Client):
    exchange, known = client.exchange, client.known
    first, sent = (
        jax.tree.map(lambda leaf, at=at: leaf[at], exchange.params) for at in (0, -1)
    )
    returned = jax.tree.map(lambda leaf, d: leaf - d[-1], sent, exchange.delta)
    last = returned, sent
    before, *after = (
        _loss(static, each, known, client.candidates) for each in (first, *last)
    )
    values = tuple(_fit(static, each, client) for each in last)
    return values, jnp.minimum(*after) / before


def _with_model(static: Task, client: Client, *leaves: jax.Array):
    treedef = static.settings
    return _fit(static, treedef.unflatten(leaves), client)


def _fit(static: Task, params: Params, client: Client) -> jax.Array:
    """The values under which a model fits the targets best."""
    arguments = static.loss_fn, params, client.known, client.candidates
    if static.continuous:
        return attribute.model_based_continuous(*arguments)
    return attribute.model_based(*arguments).index


def _loss(
    static: Task, params: Params, known: Known, candidates: jax.Array
) -> jax.Array:
    """Mean loss [], with the sensitive block in the middle of its candidates."""
    middle = candidates.mean(axis=0)
    block = jnp.broadcast_to(middle, (len(known.mask), len(middle)))
    batch = Batch(attribute.complete(known.public, block), known.y, known.mask)
    return losses.batch_loss(static.loss_fn, params, batch)


SPEC = AttackSpec("model", Needs(), run)
