"""How well models and messages fit the true rows: scores' side, where the truth is known.

An attack that fails may have been told wrong rows, or another training than there was. So
messages are compared with what the true rows would have sent (`fljax.attacks.trajectory`,
whose simulation has nothing left to guess then): the *misfit* is about 1 if all is right,
however short of that an attack's search stops. Where it is not, some usual slips are
tried: what fits with one of them was probably recorded or declared so.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import fit, losses
from fljax.attacks import attribute, needs
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.trajectory import FITS, clients
from fljax.auditing.truth import Truth
from fljax.transcript import views
from fljax.types import Batch

_MESSAGES = 60  # of each client, evenly spread, tell enough
_FACTORS = (0.1, 0.2, 0.25, 1 / 3, 0.5, 2, 3, 4, 5, 10)  # of rate times steps


class Fit(NamedTuple):
    """How well the audited rows, the messages and the declared training fit.

    Attributes:
      explained: `[C]` percent of the variation of each client's targets that the last
        models explain; NaN where nobody knows.
      misfit: `[C]` of the messages with the true rows, infinite for NaN; None where
        the training is not known or cannot be simulated.
      slip: what would make them fit, in words; empty if nothing that was tried does.
    """

    explained: np.ndarray
    misfit: np.ndarray | None = None
    slip: str = ""


def of_rows(view: AdversaryView, truth: Truth, settings: clients.Settings) -> Fit:
    """Compares the messages with the true rows.

    Args:
      view: of the audited rows.
      truth: about them.
      settings: of the simulation.
    """
    rows, share = _told(view, truth), explained(view, truth)
    if needs.missing(clients.NEEDS, view, settings):
        return Fit(share)
    found = _misfit(rows, settings)
    if np.median(found) <= FITS:
        return Fit(share, found)
    others = {name: _misfit(each, settings) for name, each in _slips(rows)}
    best = min(others, key=lambda name: np.median(others[name]))
    least = np.median(others[best])
    slip = f"they would fit if {best} (misfit {least:.2g})" if least <= FITS else ""
    return Fit(share, found, slip)


def explained(view: AdversaryView, truth: Truth) -> np.ndarray:
    """Percent `[C]` of each client's targets, by the better of two models (`fljax.fit`).

    They are the last one that it was sent, and what it returned of that.

    Args:
      view: of the audited rows.
      truth: about them.
    """
    assert view.transcript is not None and view.messages is not None
    x, y, mask = _told(view, truth).known
    models = views.last_models(view.transcript, view.messages)
    each = [_losses(view.loss_fn, params, x, y, mask) for params in models]
    return fit.explained(np.min(each, axis=0), y, mask, view.task)


def _told(view: AdversaryView, truth: Truth) -> AdversaryView:
    """The view of somebody who knows the sensitive column, and has nothing to infer."""
    block = np.asarray(truth.sensitive)
    if not view.continuous:
        block = np.asarray(view.candidates)[block]
    rows = jnp.asarray(np.atleast_3d(block), jnp.float32)
    every = jax.tree.map(np.asarray, attribute.complete(view.known.public, rows))
    nothing = np.zeros((1, 0), np.float32)
    return view._replace(
        known=view.known._replace(public=every), candidates=nothing, continuous=False
    )


def _misfit(view: AdversaryView, settings: clients.Settings) -> np.ndarray:
    assert view.messages is not None
    least = int(np.min(view.messages.count))
    some = _MESSAGES if least > _MESSAGES else None
    found = clients.infer(view, settings._replace(messages=some)).misfit
    return np.nan_to_num(np.asarray(found), nan=np.inf, posinf=np.inf)


def _slips(view: AdversaryView) -> Iterator[tuple[str, AdversaryView]]:
    """Views of what may have been the case in place of this one, and that in words."""
    seen, known, rate = view.transcript, view.known, view.training.learning_rate
    assert seen is not None and rate is not None
    ahead = jax.tree.map(lambda sent, d: sent[:, None] - d, seen.params, seen.delta)
    moves = {
        "models moved the opposite way": jax.tree.map(np.negative, seen.delta),
        "what was recorded as returned is sent minus returned": ahead,
        "what was recorded as returned is returned minus sent": jax.tree.map(
            np.negative, ahead
        ),
    }
    for name, delta in moves.items():
        yield name, view._replace(transcript=seen._replace(delta=delta))
    for factor in _FACTORS:
        training = view.training._replace(learning_rate=factor * rate)
        name = (
            f"learning rate times local steps is {factor:.3g} times what was declared"
        )
        yield name, view._replace(training=training)
    one = view.training._replace(steps=None, epochs=1)
    for name, training in (("epoch", one), ("step", one._replace(steps=1))):
        if not training.missing and training != view.training:
            told = view._replace(training=training)
            yield f"a round is one local {name} of each client", told
    plain = view.training._replace(optimiser="sgd", momentum=0.0, weight_decay=0.0)
    others = {"plain SGD": plain, "SGD with momentum 0.9": plain._replace(momentum=0.9)}
    for name, training in others.items():
        if training != view.training:
            told = view._replace(training=training)
            yield f"clients use {name}", told
    if view.sees == "messages" and len(view.clients) > 1:
        for name, by in (("before", 1), ("after", -1)):
            rows = jax.tree.map(lambda leaf, by=by: np.roll(leaf, by, axis=0), known)
            name = f"each client has the rows of the one {name} it"
            yield name, view._replace(known=rows, num_rows=None)


@functools.partial(jax.jit, static_argnums=0)
def _losses(loss_fn, *clients) -> jax.Array:
    def one(client):
        params, x, y, mask = client
        batch = Batch(x, jnp.asarray(y), mask)
        return losses.batch_loss(loss_fn, params, batch)

    return jax.lax.map(one, clients)
