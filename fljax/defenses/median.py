"""Each layer of each example's gradient clipped to the median norm in its batch.

The clip is a function of the batch, so that neither the clipped sum nor the deviation of
the noise has a bound that holds for all data: there is NO differential privacy here and
no `NoiseSpec`, however large the noise.
"""

import jax
import jax.numpy as jnp

from fljax import losses
from fljax.defenses import clipping, noise
from fljax.defenses.checks import check_noise
from fljax.defenses.definition import Definition, Number, Setting
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense


def median_clipping(
    loss_fn: losses.LossFn, *, noise_deviation: float | Array = 0.0
) -> Defense:
    """A step on the mean of gradients clipped to their batch's median norm.

    Args:
      loss_fn: `(params, x, y) -> []` of one example.
      noise_deviation: [] of the normal noise that is added once to the sum; traceable.

    Raises:
      ValueError: for a deviation that is negative or not finite.
    """
    check_noise("noise_deviation", noise_deviation)

    def gradient(key, params, batch):
        found = clipping.clipped_sum(loss_fn, params, batch, clipping.median())
        drawn = noise.like(key, params, noise_deviation)
        noisy = jax.tree.map(jnp.add, found.total, drawn)
        rows = jnp.maximum(jnp.sum(batch.mask), 1)
        return jax.tree.map(lambda leaf: leaf / rows, noisy), found.loss

    return Defense(gradient=gradient, name="median clipping")


def _build(setting: Setting, *, deviation) -> Defense:
    return median_clipping(setting.loss_fn, noise_deviation=deviation)


def _effects(*, deviation) -> Effects:
    return Effects("median", noise="sums", deviation=deviation)


DEFINITION = Definition(
    build=_build,
    effects=_effects,
    parameters=(
        Number(
            "deviation",
            "standard deviation of the normal noise on the sum of a batch",
            default=0.0,
            min=0,
        ),
    ),
    acts="local steps",
    promise="the clip depends on the examples, so that nothing has a bound",
    clips_examples=True,
)
