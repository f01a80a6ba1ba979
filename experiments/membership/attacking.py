"""The attacks on what `wall` lets through: scores of every candidate of every training."""

import functools
from collections.abc import Sequence

import jax
import numpy as np

from experiments.membership.views import Guessed, Observed
from fljax import losses
from fljax.attacks import membership
from fljax.attacks.membership import Ratios

GRADIENT, JOINT = "gradient", "gradient_joint"
LOSS, LIRA, RMIA = "loss_threshold", "lira", "rmia"


def by_gradients(
    observed: Observed, loss_fn: losses.LossFn, share: float
) -> dict[str, np.ndarray]:
    """Attack -> scores `[T, n]`, without any shadow."""
    told = (
        observed.rows, observed.population, observed.weight, share, observed.clips,
    )  # fmt: skip
    found = _ratios(observed.seen, told, loss_fn, observed.clipped)
    return {GRADIENT: np.asarray(found.alone), JOINT: np.asarray(found.joint)}


def by_losses(given: Sequence[Guessed], *, classes: bool) -> dict[str, np.ndarray]:
    """Attack -> scores `[T, n]`."""
    each = [
        {
            LOSS: membership.threshold(one.losses),
            LIRA: membership.lira(one.losses, one.shadows, classes=classes),
            RMIA: membership.rmia(
                one.losses, one.population, one.shadows, classes=classes
            ),
        }
        for one in given
    ]
    return {name: np.stack([one[name] for one in each]) for name in each[0]}


@functools.partial(jax.jit, static_argnums=(2, 3))
def _ratios(seen, told, loss_fn, clipped) -> Ratios:
    rows, population, weight, share, clips = told

    def one(sums):
        return membership.likelihood_ratios(
            sums, rows, population, weight, share, clips,
            loss_fn=loss_fn, clipped=clipped,
        )  # fmt: skip

    return jax.lax.map(one, seen)
