"""Noise on what leaves a client, or on its steps, without a promise.

Nothing bounds what it is added to, so that no noise hides it whatever the data: there is
no `NoiseSpec`. These are the plain perturbations that leakage papers compare against
(Zhu et al. 2019, section 5.1; the code of Wei et al. 2020 adds Laplace noise to a
gradient).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from fljax import draws, losses
from fljax.defenses.checks import check_noise
from fljax.defenses.definition import ON, Definition, Number, Setting
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense, Key, PyTree

_EVEN = 64
Sampler = Callable[..., jax.Array]  # (key, shape, dtype) -> noise of scale 1


def like(
    key: Key, tree: PyTree, scale: Array | float, sampler: Sampler = draws.normal
) -> PyTree:
    """Independent noise in the shape of a tree; the key is consumed.

    One draw for the whole tree: a draw per leaf compiles and runs slower. An even number
    is drawn, which changes none of them: XLA deals an array to the threads of a CPU, and
    does not vectorise one of odd length.

    Args:
      key: of this draw.
      tree: arrays.
      scale: [] times a draw of `sampler`.
      sampler: standard normal by default.
    """
    flat, unravel = ravel_pytree(tree)
    count = -(-flat.size // _EVEN) * _EVEN
    drawn = scale * sampler(draws.unrolled(key), (count,), flat.dtype)
    return unravel(jnp.asarray(drawn[: flat.size]))


def gaussian(scale: Array | float) -> Defense:
    """Normal noise of standard deviation `scale` [] on every coordinate of a delta.

    Raises:
      ValueError: for a scale that is negative or not finite.
    """
    return _on_updates("gaussian noise", scale, draws.normal)


def laplace(scale: Array | float) -> Defense:
    """Laplace noise of density `exp(-|x| / scale) / (2 scale)` on every coordinate.

    Its standard deviation is `sqrt(2) scale`.

    Raises:
      ValueError: for a scale that is negative or not finite.
    """
    return _on_updates("laplace noise", scale, jax.random.laplace)


def on_steps(
    loss_fn: losses.LossFn, scale: Array | float, sampler: Sampler = draws.normal
) -> Defense:
    """Noise on the mean gradient of every batch, before the client's optimiser.

    Args:
      loss_fn: `(params, x, y) -> []` of one example.
      scale: [] times a draw of `sampler` on every coordinate.
      sampler: standard normal by default.

    Raises:
      ValueError: for a scale that is negative or not finite.
    """
    check_noise("scale", scale)

    def gradient(key, params, batch):
        loss, found = jax.value_and_grad(losses.batch_loss, 1)(loss_fn, params, batch)
        drawn = like(key, params, scale, sampler)
        return jax.tree.map(jnp.add, found, drawn), loss

    return Defense(gradient=gradient, name="noise on gradients")


def _on_updates(name, scale, sampler) -> Defense:
    check_noise("scale", scale)

    def encode(key, delta, sender):
        del sender
        return jax.tree.map(jnp.add, delta, like(key, delta, scale, sampler))

    return Defense(encode=encode, name=name)


def _build_gaussian(setting: Setting, *, deviation, on) -> Defense:
    if on == "messages":
        return gaussian(deviation)
    return on_steps(setting.loss_fn, deviation)


def _build_laplace(setting: Setting, *, scale, on) -> Defense:
    if on == "messages":
        return laplace(scale)
    return on_steps(setting.loss_fn, scale, jax.random.laplace)


_ACTS = "messages, or local steps"
_PROMISE = "no noise hides an update whose size has no bound"
GAUSSIAN = Definition(
    build=_build_gaussian,
    effects=lambda *, deviation, on: Effects(noise=on, deviation=deviation),
    parameters=(
        Number("deviation", "standard deviation on each coordinate", min=0),
        ON,
    ),
    acts=_ACTS,
    promise=_PROMISE,
)
LAPLACE = Definition(
    build=_build_laplace,
    effects=lambda *, scale, on: Effects(noise=on, deviation=2**0.5 * scale),
    parameters=(
        Number(
            "scale",
            "scale b of the density exp(-|x| / b) / (2 b) on each coordinate; the "
            "standard deviation is sqrt(2) b",
            min=0,
        ),
        ON,
    ),
    acts=_ACTS,
    promise=_PROMISE,
)
