"""Posterior label distributions, as the shadow clients' messages teach them (fljax).

Not in the paper. Numbers r that are read of a message (`fusion.read`) are taken for linear in
the label distribution z, with Gaussian noise, whatever it comes from,

    r = b + z A + e,    e ~ N(0, S),

of which the shadow clients teach b, A and S; correlations that so few of them would show
by chance count as none. Before any message z follows the mixture of
Dirichlet distributions that the shadow clients were drawn from. The estimate is the mean of
z given r: under much noise it goes to the mean distribution, where least squares
(`fusion`) follow the noise, and it knows that most clients have few labels or all of them.

It is sampled by sequential Monte Carlo (Del Moral, Doucet and Jasra, "Sequential Monte Carlo
samplers", 2006): particles of the prior, into which the likelihood comes by powers that
keep half of them effective, each time resampled and moved along differences of two of them
(ter Braak, "A Markov chain Monte Carlo version of the genetic algorithm differential
evolution", 2006).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammaln, logsumexp

from fljax import precision
from fljax.types import Array, Key

_PARTICLES, _MOVES, _STAGES = 1024, 3, 40
_EFFECTIVE = 0.5  # share of the particles
_ALIKE, _APART = (
    1e4,
    1e-2,
)  # concentrations of clients that are all alike, or of one label
_TINY, _EXACT = 1e-6, 1e-9  # of the largest singular value; of a variance


class Posterior(NamedTuple):
    """What is learned: `numbers @ weights - offset = z @ along + N(0, I)`.

    Attributes:
      weights: `[F, K]`, 0 where less is learned.
      offset: `[K]`.
      along: `[K, K]`.
      concentrations: `[A]` of the Dirichlet distributions, equally many clients of each.
    """

    weights: Array
    offset: Array
    along: Array
    concentrations: Array


def fit(numbers: Array, labels: Array, groups: int) -> Posterior:
    """Learns from shadow clients.

    Args:
      numbers: `[n, F]` of their messages; those of a training that diverged are left out.
      labels: `[n, K]` their label distributions.
      groups: A, concentrations that they were drawn with, in turn.
    """
    r, z = np.asarray(numbers, np.float64), np.asarray(labels, np.float64)
    told = np.isfinite(r).all(axis=1)
    concentrations = _concentrations(z, groups)
    if not told.any():
        nothing = np.zeros((r.shape[1], 0)), np.zeros(0), np.zeros((z.shape[1], 0))
        return _posterior(nothing, concentrations)
    r, z = r[told], z[told]
    centre, mean = r.mean(axis=0), z.mean(axis=0)
    (white_r, of_r), (white_z, of_z) = _white(r - centre), _white(z - mean)
    left, correlation, right = np.linalg.svd(white_r.T @ white_z, full_matrices=False)
    searched = white_r.shape[1] + white_z.shape[1]
    unexplained = _unexplained(correlation, len(r), searched)
    kept = unexplained < 1
    noise = np.sqrt(unexplained[kept])
    weights = of_r @ left[:, kept] / noise
    along = of_z @ right[kept].T * np.sqrt(1 - noise**2) / noise
    offset = centre @ weights - mean @ along
    return _posterior((weights, offset, along), concentrations)


def _posterior(
    learned: tuple[np.ndarray, ...], concentrations: np.ndarray
) -> Posterior:
    """Of whatever was learned in one shape, for which one program is compiled."""
    missing = learned[2].shape[0] - learned[2].shape[1]
    each = [
        np.pad(leaf, [(0, 0)] * (leaf.ndim - 1) + [(0, missing)]) for leaf in learned
    ]
    found = (*each, concentrations)
    return Posterior(*(jnp.asarray(leaf, jnp.float32) for leaf in found))


def _white(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal columns `[n, m]`, and what makes numbers of unit variance, `[F, m]`."""
    deviation = centred.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1)
    left, values, right = np.linalg.svd(centred / scale, full_matrices=False)
    kept = values > _TINY * values[0]
    back = right[kept].T / values[kept] * np.sqrt(len(centred))
    return left[:, kept], back / scale[:, None]


def _unexplained(correlation: np.ndarray, count: int, searched: int) -> np.ndarray:
    """Shares of variance that clients who were not learned from will have, at most 1.

    Of so many clients by Lord ("Efficiency of prediction when a regression equation from
    one sample is used in a new sample", 1950), where canonical correlations have searched
    as many directions as there are on both sides. Fewer clients than those teach nothing.
    """
    seen = np.maximum(1 - correlation**2, _EXACT)
    left = max(count - searched - 1, _EXACT)
    return np.minimum(seen * (count + searched + 1) / left, 1)


