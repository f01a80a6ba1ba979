"""A mapping that is itself a client: a few rows, learned from the messages.

Not from a paper. Algorithm 3 of Xu & Neglia (2021) lets the adversary know the model,
the loss and how clients train, and its multilayer perceptron uses none of it. Here
`G(w, theta)` is the local update of a client whose rows `w` are unknown: a rate times
the gradient of the mean loss over `K` inputs with soft targets. Such a mapping is the
gradient of a function, saturates where the loss does, and has one zero where the loss
is strictly convex; `K` rows of a Gaussian prior stand in for what the messages do not
tell. So few or noisy messages still give a curvature in every direction, where a
regression has none.

1. The noise of a client's deltas is estimated from what smooth trends leave, at least
   the rounding of the messages and `floor` times their size: mini-batches are noisy.
2. Rows, targets and rate are the most probable ones given messages and prior, by
   Levenberg-Marquardt steps; the assumed noise falls to the estimated one on the way.
3. The decoded model solves `G(w, theta) / rate + damping (theta - last sent) = 0` by
   Newton steps of bounded length. The damping keeps it near what was observed, which
   matters where classes are separable and the optimum is at infinity.

Local steps are not unrolled: several act like one of their summed rate as long as a
round moves little, and the zero stays that of the loss.

The cost grows with `R P M^2` for `M = K (inputs + 1) + 1` weights: meant for models of
up to about a hundred parameters. Give it float64: noise-free messages span many orders.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax.attacks.decoding import messages as messages_lib
from fljax.attacks.decoding.messages import Decoded, Messages, matmul
from fljax.losses import LossFn
from fljax.types import Key, Params

_SETTLED = 0.6  # share of the iterations after which the noise is the estimated one
_FIRST_NOISE = 0.03  # assumed at the beginning, over the size of the deltas
_LONGEST = 1.0  # Newton step in the space of parameters
_NEWTON = 60
_TARGETS = 3.0  # deviation of the free numbers behind the targets
_RATE = 0.1  # deviation of the logarithm of the rate


class Simulation(NamedTuple):
    """A client to be learned, of `K` rows of `W` numbers each.

    Attributes:
      gradient: `(row [W], theta [P]) -> [P]`, of the loss of one row.
      rate: a guess of the learning rate times the local steps.
      mean: `[K, W]` of the rows' prior.
      deviation: `[K, W]`, standard deviations of it.
      scatter: `[K, W]`, standard deviations of where the search begins.
    """

    gradient: Callable[[jax.Array, jax.Array], jax.Array]
    rate: float
    mean: np.ndarray
    deviation: np.ndarray
    scatter: np.ndarray


class Settings(NamedTuple):
    """How a simulation is fitted and decoded.

    Attributes:
      iterations: Levenberg-Marquardt steps.
      floor: least noise that is assumed, over the size of the deltas.
      damping: pull towards the last model that was sent, in units of the curvature.
    """

    iterations: int = 30
    floor: float = 1e-3
    damping: float = 1e-2


def simulated_client(
    loss_fn: LossFn,
    unravel: Callable[[jax.Array], Params],
    num_inputs: int,
    *,
    rate: float,
    num_rows: int = 20,
    target: Callable[[jax.Array], jax.Array] = jax.nn.sigmoid,
    spread: float = 1.5,
) -> Simulation:
    """A client of `num_rows` learned rows.

    Args:
      loss_fn: `(params, x [num_inputs], y []) -> []`, the loss of the training.
      unravel: `[P] -> params`.
      num_inputs: inputs of a row.
      rate: learning rate times local steps; a guess, which is refined.
      num_rows: `K`.
      target: what makes a target of a free number; the identity for regression.
      spread: standard deviation of the inputs' prior, whose mean is zero.

    Returns:
      A `Simulation`.
    """

    def loss(theta, row):
        return loss_fn(unravel(theta), row[:-1], target(row[-1]))

    def gradient(row, theta):
        return jax.grad(loss)(theta, row)

    def table(inputs, last):
        return np.tile(np.append(np.full(num_inputs, inputs), last), (num_rows, 1))

    # Rows must differ at first; targets begin where their prior is.
    prior = table(0.0, 0.0), table(spread, _TARGETS), table(0.7 * spread, 0.0)
    return Simulation(gradient, rate, *prior)


def simulated(
    key: Key,
    messages: Messages,
    simulation: Simulation,
    *,
    settings: Settings | None = None,
    rcond: float | None = None,
) -> Decoded:
    """Learns the rows of ONE client and decodes her local optimum.

    Args:
      key: consumed.
      messages: of the client.
      simulation: from `simulated_client`.
      settings: None for the default ones.
      rcond: cut-off of the directions that are counted, as in `affine`.

    Returns:
      A `Decoded`; where it is not determined the prior of the rows decides, too.
    """
    how = settings or Settings()
    if rcond is None:
        rcond = messages_lib.default_rcond(messages)
    rank, singular_values = messages_lib.directions(messages, rcond)
    seen = messages_lib.observed(messages)
    count = jnp.maximum(jnp.sum(seen.mask), 1)
    size = jnp.sqrt(jnp.sum(jnp.square(seen.delta)) / (count * seen.delta.shape[1]))
    size = jnp.where(size > 0, size, 1)
    end = jnp.maximum(noise(seen), how.floor * size)
    begin = jnp.maximum(_FIRST_NOISE * size, end)

    weights = _most_probable(key, seen, simulation, (begin, end), how.iterations)
    last = jnp.max(jnp.where(seen.mask, jnp.arange(seen.mask.shape[0]), 0))
    estimate = _zero(simulation, weights, seen.sent[last], how.damping)
    return Decoded(
        estimate=estimate,
        loss=jnp.sum(jnp.square(_misfit(simulation, weights, seen))) / count,
        left=jnp.linalg.norm(_update(simulation, weights, estimate)),
        rank=rank,
        singular_values=singular_values,
        determined=rank == seen.sent.shape[1],
    )


def noise(messages: Messages) -> jax.Array:
    """Standard deviation [] of the noise of a client's deltas.

    What remains of them after a regression on the leading directions of the sent
    models, at most a third as many as messages; at least the rounding of float32.
    """
    sent, delta, mask = messages_lib.observed(messages)
    num_rounds, num_params = sent.shape
    weight = mask.astype(sent.dtype)
    keep = min(num_params, max(1, num_rounds // 3))
    inside = messages_lib.moments(sent, weight).mean
    around = messages_lib.moments(delta, weight).mean
    u = jnp.linalg.svd(weight[:, None] * (sent - inside), full_matrices=False)[0]
    rest = weight[:, None] * (delta - around)
    rest = rest - u[:, :keep] @ (u[:, :keep].T @ rest)
    freedom = jnp.maximum(weight.sum() - 1 - keep, 1) * num_params
    rounding = float(np.finfo(np.float32).eps) / 4 * jnp.max(jnp.abs(sent))
    return jnp.maximum(jnp.sqrt(jnp.sum(jnp.square(rest)) / freedom), rounding)


def _unpack(simulation, weights) -> tuple[jax.Array, jax.Array]:
    """Rows `[K, W]` and rate [] of flat weights `[K W + 1]`."""
    return weights[:-1].reshape(simulation.mean.shape), jnp.exp(weights[-1])


def _update(simulation, weights, theta) -> jax.Array:
    """Delta `[P]` of the simulated client for one sent model `[P]`."""
    rows, rate = _unpack(simulation, weights)
    each = jax.vmap(simulation.gradient, (0, None))(rows, theta)
    return rate * jnp.mean(each, axis=0)


def _misfit(simulation, weights, seen: Messages) -> jax.Array:
    """Simulated minus observed deltas `[R, P]`, zero where there is none."""
    found = jax.vmap(lambda theta: _update(simulation, weights, theta))(seen.sent)
    return jnp.where(seen.mask[:, None], found - seen.delta, 0)


def _jacobian(simulation, weights, seen: Messages) -> jax.Array:
    """Of the misfit, `[R P, K W + 1]`: each row changes her own summand only."""
    rows, rate = _unpack(simulation, weights)
    by_row = jax.vmap(jax.jacfwd(simulation.gradient), (0, None), 1)  # [P, K, W]
    each = jax.vmap(by_row, (None, 0))(rows, seen.sent) * rate / len(rows)
    whole = jax.vmap(lambda theta: _update(simulation, weights, theta))(seen.sent)
    flat = each.reshape(*seen.sent.shape, -1)
    both = jnp.concatenate([flat, whole[..., None]], axis=-1)
    both = jnp.where(seen.mask[:, None, None], both, 0)
    return both.reshape(-1, both.shape[-1])


def _most_probable(key, seen: Messages, simulation, noises, iterations) -> jax.Array:
    """Weights of the least `|misfit / noise|^2 + |weights - mean|^2 / deviation^2`."""
    begin, end = noises
    dtype = seen.sent.dtype
    mean = jnp.asarray(np.append(simulation.mean, np.log(simulation.rate)), dtype)
    deviation = np.append(simulation.deviation, _RATE)
    precision = jnp.asarray(deviation**-2.0, dtype)
    scatter = jnp.asarray(np.append(simulation.scatter, 0.0), dtype)
    start = mean + scatter * jax.random.normal(key, mean.shape, dtype)

    def cost(weights, scale):
        off = _misfit(simulation, weights, seen) / scale
        prior = jnp.sum(precision * jnp.square(weights - mean))
        return jnp.sum(jnp.square(off)) + prior

    def step(carry, share):
        weights, caution = carry
        scale = begin ** (1 - share) * end**share
        jacobian = _jacobian(simulation, weights, seen) / scale
        off = _misfit(simulation, weights, seen).ravel() / scale
        gradient = matmul(jacobian.T, off) + precision * (weights - mean)
        curvature = matmul(jacobian.T, jacobian)
        curvature = curvature + jnp.diag(precision * (1 + caution))
        factor = jax.scipy.linalg.cho_factor(curvature)
        tried = weights - jax.scipy.linalg.cho_solve(factor, gradient)
        better = cost(tried, scale) < cost(weights, scale)
        caution = jnp.where(better, caution / 4, caution * 6)
        return (jnp.where(better, tried, weights), caution), None

    shares = np.minimum(np.arange(iterations) / max(_SETTLED * iterations, 1), 1)
    carry = (start, jnp.full((), 10.0, dtype))
    return lax.scan(step, carry, jnp.asarray(shares, dtype))[0][0]


def _zero(simulation, weights, anchor, damping: float) -> jax.Array:
    """Where the simulated client, pulled to the anchor, would stay."""
    rate = _unpack(simulation, weights)[1]

    def field(theta):
        return _update(simulation, weights, theta) / rate + damping * (theta - anchor)

    def step(_, theta):
        move = jnp.linalg.solve(jax.jacfwd(field)(theta), field(theta))
        length = jnp.linalg.norm(move)
        move = move * jnp.minimum(1, _LONGEST / jnp.maximum(length, _LONGEST))
        return theta - jnp.where(jnp.isfinite(move), move, 0)

    return lax.fori_loop(0, _NEWTON, step, anchor)
