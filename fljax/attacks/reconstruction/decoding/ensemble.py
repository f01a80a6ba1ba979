"""Simulated clients, learned from one client's messages; `simulation` says why.

`learn` gives an ensemble, each member the most probable client for a draw of the prior and a draw
of the noise on the messages. Members spread like the posterior of a linear problem.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax.attacks.reconstruction.decoding import messages as messages_lib
from fljax.attacks.reconstruction.decoding.messages import Messages
from fljax.attacks.reconstruction.least_squares import matmul
from fljax.types import Key

_SETTLED = 0.6  # share of the iterations after which the noise is the estimated one
_FIRST_NOISE = 0.03  # assumed at the beginning, over the size of the deltas
_RATE = 0.1  # deviation of the logarithm of the rate


class Simulation(NamedTuple):
    """A client to be learned, of `K` rows of `W` numbers each.

    Attributes:
      gradient: `(row [W], theta [P]) -> [P]`, of the loss of one row.
      rate: a guess of the learning rate times the local steps.
      mean: `[K, W]` of the rows' prior.
      deviation: `[K, W]`, standard deviations of it.
      shared: `[W]`, standard deviations of an offset that all rows share, on top of it.
    """

    gradient: Callable[[jax.Array, jax.Array], jax.Array]
    rate: float
    mean: np.ndarray
    deviation: np.ndarray
    shared: np.ndarray


class Choice(NamedTuple):
    """One of the floors and one of the widths."""

    floor: jax.Array
    width: jax.Array


def learn(
    key: Key,
    messages: Messages,
    simulation: Simulation,
    choice: Choice,
    *,
    iterations: int,
    count: int,
) -> jax.Array:
    """Weights of the ensemble `[S, K W + 1]`: rows, then the logarithm of the rate.

    Args:
      key: consumed.
      messages: of the client.
      simulation: what is learned.
      choice: floor of the noise and width of the prior.
      iterations: Levenberg-Marquardt steps of a member.
      count: `S`, the members of the ensemble.
    """
    seen = messages_lib.observed(messages)
    end = _assumed(seen, choice)
    noises = jnp.maximum(_FIRST_NOISE * _size(seen), end), end

    def member(number):
        own = jax.random.fold_in(key, number)
        return _most_probable(own, seen, simulation, choice.width, noises, iterations)

    return lax.map(member, jnp.arange(count))


def mean_update(simulation: Simulation, ensemble: jax.Array, theta: jax.Array):
    """Mean delta `[P]` of the ensemble `[S, ...]` for one sent model `[P]`."""
    each = jax.vmap(_update, (None, 0, None))(simulation, ensemble, theta)
    return jnp.mean(each, axis=0)


def loss(simulation: Simulation, ensemble: jax.Array, messages: Messages) -> jax.Array:
    """Mean over the messages of the squared misfit of the ensemble's mean delta, []."""
    sent, delta, mask = messages
    simulated = jax.vmap(lambda theta: mean_update(simulation, ensemble, theta))(sent)
    off = jnp.where(mask[:, None], simulated - delta, 0)
    return jnp.sum(jnp.square(off)) / jnp.maximum(jnp.sum(mask), 1)


def misfits(
    simulation: Simulation, ensemble: jax.Array, messages: Messages, choice: Choice
) -> jax.Array:
    """Root mean square misfit `[S]` of each member, over the noise that was assumed.

    Args:
      simulation: what was learned.
      ensemble: `[S, K W + 1]` from `learn`.
      messages: what it was learned from.
      choice: with which.
    """
    seen = messages_lib.observed(messages)

    def square(weights):
        return jnp.sum(jnp.square(_misfit(simulation, weights, seen)))

    mean = lax.map(square, ensemble) / _count(seen)
    return jnp.sqrt(mean) / _assumed(seen, choice)


def _assumed(messages: Messages, choice: Choice) -> jax.Array:
    """Standard deviation [] of the noise that members are learned with."""
    return jnp.maximum(noise(messages), choice.floor * _size(messages))


def _count(seen: Messages) -> jax.Array:
    return jnp.maximum(jnp.sum(seen.mask), 1) * seen.delta.shape[1]


def _size(seen: Messages) -> jax.Array:
    """Root mean square of the deltas; one where all are zero."""
    size = jnp.sqrt(jnp.sum(jnp.square(seen.delta)) / _count(seen))
    return jnp.where(size > 0, size, 1)


