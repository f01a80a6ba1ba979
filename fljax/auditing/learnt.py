"""How much the models that clients sent and were sent explain of their targets."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize, special

from fljax import fit, losses
from fljax.attacks.adversary import AdversaryView
from fljax.transcript import views
from fljax.types import Batch


def explained(view: AdversaryView) -> np.ndarray:
    """Percent `[C]` of each client's targets, by the better of two models (`fljax.fit`).

    They are the last one that it was sent, and what it returned of that.

    Args:
      view: from `fits.knowing_the_truth`.
    """
    assert view.transcript is not None and view.messages is not None
    x, y, mask = view.known
    models = views.last_models(view.transcript, view.messages)
    each = [_losses(view.loss_fn, params, x, y, mask) for params in models]
    least = None
    if not view.usual_loss:
        shown = getattr(view.loss_fn, "element_loss", None)
        rows = zip(np.asarray(y), np.asarray(mask), strict=True)
        least = [of_constant(shown, mine[kept], view.outputs) for mine, kept in rows]
    return fit.explained(np.min(each, axis=0), y, mask, view.task, least)


def of_constant(loss: object, y: np.ndarray, outputs: int) -> float:
    """Mean loss of the best constant output on targets `[n]`; NaN of a loss of one's own.

    Args:
      loss: of an output.
      y: numbers or classes.
      outputs: of the model.
    """
    if loss is losses.absolute:
        return float(np.abs(y - np.median(y)).mean())
    if isinstance(loss, losses.Huber):
        return _of_constant_huber(loss.delta, y)
    if isinstance(loss, losses.WeightedLogistic):
        weights = np.array([loss.pos_weight * np.mean(y), 1 - np.mean(y)])
        whole = weights.sum()
        return float(whole * special.entr(weights / whole).sum())
    if isinstance(loss, losses.SmoothedCrossEntropy):
        share = np.bincount(y, minlength=outputs) / len(y)
        share += loss.label_smoothing * (1 / outputs - share)
        return float(special.entr(share).sum())
    return float("nan")


def _of_constant_huber(delta: float, y: np.ndarray) -> float:
    def mean(output: float) -> float:
        return special.huber(delta, y - output).mean()

    ends = float(y.min()), float(y.max())
    found: Any = optimize.minimize_scalar(mean, bounds=ends, method="bounded")
    return float(found.fun)


@functools.partial(jax.jit, static_argnums=0)
def _losses(loss_fn, *clients) -> jax.Array:
    def one(client):
        params, x, y, mask = client
        batch = Batch(x, jnp.asarray(y), mask)
        return losses.batch_loss(loss_fn, params, batch)

    return jax.lax.map(one, clients)
