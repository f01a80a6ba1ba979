"""`model`: equation 3 with the last model that each client returned, and was sent.

Where only sums are seen, the last returned model is that of a sum that the client is in;
where only global models are, it is the last of them.
"""

import jax
import numpy as np

from fljax.attacks import attribute
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.each_client import Client, Task, over_items, task
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.transcript import views
from fljax.transcript.views import ClientView
from fljax.types import Params


def run(view: AdversaryView, settings: None) -> Estimates:
    """Both models' predictions; `details["params"]` are they, leaves `[C, ...]`."""
    del settings
    assert view.transcript is not None and view.messages is not None
    few = _only(view, views.ends(view.messages))
    values = over_items(_one, task(few), few, np.arange(len(few.clients)))
    assert few.transcript is not None and few.messages is not None
    models = views.last_models(few.transcript, few.messages)
    if view.sees == "final":  # nothing was seen before it
        return {"model": Prediction(values[0], {}, {"params": models[0]})}
    return {
        name: Prediction(value, {}, {"params": params})
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
    sent, delta = jax.tree.map(lambda leaf: leaf[-1], client.exchange)
    returned = jax.tree.map(lambda leaf, d: leaf - d, sent, delta)
    return tuple(_fit(static, each, client) for each in (returned, sent))


def _with_model(static: Task, client: Client, *leaves: jax.Array):
    treedef = static.settings
    return _fit(static, treedef.unflatten(leaves), client)


def _fit(static: Task, params: Params, client: Client) -> jax.Array:
    """The values under which a model fits the targets best."""
    arguments = static.loss_fn, params, client.known, client.candidates
    if static.continuous:
        return attribute.model_based_continuous(*arguments)
    return attribute.model_based(*arguments).index


SPEC = AttackSpec("model", Needs(views=("messages", "sum", "models", "final")), run)
