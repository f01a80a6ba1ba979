"""What the last models explain of the rows: scores' side, where the truth is known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from fljax import fit, losses
from fljax.attacks import attribute
from fljax.attacks.adversary import AdversaryView
from fljax.auditing.truth import Truth
from fljax.transcript import views
from fljax.types import Batch


def explained(view: AdversaryView, truth: Truth) -> np.ndarray:
    """Percent `[C]` of each client's targets, by the better of two models (`fljax.fit`).

    They are the last one that it was sent, and what it returned of that.

    Args:
      view: of the audited rows.
      truth: about them.
    """
    assert view.transcript is not None and view.messages is not None
    block = np.asarray(truth.sensitive)
    if not view.continuous:
        block = np.asarray(view.candidates)[block]
    rows = np.atleast_3d(block).astype(np.float32)
    known = view.known
    models = views.last_models(view.transcript, view.messages)
    each = [
        _losses(view.loss_fn, params, known.public, rows, known.y, known.mask)
        for params in models
    ]
    return fit.explained(np.min(each, axis=0), known.y, known.mask, view.task)


@functools.partial(jax.jit, static_argnums=0)
def _losses(loss_fn, *clients) -> jax.Array:
    def one(client):
        params, public, block, y, mask = client
        batch = Batch(attribute.complete(public, block), jnp.asarray(y), mask)
        return losses.batch_loss(loss_fn, params, batch)

    return jax.lax.map(one, clients)
