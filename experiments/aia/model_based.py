"""Model-based attacks of a run: with which model, on whom, and how well they did.

Guesses come from `Victims.attacker`, which has no truth; what is computed here with the truth is
only the score and the loss that Proposition 1 needs.
"""

import functools

import jax
import numpy as np

from experiments.aia import scoring
from experiments.aia.scene import Kind, Prepared, Scene, Victims
from fljax import losses
from fljax.attacks.attribute import complete
from fljax.results import Row
from fljax.transcript import views
from fljax.types import Batch, Params


def attack(victims: Victims, name: str, setting: str, params: Params) -> list[Row]:
    """Attacks every client with her model, leaves `[seeds, C, ...]`, and scores it.

    Beside every result of a linear regression stands Proposition 1's bound.
    """
    guess = victims.attacker(params, victims.known, victims.candidates)
    rows = scoring.guesses(victims.labels, name, setting, guess, victims.goal)
    if victims.linear and victims.kind == "binary":
        (layer,) = params.values()
        # The sensitive column is the last numeric one.
        last = victims.known.public.numeric.shape[-1]
        weight = np.asarray(layer["kernel"])[..., last, 0]
        gap = victims.candidates[:, 1] - victims.candidates[:, 0]
        rows += scoring.bounds(
            victims.labels,
            name,
            setting,
            weight,
            np.broadcast_to(gap, weight.shape),
            mean_loss(victims, params),
            victims.goal,
        )
    return rows


def mean_loss(victims: Victims, params: Params) -> np.ndarray:
    """Loss `[seeds, C]` of each model on its victim's true rows."""
    truth = victims.goal.truth
    if victims.kind == "continuous":
        block = truth[..., None]
    else:
        block = np.stack(
            [values[index] for values, index in zip(victims.candidates, truth)]
        )
    return np.asarray(
        _mean_losses(victims.problem.loss_fn, params, victims.known, block)
    )


@functools.partial(jax.jit, static_argnums=0)  # here, so that it compiles once
def _mean_losses(loss_fn, params, known, block):
    def one(item):
        params, known, block = item
        batch = Batch(complete(known.public, block), known.y, known.mask)
        return losses.batch_loss(loss_fn, params, batch)

    def clients(items):
        return jax.lax.map(one, items)

    return jax.lax.map(clients, (params, known, block))


def _check(prepared: Prepared) -> None:
    del prepared  # every model can be attacked


def _rows(scene: Scene) -> list[Row]:
    """With the client's last model and with the last global one that she was sent."""
    returned, sent = views.last_models(scene.seen, scene.view)
    return [
        *attack(scene.victims, "model", "passive", returned),
        *attack(scene.victims, "model_global", "passive", sent),
    ]


KIND = Kind(_check, _rows)
