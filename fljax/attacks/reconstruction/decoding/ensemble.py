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
from jax.flatten_util import ravel_pytree

from fljax.attacks.reconstruction.decoding.messages import Messages, Runs
from fljax.attacks.reconstruction.least_squares import matmul
from fljax.types import Array, Key

_SETTLED = 0.6  # share of the iterations after which nothing is loosened any more
_FIRST_NOISE = 0.3  # assumed at the beginning, over the size of the deltas
_BEGIN = 0.5  # share of a draw of the prior that a search begins with
_WIDTH = 0.3  # deviation of the logarithm of an input's own spread
_CAUTION = 1e-8  # at least, of a step


class Simulation(NamedTuple):
    """A client to be learned, of `K` rows of `D` inputs.

    Attributes:
      gradient: `(theta [P], x [D], y []) -> [P]`, of the loss of one row.
      target: what makes a target of the height of a row above the plane.
      rate: learning rate of a local step.
      steps: local steps of a message, at most `most_steps`; may be traced.
      most_steps: at most as many.
      num_rows: `K`.
      num_inputs: `D`.
      spread: standard deviation of the inputs around the offset; each has its own width.
      shared_spread: standard deviation of the offset, which all rows share.
      slope: standard deviation of the coefficients of the plane.
    """

    gradient: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    target: Callable[[jax.Array], jax.Array]
    rate: float
    steps: Array | int
    most_steps: int
    num_rows: int
    num_inputs: int
    spread: float
    shared_spread: float
    slope: float


class Weights(NamedTuple):
    """What is learned of a client, standard normal by the prior.

    Attributes:
      own: `[K, D]` of the inputs of each row.
      offset: `[D]` of what they share.
      width: `[D]` of the logarithm of each input's spread.
      plane: `[D + 1]` of the intercept and the coefficients that make the targets.
      pull: `[P]` of a constant gradient, which counts in the beginning of a search only.
    """

    own: jax.Array
    offset: jax.Array
    width: jax.Array
    plane: jax.Array
    pull: jax.Array


def learn(
    key: Key,
    runs: Runs,
    simulation: Simulation,
    noise: jax.Array,
    *,
    iterations: int,
    count: int,
) -> Weights:
    """The members of an ensemble, leaves `[S, ...]`.

    Args:
      key: consumed.
      runs: messages of the client.
      simulation: what is learned.
      noise: `[Q]` standard deviation of the means of deltas.
      iterations: Levenberg-Marquardt steps of a member.
      count: `S`, the members of the ensemble.
    """

    def member(number):
        own = jax.random.fold_in(key, number)
        return _most_probable(own, runs, simulation, noise, iterations)

    return lax.map(member, jnp.arange(count))


def mean_gradient(
    simulation: Simulation, members: Weights, shares: Array, theta: jax.Array
) -> jax.Array:
    """Mean over the members, with `shares [S]`, of the gradient `[P]` of their loss."""

    def of(weights):
        return _gradient(simulation, *_rows(simulation, weights), theta)

    return _mean(shares, jax.vmap(of)(members))


def mean_update(
    simulation: Simulation, members: Weights, shares: Array, theta: jax.Array
) -> jax.Array:
    """Mean delta `[P]` of the members, with `shares [S]`, for one sent model `[P]`."""
    return _mean(shares, jax.vmap(_update, (None, 0, None))(simulation, members, theta))


def _mean(shares: Array, each: jax.Array) -> jax.Array:
    """Of `each [S, P]`; whoever has no share may be NaN."""
    some = jnp.where(shares[:, None] > 0, each, 0)
    return jnp.tensordot(shares, some, 1) / jnp.sum(shares)


def loss(
    simulation: Simulation, members: Weights, shares: Array, messages: Messages
) -> jax.Array:
    """Mean over the messages of the squared misfit of the members' mean delta, []."""
    sent, delta, mask = messages
    simulated = jax.vmap(lambda t: mean_update(simulation, members, shares, t))(sent)
    off = jnp.where(mask[:, None], simulated - delta, 0)
    return jnp.sum(jnp.square(off)) / jnp.maximum(jnp.sum(mask), 1)


def misfits(
    simulation: Simulation, members: Weights, runs: Runs, noise: jax.Array
) -> jax.Array:
    """Root mean square misfit `[S]` of each member, over the `noise [Q]` of the runs."""

    def square(weights):
        off = _misfit(simulation, weights, runs) / noise[:, None]
        return jnp.sum(jnp.square(off))

    return jnp.sqrt(lax.map(square, members) / _count(runs))


def size(runs: Runs) -> jax.Array:
    """Root mean square [] of the means of deltas; one where all are zero."""
    found = jnp.sqrt(jnp.sum(jnp.square(runs.delta)) / _count(runs))
    return jnp.where(found > 0, found, 1)


def _count(runs: Runs) -> jax.Array:
    return jnp.maximum(jnp.sum(runs.mask), 1) * runs.delta.shape[1]


