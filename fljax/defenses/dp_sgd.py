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
generator of floats do not withstand who looks at their last bits. They end at 9.15
deviations (`fljax.draws.normal`): a record that moves one coordinate by all of C makes a
sum that is none without it with a probability of about Phi(1 / sigma - 9.15) a step, which
no delta counts: 2e-16 at sigma = 1, 4e-13 at 0.5, 3e-9 at 0.3.
"""

import jax
import jax.numpy as jnp

from fljax import losses
from fljax.defenses import clipping, noise
from fljax.defenses.checks import check_noise, check_positive, check_rate, of_client
from fljax.defenses.definition import CLIPPED_AND_NOISY, Definition, Setting
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense, NoiseSpec


def dp_sgd(
    loss_fn: losses.LossFn,
    *,
    clip: clipping.Clip,
    noise_multiplier: Array | float,
    sampling_rate: Array | float,
    batch_size: Array | float,
    num_rounds: int | None = None,
) -> Defense:
    """DP-SGD of a federation's clients; all numbers may be traced.

    Args:
      loss_fn: `(params, x, y) -> []` of one example.
      clip: [] C, largest norm of an example's gradient over all parameters; or a
        schedule `(round) -> C`, to which the noise is in proportion.
      noise_multiplier: [] or `[C]` sigma of each client; 0 adds no noise.
      sampling_rate: [] or `[C]` probability of each row of a client to be in a batch.
      batch_size: [] or `[C]` expected rows in a client's batch, the divisor.
      num_rounds: of the run, for which a schedule is checked.

    Returns:
      A `Defense` for `local.sgd(..., gradient=defense.gradient)`. Its batches must say
      whose rows they are, as those of the engine do.

    Raises:
      ValueError: for numbers out of range, unless they are traced; the gradient, for a
        batch that does not say whose rows it holds.
    """
    sensitivity = clipping.largest(clip, num_rounds)
    check_noise("noise_multiplier", noise_multiplier)
    check_rate("sampling_rate", sampling_rate)
    check_positive("batch_size", batch_size)
    spec = NoiseSpec(
        noise_multiplier, sensitivity, sampling_rate, "add or remove one record"
    )

    def gradient(key, params, batch):
        size = clipping.at_round(clip, batch.round)
        found = clipping.clipped_sum(loss_fn, params, batch, clipping.total(size))
        scale = of_client(spec.noise_multiplier, batch.client) * size
        rows = of_client(batch_size, batch.client)
        noisy = jax.tree.map(jnp.add, found.total, noise.like(key, params, scale))
        return jax.tree.map(lambda leaf: leaf / rows, noisy), found.loss

    return Defense(gradient=gradient, noise=(spec,), name="dp_sgd")


def _build(setting: Setting, *, clip, decay_to, sigma) -> Defense:
    return dp_sgd(
        setting.loss_fn,
        clip=clipping.decaying(clip, decay_to, setting.num_rounds),
        noise_multiplier=sigma,
        sampling_rate=setting.sampling_rate,
        batch_size=setting.batch_size,
        num_rounds=setting.num_rounds,
    )


def _effects(*, clip, decay_to, sigma) -> Effects:
    return Effects(
        "total",
        clip=clip,
        decay_to=decay_to,
        noise="sums",
        deviation=sigma,
        expected=True,
    )


DEFINITION = Definition(
    build=_build,
    effects=_effects,
    parameters=CLIPPED_AND_NOISY,
    acts="local steps",
    poisson=True,
    clips_examples=True,
)
