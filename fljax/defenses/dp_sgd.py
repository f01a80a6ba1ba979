"""DP-SGD: each example's gradient clipped to a total norm, noise on the sum of a batch.

Abadi et al. (CCS 2016), Algorithm 1, as clients of Diana et al. (AAAI-25, appendix C.4)
run it. With `g_i` the gradient of example i, C the clip and sigma the noise multiplier,
a step uses

    (sum_i g_i min(1, C / |g_i|) + N(0, (sigma C)^2)) / expected rows of a batch.

Guarantees:

* One record changes the sum by at most C (to float32 rounding, 1e-6 of it): rows of
  padding and examples whose gradient has no finite norm contribute exactly zero.
* Noise is drawn for an empty batch as for any other, and independently for each client,
  step and array of parameters, for the engine gives each step of each client its own key.
* The divisor does not depend on the batch drawn. (The authors' library rounds it down to
  a whole number; here it is not rounded.)

The guarantee is that of the Poisson-subsampled Gaussian mechanism if batches are drawn
that way (`schedule.build(..., poisson=True)`) and numbers of rows are public. The mean
loss that a step also returns is for logs and not protected, and normal numbers from a
generator of floats do not withstand who looks at their last bits.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from fljax import losses
from fljax.types import Array, Defense, NoiseSpec


def dp_sgd(
    loss_fn: losses.LossFn,
    *,
    clip: float | Array,
    noise_multiplier: Array,
    sampling_rate: Array,
    batch_size: Array,
) -> Defense:
    """DP-SGD of a federation's clients; all numbers may be traced.

    Args:
      loss_fn: `(params, x, y) -> []` of one example.
      clip: [] C, largest norm of an example's gradient over all parameters.
      noise_multiplier: `[C]` sigma of each client; 0 adds no noise.
      sampling_rate: `[C]` probability of each row of a client to be in a batch.
      batch_size: `[C]` expected rows in a client's batch, the divisor.

    Returns:
      A `Defense` for `local.sgd(..., gradient=defense.gradient)`. Its batches must say
      whose rows they are, as those of the engine do.

    Raises:
      ValueError: for numbers out of range, unless they are traced; the gradient, for a
        batch that does not say whose rows it holds.
    """
    _check("clip", clip, lambda c: (c > 0) & (c < np.inf), "> 0 and finite")
    _check("noise_multiplier", noise_multiplier, lambda s: s >= 0, ">= 0")
    _check("sampling_rate", sampling_rate, lambda q: (q > 0) & (q <= 1), "in (0, 1]")
    _check("batch_size", batch_size, lambda b: b > 0, "> 0")
    noise = NoiseSpec(noise_multiplier, clip, sampling_rate, "add or remove one record")

    def gradient(key, params, batch):
        if batch.client is None:
            raise ValueError("batch.client: expected a client's number, got None")
        total, loss = _clipped_sum(loss_fn, params, batch, noise.sensitivity)
        scale = jnp.asarray(noise.noise_multiplier)[batch.client] * noise.sensitivity
        rows = jnp.asarray(batch_size)[batch.client]
        noisy = jax.tree.map(jnp.add, total, _gaussian(key, params, scale))
        return jax.tree.map(lambda leaf: leaf / rows, noisy), loss

    return Defense(gradient, noise)


def _clipped_sum(loss_fn, params, batch, clip):
    """Sum of the clipped gradients of all examples, and their mean loss."""
    x, y = losses.masked_rows(batch.mask, (batch.x, batch.y))
    each = jax.vmap(jax.value_and_grad(loss_fn), (None, 0, 0))
    values, grads = each(params, x, y)
    squares = jax.tree.map(
        lambda leaf: jnp.sum(jnp.square(leaf.reshape(len(leaf), -1)), axis=1), grads
    )
    norm = jnp.sqrt(jax.tree.reduce(jnp.add, squares))
    counts = batch.mask & jnp.isfinite(norm)
    factor = jnp.where(counts, jnp.minimum(1, clip / norm), 0)
    # A product with full precision, for a rounded one could exceed the clip.
    total = jax.tree.map(
        lambda leaf: jnp.tensordot(factor, leaf, 1, precision="highest"),
        losses.masked_rows(counts, grads),
    )
    return total, losses.masked_mean(values, batch.mask)


def _gaussian(key, params, scale):
    """Noise of standard deviation `scale` in the shape of params, a key per leaf."""
    leaves, treedef = jax.tree.flatten(params)
    return treedef.unflatten(
        [
            scale
            * jax.random.normal(jax.random.fold_in(key, i), leaf.shape, leaf.dtype)
            for i, leaf in enumerate(leaves)
        ]
    )


def _check(name: str, value, holds, expected: str) -> None:
    if isinstance(value, Tracer):
        return
    if not np.all(holds(np.asarray(value))):
        raise ValueError(f"{name} must be {expected}, got {value}")
