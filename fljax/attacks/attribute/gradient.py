"""Gradient-based attribute inference, for ONE client.

Eq. (2) of Diana et al. (AAAI-25), after Lyu & Chen (2021) and Chen et al. (2022): find
the sensitive values whose virtual gradients point where the client's messages point.

Facts of the authors' code that this follows: the virtual gradient is one full-batch
gradient although the client took many steps; the score is the last iterate's; a binary
attribute is relaxed with ONE Gumbel variate instead of the difference of two, which
favours the second value (`noise='gumbel'`; 'logistic' is the textbook relaxation).
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax

from fljax import losses, precision, tree
from fljax.attacks.attribute import row_losses, without_padding
from fljax.types import Exchange, Key, Known

Noise = Literal["gumbel", "logistic"]


class GradientGuess(NamedTuple):
    """Outcome of one gradient-based attack.

    Attributes:
      index: `[N]` int32 inferred candidate of each row, -1 where the evidence is no number.
      logits: `[N, K - 1]` evidence for candidate k + 1 over candidate 0.
      dissimilarity: [] mean over rounds of 1 - cosine, at the last iteration.
    """

    index: jax.Array
    logits: jax.Array
    dissimilarity: jax.Array


@precision.full
def gradient_based(
    key: Key,
    loss_fn: losses.LossFn,
    exchange: Exchange,
    known: Known,
    candidates: jax.Array,
    *,
    num_rounds: jax.Array | int,
    optimiser: optax.GradientTransformation,
    num_iterations: int = 100,
    temperature: float = 1.0,
    noise: Noise = "gumbel",
    present: jax.Array | None = None,
) -> GradientGuess:
    """Matches virtual gradients to the first `num_rounds` messages.

    Args:
      key: consumed.
      loss_fn: the client's loss of one example.
      exchange: its messages `[R, ...]`, oldest first.
      known: its public columns and targets.
      candidates: `[K, W]` encoded candidate values.
      num_rounds: [] messages used, may be traced.
      optimiser: optax transformation on the logits.
      num_iterations: gradient steps.
      temperature: tau of the relaxation.
      noise: for two candidates; more always use Gumbel-softmax.
      present: `[R, N]` weight of each row in a message that is a sum over clients, 0 of
        whose rows it is not; None for all rows alike.

    Returns:
      A `GradientGuess`.
    """
    exchange, known = jax.tree.map(jnp.asarray, (exchange, known))
    known = without_padding(known)
    key_init, key_noise = jax.random.split(key)
    num_rows, num_values = known.y.shape[0], candidates.shape[0]
    logits = jax.random.normal(key_init, (num_rows, num_values - 1))

    def block_of(logits, key):
        return _sample(key, logits, temperature, noise) @ candidates

    def iterate(carry, iteration):
        logits, opt_state = carry
        key = jax.random.fold_in(key_noise, iteration)
        block, pull_back = jax.vjp(lambda u: block_of(u, key), logits)
        loss, slope = _mismatch(loss_fn, exchange, known, block, num_rounds, present)
        updates, opt_state = optimiser.update(pull_back(slope)[0], opt_state, logits)
        return (logits + updates, opt_state), loss

    (logits, _), loss = lax.scan(
        iterate, (logits, optimiser.init(logits)), jnp.arange(num_iterations)
    )
    evidence = jnp.pad(logits, ((0, 0), (1, 0)))
    unknown = jnp.isnan(evidence).any(axis=-1)
    index = jnp.where(unknown, -1, jnp.argmax(evidence, axis=-1)).astype(jnp.int32)
    return GradientGuess(index, logits, loss[-1] / num_rounds)


def _mismatch(loss_fn, exchange, known, block, num_rounds, present=None):
    """Sum over rounds of 1 - cos, and its gradient with respect to `block [N, W]`."""

    def objective(params, block, t):
        each = row_losses(loss_fn, params, known)(block)
        if present is None:
            return losses.masked_mean(each, known.mask)
        weight = jnp.where(known.mask, present[t], 0)
        each = jnp.where(weight > 0, each, 0.0)  # what is no number weighs nothing
        return jnp.sum(weight * each) / jnp.maximum(jnp.sum(weight), 1e-12)

    def add_round(t, carry):
        total, slope = carry
        params = jax.tree.map(lambda leaf: leaf[t], exchange.params)
        target = jax.tree.map(lambda leaf: leaf[t], exchange.delta)
        grad, pull_back = jax.vjp(lambda b: jax.grad(objective)(params, b, t), block)
        # 1e-12 keeps the cosine of a vanished gradient finite.
        size = jnp.maximum(optax.tree.norm(grad), 1e-12)
        scale = size * jnp.maximum(optax.tree.norm(target), 1e-12)
        cosine = tree.dot(grad, target) / scale
        # d(1 - cos) / d grad, to be pulled back to the rows.
        own, other = cosine / jnp.square(size), 1 / scale
        direction = jax.tree.map(lambda g, d: own * g - other * d, grad, target)
        return total + 1 - cosine, slope + pull_back(direction)[0]

    return lax.fori_loop(0, num_rounds, add_round, (0.0, jnp.zeros_like(block)))


def _sample(key, logits, temperature, noise):
    """Straight-through one-hot sample `[N, K]` of the relaxed choice."""
    if logits.shape[-1] == 1:
        draw = jax.random.gumbel if noise == "gumbel" else jax.random.logistic
        soft = jax.nn.sigmoid((logits + draw(key, logits.shape)) / temperature)
        soft = jnp.concatenate([1 - soft, soft], axis=-1)
    else:
        scores = jnp.pad(logits, ((0, 0), (1, 0)))
        scores = scores + jax.random.gumbel(key, scores.shape)
        soft = jax.nn.softmax(scores / temperature)
    hard = jax.nn.one_hot(jnp.argmax(soft, axis=-1), soft.shape[-1])
    return hard + soft - lax.stop_gradient(soft)
