"""Where a search on sums begins: how the attribute goes with the target in each client.

A model tells of all clients alike which value goes with which target. Clients may differ:
where a value goes with large targets in one and with small ones in another, a search that
begins alike for both gives rows of the one what belongs to the other, and stays there.

So the logits of each client begin at a combination of what the model tells and of the
target, either of them forwards or backwards. A sum is linear in what its members return.
Each member is therefore simulated by itself, along each direction, in a few rounds, and
the shares in [0, 1] of all of them that leave the least of the sums, in the metric of the
noise, are found by coordinate descent on a quadratic form of few unknowns.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax.attacks.trajectory import noise as noise_lib
from fljax.attacks.trajectory.matching import Problem
from fljax.attacks.trajectory.relaxation import DOUBT
from fljax.types import Known

_ROUNDS = 10  # in which each client is looked at
_SWEEPS = 100
_FEW = 8  # other candidates that may each go with the target

Members = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
# (round [], values [M, ...]) -> (who [S], what each adds to the prediction [S, O])


def start(
    members: Members, problem: Problem, known: Known, logits: jax.Array, size: int
) -> jax.Array:
    """Logits `[M, n, ...]` of all clients of some sums.

    Args:
      members: of a round, apart.
      problem: of their sums.
      known: of their rows, leaves `[M, n, ...]`.
      logits: what the model tells.
      size: most clients in a sum, S.
    """
    count, num_rounds = len(logits), len(problem.observed)
    if count == 1 or num_rounds < 3:
        return logits
    along = _directions(known, logits)  # [D, M, n, ...]
    few = min(num_rounds, -(-_ROUNDS * count // size))
    rounds = np.unique(np.linspace(0, num_rounds - 1, few).round().astype(int))
    rounds = jnp.asarray(rounds)
    nothing = problem.relax(jnp.zeros_like(logits))

    def left(t):
        return members(t, nothing)[1].sum(axis=0) - problem.observed[t]

    residuals = lax.map(left, rounds)
    known_noise = None if problem.known is None else problem.known[rounds]
    noise = noise_lib.estimate(residuals, known=known_noise)
    unknown = len(along) * count

    def of_round(number):
        who, base = members(rounds[number], nothing)
        moved = lax.map(
            lambda logits: members(rounds[number], problem.relax(logits))[1], along
        )
        moves = (moved - base[None]).reshape(-1, base.shape[-1])  # [D S, O]
        each = jnp.concatenate([residuals[number][None], moves])
        whitened = jax.vmap(lambda one: noise_lib.whiten(noise, number, one))(each)
        places = (jnp.arange(len(along))[:, None] * count + who[None]).ravel()
        products = moves @ whitened.T
        gradient = jnp.zeros(unknown).at[places].add(products[:, 0])
        square = jnp.zeros((unknown, unknown))
        return gradient, square.at[places[:, None], places].add(products[:, 1:])

    parts = lax.map(of_round, jnp.arange(len(rounds)))
    gradient, square = jax.tree.map(lambda leaf: leaf.sum(axis=0), parts)
    first = jnp.zeros(unknown).at[:count].set(1.0)  # the model's
    shares = least(square, gradient, first).reshape(-1, count)
    found = jnp.einsum("dm,dm...->m...", shares, along)
    found = jnp.clip(found, -DOUBT, DOUBT)
    return jnp.where(jnp.isfinite(found).all(), found, logits)


def least(square: jax.Array, gradient: jax.Array, first: jax.Array) -> jax.Array:
    """`x` in `[0, 1]^u` of the least `x' square x / 2 + gradient' x`.

    Args:
      square: `[u, u]`, of no negative direction; what it says nothing of stays.
      gradient: `[u]`.
      first: `[u]` where to begin.
    """

    def one(number, x):
        at = number % len(x)
        curvature = square[at, at]
        step = (square[at] @ x + gradient[at]) / jnp.where(curvature > 0, curvature, 1)
        return x.at[at].set(jnp.clip(x[at] - step, 0, 1))

    return lax.fori_loop(0, _SWEEPS * len(first), one, first)


def _directions(known: Known, logits: jax.Array) -> jax.Array:
    """`[D, M, n, ...]`: the logits, and one after the other along the target; and back."""
    there = known.mask
    rows = jnp.maximum(there.sum(axis=1, keepdims=True), 1)
    target = jnp.where(there, known.y, 0)
    target = jnp.where(there, target - target.sum(axis=1, keepdims=True) / rows, 0)
    spread = jnp.sqrt(jnp.square(target).sum(axis=1, keepdims=True) / rows)
    target = jnp.clip(target / jnp.where(spread > 0, spread, 1), -DOUBT, DOUBT)
    others = logits.shape[-1]
    one = [logits]
    if others <= _FEW:
        one += [jnp.zeros_like(logits).at[..., k].set(target) for k in range(others)]
    both = jnp.stack(one)
    return jnp.concatenate([both, -both])
