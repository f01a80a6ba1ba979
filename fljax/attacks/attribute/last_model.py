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
from fljax.transcript.views import ClientView
from fljax.types import Batch, Known, Params


def run(view: AdversaryView, settings: None) -> Estimates:
    """Both models' predictions.

    `loss_ratio` is the loss of the better one over that of the first model sent, with
    the sensitive block in the middle of its candidates: what the client has learned.
    `details["params"]` are the models, leaves `[C, ...]`.
    """
    del settings
    assert view.transcript is not None and view.messages is not None
    few = _only(view, views.ends(view.messages))
    everyone = np.arange(len(view.clients))
    values, ratio = over_items(_one, task(few), few, everyone)
    assert few.transcript is not None and few.messages is not None
    models = views.last_models(few.transcript, few.messages)
    return {
        name: Prediction(value, {"loss_ratio": ratio}, {"params": params})
        for name, value, params in zip(
            ("model", "model_global"), values, models, strict=True
        )
    }


def with_models(view: AdversaryView, params: Params) -> np.ndarray:
    """Equation 3 with any model of each client, leaves `[C, ...]`; values `[C, n]`."""
    assert view.messages is not None
    leaves, treedef = jax.tree.flatten(params)
    few = _only(view, views.first(view.messages, 1))
    everyone = np.arange(len(few.clients))
    return over_items(_with_model, task(few, treedef), few, everyone, *leaves)


def _only(view: AdversaryView, places: ClientView) -> AdversaryView:
    """The same with nothing but these messages: no device has to hold the others."""
    assert view.transcript is not None
    exchange = views.messages(view.transcript, places)
    transcript, messages = views.apart(exchange, places.count)
    return view._replace(transcript=transcript, messages=messages)


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