def _rows(simulation: Simulation, weights: Weights) -> tuple[jax.Array, jax.Array]:
    """Inputs `[K, D]` and targets `[K]`."""
    offset = simulation.shared_spread * weights.offset[None]
    width = simulation.spread * jnp.exp(_WIDTH * weights.width[None])
    inputs = offset + width * weights.own
    height = weights.plane[0] + matmul(inputs, weights.plane[1:])
    return inputs, simulation.target(simulation.slope * height)


def _gradient(simulation: Simulation, inputs, targets, theta) -> jax.Array:
    each = jax.vmap(simulation.gradient, (None, 0, 0))(theta, inputs, targets)
    return jnp.mean(each, axis=0)


def _update(
    simulation: Simulation, weights: Weights, theta, loose: Array | float = 0.0
):
    """Delta `[P]` of the simulated client for one sent model `[P]`."""
    inputs, targets = _rows(simulation, weights)
    pull = loose * weights.pull

    def step(at, number):
        moved = at - simulation.rate * (
            _gradient(simulation, inputs, targets, at) + pull
        )
        return jnp.where(number < simulation.steps, moved, at), None

    return theta - lax.scan(step, theta, jnp.arange(simulation.most_steps))[0]


def _misfit(simulation, weights: Weights, runs: Runs, loose: Array | float = 0.0):
    """Means of simulated deltas minus those observed `[Q, P]`, zero where there is none.

    An update is simulated for every model of a run: updates bend between them.
    """
    update = jax.vmap(_update, (None, None, 0, None))
    each = jax.vmap(update, (None, None, 0, None))(
        simulation, weights, runs.sent, loose
    )
    taken = runs.share[..., None]
    simulated = jnp.sum(jnp.where(taken > 0, taken * each, 0), axis=1)
    return jnp.where(runs.mask[:, None], simulated - runs.delta, 0)


def _zeros(simulation: Simulation, runs: Runs) -> Weights:
    num_inputs, (_, num_params) = simulation.num_inputs, runs.delta.shape
    dtype = runs.delta.dtype
    return Weights(
        own=jnp.zeros((simulation.num_rows, num_inputs), dtype),
        offset=jnp.zeros(num_inputs, dtype),
        width=jnp.zeros(num_inputs, dtype),
        plane=jnp.zeros(num_inputs + 1, dtype),
        pull=jnp.zeros(num_params, dtype),
    )


def _most_probable(key, runs: Runs, simulation, noise, iterations: int) -> Weights:
    """Weights of the least misfit over noise and distance to a draw of the prior.

    The deltas are observed with a draw of the noise. In the beginning more noise and a
    constant gradient are assumed, so that inputs are found before their targets. Misfits
    are of all models of a run; how they change with the weights is taken at their mean.
    """
    flat, unravel = ravel_pytree(_zeros(simulation, runs))
    draw, start, error = (
        jax.random.normal(jax.random.fold_in(key, i), shape, flat.dtype)
        for i, shape in enumerate((flat.shape, flat.shape, runs.delta.shape))
    )
    begin = unravel(_BEGIN * start)._replace(own=unravel(draw).own)
    noise = jnp.broadcast_to(noise[:, None], runs.delta.shape)
    first = jnp.maximum(_FIRST_NOISE * size(runs), noise)
    runs = runs._replace(delta=runs.delta + noise * error)
    noises = first.ravel(), noise.ravel()

    def misfit(weights, loose):
        return _misfit(simulation, unravel(weights), runs, loose).ravel()

    def jacobian(weights, loose):
        def update(weights, theta):
            return _update(simulation, unravel(weights), theta, loose)

        each = jax.vmap(jax.jacrev(update), (None, 0))(weights, runs.centre)
        return jnp.where(runs.mask[:, None, None], each, 0).reshape(-1, len(weights))

    def cost(weights, loose, scale):
        off = misfit(weights, loose) / scale
        return jnp.sum(jnp.square(off)) + jnp.sum(jnp.square(weights - draw))

    def step(carry, share):
        weights, caution = carry
        loose, scale = 1 - share, noises[0] ** (1 - share) * noises[1] ** share
        # As many unknowns as residuals, of which there are fewer than weights.
        slope = jacobian(weights, loose)
        centre = (draw + caution * weights) / (1 + caution)
        inner = matmul(slope, slope.T)
        inner = inner + (1 + caution) * jnp.diag(scale**2)
        off = matmul(slope, weights - centre) - misfit(weights, loose)
        factor = jax.scipy.linalg.cho_factor(inner)
        tried = centre + matmul(slope.T, jax.scipy.linalg.cho_solve(factor, off))
        better = cost(tried, loose, scale) < cost(weights, loose, scale)
        caution = jnp.where(better, jnp.maximum(caution / 4, _CAUTION), caution * 6)
        return (jnp.where(better, tried, weights), caution), None

    shares = np.minimum(np.arange(iterations) / max(_SETTLED * iterations, 1), 1)
    carry = (ravel_pytree(begin)[0], jnp.ones((), flat.dtype))
    found = lax.scan(step, carry, jnp.asarray(shares, flat.dtype))[0][0]
    return unravel(found)