def _concentrations(z: np.ndarray, groups: int) -> np.ndarray:
    """By the mean squares of the shares, which few rows of a client spread as well."""
    groups = min(groups, len(z))
    count = z.shape[1]
    squares = np.array([(z[g::groups] ** 2).sum(axis=1).mean() for g in range(groups)])
    with np.errstate(divide="ignore"):
        found = (1 - squares) / np.maximum(count * squares - 1, 0)
    return np.clip(found, _APART, _ALIKE)


@jax.jit
@precision.full
def predict(key: Key, posterior: Posterior, numbers: Array) -> jax.Array:
    """Mean distributions `[n, K]` of clients with these numbers `[n, F]`.

    Args:
      key: the same for every client, so that others do not matter.
      posterior: from `fit`.
      numbers: of a client; where one is no number its distribution is uniform.
    """
    seen = jnp.matmul(jnp.asarray(numbers), posterior.weights) - posterior.offset[None]
    told = jnp.isfinite(seen).all(axis=1)
    each = functools.partial(_mean, key, posterior)
    found = jax.vmap(each)(jnp.where(told[:, None], seen, 0))
    return jnp.where(told[:, None], found, 1 / found.shape[1])


def _mean(key: Key, posterior: Posterior, seen: jax.Array) -> jax.Array:
    """Of one client, `[K]`."""
    along = jnp.asarray(posterior.along)
    concentrations = jnp.asarray(posterior.concentrations)

    def likelihood(logits):
        left = seen - jax.nn.softmax(_whole(logits)) @ along
        return -0.5 * jnp.sum(left**2)

    def prior(logits):
        """Density of logits, whose change of volume is the product of the shares."""
        total = jnp.sum(jax.nn.log_softmax(_whole(logits)))
        count = len(along)
        each = gammaln(count * concentrations) - count * gammaln(concentrations)
        return logsumexp(each + concentrations * total)

    def stage(state):
        power, logits, number = state
        own = jax.random.fold_in(key, number)
        fit_ = jax.vmap(likelihood)(logits)
        power, weight = _next_power(power, fit_)
        logits = _resampled(jax.random.fold_in(own, 0), logits, weight)

        def density(at):
            return power * likelihood(at) + prior(at)

        moved = _moved(jax.random.fold_in(own, 1), logits, jax.vmap(density))
        return power, moved, number + 1

    first = _drawn(key, concentrations, len(along))
    state = jnp.zeros(()), first, jnp.zeros((), jnp.int32)
    _, logits, _ = lax.while_loop(lambda s: (s[0] < 1) & (s[2] < _STAGES), stage, state)
    return jnp.mean(jax.nn.softmax(jax.vmap(_whole)(logits)), axis=0)


def _whole(logits: jax.Array) -> jax.Array:
    """The last label's is 0."""
    return jnp.append(logits, 0.0)


def _drawn(key: Key, concentrations: jax.Array, count: int) -> jax.Array:
    """Particles `[particles, K - 1]` of the prior, as logits."""
    own = jnp.resize(concentrations, (_PARTICLES,))
    gammas = jax.random.loggamma(
        jax.random.fold_in(key, _STAGES), own[:, None], (_PARTICLES, count)
    )
    return gammas[:, :-1] - gammas[:, -1:]


def _next_power(power: jax.Array, fit_: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The largest power that leaves enough particles, and the weights of all."""

    def effective(at):
        weight = jax.nn.softmax((at - power) * fit_)
        return 1 / jnp.sum(weight**2) >= _EFFECTIVE * len(fit_)

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        enough = effective(middle)
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    _, high = lax.fori_loop(0, 30, halve, (power, jnp.ones(())))
    chosen = jnp.where(effective(1.0), 1.0, high)
    return chosen, jax.nn.softmax((chosen - power) * fit_)


def _resampled(key: Key, logits: jax.Array, weight: jax.Array) -> jax.Array:
    """Each particle as often as its weight says (systematic resampling)."""
    count = len(weight)
    at = (jax.random.uniform(key) + jnp.arange(count)) / count
    return logits[jnp.minimum(jnp.searchsorted(jnp.cumsum(weight), at), count - 1)]


def _moved(key: Key, logits: jax.Array, density) -> jax.Array:
    """Metropolis steps along differences of two particles as they are before."""
    count, size = logits.shape

    def step(state, number):
        at, now = state
        pair, length, chance = jax.random.split(jax.random.fold_in(key, number), 3)
        one, other = jax.random.randint(pair, (2, count), 0, count)
        factor = (
            2.38
            / np.sqrt(2 * size)
            * jnp.exp(0.7 * jax.random.normal(length, (count, 1)))
        )
        proposed = at + factor * (logits[one] - logits[other])
        then = density(proposed)
        taken = jnp.log(jax.random.uniform(chance, (count,))) < then - now
        return (
            jnp.where(taken[:, None], proposed, at),
            jnp.where(taken, then, now),
        ), None

    return lax.scan(step, (logits, density(logits)), jnp.arange(_MOVES))[0][0]