def noise(messages: Messages) -> jax.Array:
    """Standard deviation [] of the noise of a client's deltas.

    What remains of them after a regression on the leading directions of the sent
    models, at most a third as many as messages; at least the rounding of float32.
    """
    sent, delta, mask = messages_lib.observed(messages)
    num_rounds, num_params = sent.shape
    weight = mask.astype(sent.dtype)
    most = min(num_params, max(1, num_rounds // 3))
    keep = jnp.minimum(num_params, jnp.maximum(1, mask.sum() // 3))
    inside = messages_lib.moments(sent, weight).mean
    around = messages_lib.moments(delta, weight).mean
    u = jnp.linalg.svd(weight[:, None] * (sent - inside), full_matrices=False)[0]
    u = jnp.where(jnp.arange(most) < keep, u[:, :most], 0)
    rest = weight[:, None] * (delta - around)
    rest = rest - matmul(u, matmul(u.T, rest))
    freedom = jnp.maximum(weight.sum() - 1 - keep, 1) * num_params
    rounding = float(np.finfo(np.float32).eps) / 4 * jnp.max(jnp.abs(sent))
    return jnp.maximum(jnp.sqrt(jnp.sum(jnp.square(rest)) / freedom), rounding)


def _covariance(simulation: Simulation) -> np.ndarray:
    """`[K W + 1, K W + 1]` of the prior: rows, then the logarithm of the rate."""
    rows = len(simulation.mean)
    own = np.diag(np.square(simulation.deviation).ravel())
    shared = np.diag(np.square(simulation.shared))
    found = np.zeros((len(own) + 1, len(own) + 1))
    found[:-1, :-1] = own + np.kron(np.ones((rows, rows)), shared)
    found[-1, -1] = _RATE**2
    return found


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
    simulated = jax.vmap(lambda theta: _update(simulation, weights, theta))(seen.sent)
    return jnp.where(seen.mask[:, None], simulated - seen.delta, 0)


def _jacobian(simulation, weights, seen: Messages) -> jax.Array:
    """Of the misfit, `[R P, K W + 1]`: each row changes its own summand only."""
    rows, rate = _unpack(simulation, weights)
    by_row = jax.vmap(jax.jacfwd(simulation.gradient), (0, None), 1)  # [P, K, W]
    each = jax.vmap(by_row, (None, 0))(rows, seen.sent) * rate / len(rows)
    whole = jax.vmap(lambda theta: _update(simulation, weights, theta))(seen.sent)
    flat = each.reshape(*seen.sent.shape, -1)
    both = jnp.concatenate([flat, whole[..., None]], axis=-1)
    both = jnp.where(seen.mask[:, None, None], both, 0)
    return both.reshape(-1, both.shape[-1])


class _Prior(NamedTuple):
    """A normal one of flat weights, `mean [M]` and `precision [M, M]`."""

    mean: jax.Array
    precision: jax.Array


def _drawn(key, simulation: Simulation, width, dtype) -> _Prior:
    """The prior of that width, around a draw of it."""
    centre = jnp.asarray(np.append(simulation.mean, np.log(simulation.rate)), dtype)
    covariance = _covariance(simulation)
    unit = jnp.full(centre.shape, width, dtype).at[-1].set(1)  # all but the rate
    root = unit[:, None] * jnp.asarray(np.linalg.cholesky(covariance), dtype)
    precision = jnp.asarray(np.linalg.inv(covariance), dtype) / jnp.outer(unit, unit)
    draw = matmul(root, jax.random.normal(key, centre.shape, dtype))
    return _Prior(centre + draw, precision)


def _most_probable(
    key, seen: Messages, simulation, width, noises, iterations
) -> jax.Array:
    """Weights of the least misfit over noise and distance to the mean by the prior.

    The mean is a draw of the prior, and the deltas are observed with one of the noise.
    """
    begin, end = noises
    dtype = seen.sent.dtype
    draws = [jax.random.fold_in(key, i) for i in range(2)]
    prior = _drawn(draws[0], simulation, width, dtype)
    error = end * jax.random.normal(draws[1], seen.delta.shape, dtype)
    seen = seen._replace(delta=seen.delta + error)

    def cost(weights, scale):
        off = _misfit(simulation, weights, seen) / scale
        away = weights - prior.mean
        return jnp.sum(jnp.square(off)) + jnp.sum(away * matmul(prior.precision, away))

    def step(carry, share):
        weights, caution = carry
        scale = begin ** (1 - share) * end**share
        jacobian = _jacobian(simulation, weights, seen) / scale
        off = _misfit(simulation, weights, seen).ravel() / scale
        pull = matmul(prior.precision, weights - prior.mean)
        gradient = matmul(jacobian.T, off) + pull
        curvature = matmul(jacobian.T, jacobian) + prior.precision
        curvature = curvature + caution * jnp.diag(jnp.diag(prior.precision))
        factor = jax.scipy.linalg.cho_factor(curvature)
        tried = weights - jax.scipy.linalg.cho_solve(factor, gradient)
        better = cost(tried, scale) < cost(weights, scale)
        caution = jnp.where(better, caution / 4, caution * 6)
        return (jnp.where(better, tried, weights), caution), None

    shares = np.minimum(np.arange(iterations) / max(_SETTLED * iterations, 1), 1)
    carry = (prior.mean, jnp.full((), 10.0, dtype))
    return lax.scan(step, carry, jnp.asarray(shares, dtype))[0][0]
