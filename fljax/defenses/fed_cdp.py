"""Fed-CDP: each layer of each example's gradient clipped, noise in every local step.

Wei, Liu, Wu, Su and Iyengar, "Gradient-Leakage Resilient Federated Learning" (ICDCS
2021), Algorithm 2. With B examples in a batch, M layers (arrays of parameters), clip C
and the paper's sigma (`noise_scale`), the modes differ in what is added to the sum of
the clipped gradients before it is divided:

| mode          | layers clipped to | deviation of the noise | multiplier of the guarantee |
|---------------|-------------------|------------------------|-----------------------------|
| `per_example` | C                 | sigma C sqrt(B)        | sigma sqrt(B / M)           |
| `per_batch`   | C                 | sigma C                | sigma / sqrt(M)             |
| `recommended` | C / sqrt(M)       | sigma C                | sigma                       |

`per_example` is the algorithm as printed: N(0, (sigma C)^2) is added to each example. B
such draws have the distribution of one draw of deviation sigma C sqrt(B), which is what
is drawn, several times faster. B is the stated `batch_size` whatever the realised number
of examples, for the guarantee needs a deviation that does not tell how many there were.
`per_batch` is what the authors' code does: one draw, after the mean.

What one record can change is C sqrt(M) where every layer is clipped to C. The paper and
its code count it as C; `recommended` makes that true, and divides by the expected batch
of a Poisson sample as the theorem asks. Fed-CDP(decay) is a clip schedule,
`clipping.linear_decay`; the noise stays in proportion, so that the guarantee is the same.

A client's own steps are all that is counted. That other clients hold copies of a record,
or that a client takes part in some rounds only, is for the accountant.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses
from fljax.defenses import clipping, noise
from fljax.defenses.checks import (
    check_choice,
    check_noise,
    check_positive,
    check_sampling,
    of_client,
)
from fljax.defenses.definition import CLIPPED_AND_NOISY, Choice, Definition, Setting
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense, Key, NoiseSpec, Params, Sampling

Mode = Literal["per_example", "per_batch", "recommended"]
MODES = ("per_example", "per_batch", "recommended")


def fed_cdp(
    loss_fn: losses.LossFn,
    *,
    clip: clipping.Clip,
    noise_scale: float | Array,
    sampling_rate: float | Array,
    batch_size: float | Array,
    num_layers: int,
    mode: Mode = "per_example",
    sampling: Sampling = "poisson",
    num_rounds: int | None = None,
) -> Defense:
    """Fed-CDP of a federation's clients; all numbers may be traced.

    Args:
      loss_fn: `(params, x, y) -> []` of one example.
      clip: [] C, or a schedule `(round) -> C`.
      noise_scale: [] or `[C]` the paper's sigma; 0 adds no noise.
      sampling_rate: [] or `[C]` probability of each of a client's rows to be in a batch.
      batch_size: [] or `[C]` expected rows of a client's batch.
      num_layers: M, `clipping.num_layers(params)`.
      mode: see above.
      sampling: how the batches are made; 'poisson' divides by the expected rows, the
        others by the rows that are there.
      num_rounds: of the run, for which a schedule is checked.

    Returns:
      A `Defense` for `local.sgd(..., gradient=defense.gradient)`.

    Raises:
      ValueError: for numbers out of range, unless they are traced; for the recommended
        mode without Poisson batches; the gradient, for params with other than M arrays.
    """
    check_choice("mode", mode, MODES)
    check_sampling(sampling, sampling_rate)
    if mode == "recommended" and sampling != "poisson":
        raise ValueError(f"sampling must be 'poisson' in mode {mode}, got {sampling!r}")
    check_noise("noise_scale", noise_scale)
    check_positive("batch_size", batch_size)
    check_positive("num_layers", num_layers)
    # Both in units of C: what is drawn, and the most that an example changes a sum.
    deviation = noise_scale * (batch_size**0.5 if mode == "per_example" else 1.0)
    change = _most_change(mode, num_layers)
    adjacency = "put a record without gradient in the place of one record"
    if sampling == "poisson":
        adjacency = "add or remove one record"
    spec = NoiseSpec(
        deviation / change, clipping.largest(clip, num_rounds) * change,
        sampling_rate, adjacency, "record", sampling,
    )  # fmt: skip

    def gradient(key, params, batch):
        clipping.check_layers(params, num_layers)
        size = clipping.at_round(clip, batch.round)
        to_layers = clipping.per_layer(size * change / np.sqrt(num_layers))
        found = clipping.clipped_sum(loss_fn, params, batch, to_layers)
        rows = of_client(batch_size, batch.client)
        scale = of_client(deviation, batch.client) * size
        noisy = jax.tree.map(jnp.add, found.total, noise.like(key, params, scale))
        if sampling != "poisson":
            rows = jnp.maximum(jnp.sum(batch.mask), 1)
        return jax.tree.map(lambda leaf: leaf / rows, noisy), found.loss

    return Defense(gradient=gradient, noise=(spec,), name=f"fed_cdp {mode}")


def sanitise_example(
    key: Key,
    grads: Params,
    *,
    clip: clipping.Clip,
    noise_scale: float | Array,
    mode: Mode,
    round: Array | None = None,
) -> Params:
    """What is left of ONE example's gradient: what an attack of type 2 gets to see.

    In mode `per_example` each layer is clipped and has its noise. In `per_batch` the
    noise comes after the mean, and one example's gradient is only clipped. In
    `recommended` the noise belongs to the sum, too; what is returned is the release of a
    batch that holds this example alone. Who sees into the sum sees clipped gradients.

    Args:
      key: consumed.
      grads: gradient of one example.
      clip: as in `fed_cdp`.
      noise_scale: [] sigma.
      mode: as in `fed_cdp`.
      round: [] for a clip schedule.

    Returns:
      The gradient, clipped and noisy; all zeros before the noise if it was not finite.
    """
    check_choice("mode", mode, MODES)
    check_noise("noise_scale", noise_scale)
    size = clipping.at_round(clip, round)
    layers = clipping.num_layers(grads)
    to_layers = clipping.per_layer(size * _most_change(mode, layers) / np.sqrt(layers))
    found = clipping.clipped(grads, to_layers)
    if mode == "per_batch":
        return found
    return jax.tree.map(jnp.add, found, noise.like(key, found, noise_scale * size))


def _most_change(mode: Mode, num_layers: int) -> float:
    """Of a sum by one example, in units of C: that of layers of `1 / sqrt(M)` times it."""
    return 1.0 if mode == "recommended" else float(np.sqrt(num_layers))


def _build(setting: Setting, *, clip, decay_to, sigma, mode) -> Defense:
    return fed_cdp(
        setting.loss_fn,
        clip=clipping.decaying(clip, decay_to, setting.num_rounds),
        noise_scale=sigma,
        sampling_rate=setting.sampling_rate,
        batch_size=setting.batch_size,
        num_layers=setting.num_layers,
        mode=mode,
        sampling=setting.batches,
        num_rounds=setting.num_rounds,
    )


def _effects(*, clip, decay_to, sigma, mode) -> Effects:
    whole = mode == "recommended"
    return Effects(
        "per_layer",
        clip=clip,
        decay_to=decay_to,
        split=whole,
        noise="sums",
        deviation=sigma,
        each=mode == "per_example",
        expected=whole,
    )


DEFINITION = Definition(
    build=_build,
    effects=_effects,
    parameters=(
        *CLIPPED_AND_NOISY,
        Choice("mode", "noise as printed, as the authors' code, as the theorem", MODES),
    ),
    acts="local steps",
    poisson=("mode", "recommended"),
    clips_examples=True,
)
