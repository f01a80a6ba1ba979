"""Where a search on sums begins: how the attribute goes with the target in each client.

A model tells of all clients alike which value goes with which target. Clients may differ:
where a value goes with large targets in one and with small ones in another, a search that
begins alike for both gives rows of the one what belongs to the other, and stays there.

So the logits of each client begin at a combination of what the model tells and of the
target, either of them forwards or backwards. A sum is linear in what its members return.
Each member is therefore simulated by itself, along each direction, in a few of the rounds
that the search uses. The shares in [0, 1] of all of them that leave the least of the sums,
in the metric of the noise, solve a small least-squares problem. A normal prior keeps them at
what the model tells where sums tell little.

Targets count as numbers, classes too.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax.attacks.trajectory import noise as noise_lib
from fljax.attacks.trajectory.matching import Problem, held_out
from fljax.attacks.trajectory.relaxation import DOUBT
from fljax.types import Known

_ROUNDS = 10  # in which each client is looked at
_DEVIATION = 0.5  # of a share before sums are seen
_STEPS = 300  # of the solver
_MOST = 8  # other candidates that may each go with the target
_EQUAL = 1e-5  # relative spread of targets that are one number

Members = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
# (round [], values [M, ...]) -> (who [S], what each adds to the prediction [S, O])


def start(
    members: Members,
    problem: Problem,
    known: Known,
    logits: jax.Array,
    size: int,
    ways: np.ndarray,
) -> jax.Array:
    """Logits `[M, n, ...]` of all clients of some sums.

    Args:
      members: of a round, apart.
      problem: of their sums.
      known: of their rows, leaves `[M, n, ...]`.
      logits: what the model tells.
      size: most clients in a sum, S.
      ways: of the candidates.
    """
    count, num_rounds = len(logits), len(problem.observed)
    if count == 1 or num_rounds < 3:
        return logits
    directions = _directions(known, logits, ways)  # [D, M, n, K - 1]
    _, used = held_out(num_rounds, problem.settings.held_out)
    few = min(len(used), -(-_ROUNDS * count // size))
    rounds = used[np.unique(np.linspace(0, len(used) - 1, few).round().astype(int))]
    square, gradient = _fit(members, problem, directions, jnp.asarray(rounds))
    unknown, doubt = len(gradient), 1 / _DEVIATION**2
    first = jnp.zeros(unknown).at[:count].set(1.0)
    shares = least(square + doubt * jnp.eye(unknown), gradient - doubt * first)
    found = jnp.einsum("dm,dm...->m...", shares.reshape(-1, count), directions)
    found = jnp.clip(found, -DOUBT, DOUBT)
    return jnp.where(jnp.isfinite(found).all(), found, logits)


def least(square: jax.Array, gradient: jax.Array) -> jax.Array:
    """`x` in `[0, 1]^u` of the least `x' square x / 2 + gradient' x`, by ADMM.

    Args:
      square: `[u, u]`, positive definite.
      gradient: `[u]`.
    """
    curvatures, axes = jnp.linalg.eigh(square)
    # The geometric mean of the extremes is the best for a quadratic form.
    penalty = jnp.sqrt(
        jnp.maximum(curvatures[0], 1e-6 * curvatures[-1]) * curvatures[-1]
    )
    inverse = (axes / (curvatures + penalty)[None]) @ axes.T

    def step(_, state):
        inside, dual = state
        free = inverse @ (penalty * (inside - dual) - gradient)
        inside = jnp.clip(free + dual, 0, 1)
        return inside, dual + free - inside

    nothing = jnp.zeros_like(gradient)
    return lax.fori_loop(0, _STEPS, step, (nothing, nothing))[0]


def _fit(members: Members, problem: Problem, directions: jax.Array, rounds: jax.Array):
    """Square and gradient of half of what shares of the directions leave of these rounds.

    Those of one direction stand together, `[D M]`.
    """
    number, count = directions.shape[:2]
    nothing = problem.relax(jnp.zeros_like(directions[0]))

    def left(t):
        return members(t, nothing)[1].sum(axis=0) - problem.observed[t]

    residuals = lax.map(left, rounds)
    known = None if problem.known is None else problem.known[rounds]
    noise = noise_lib.estimate(residuals, known=known)

    def add(total, at):
        who, still = members(rounds[at], nothing)
        moved = lax.map(
            lambda logits: members(rounds[at], problem.relax(logits))[1], directions
        )
        moves = (moved - still[None]).reshape(-1, still.shape[-1])  # [D S, O]
        whitened = jax.vmap(lambda move: noise_lib.whiten(noise, at, move))(moves)
        place = (jnp.arange(number)[:, None] * count + who[None]).ravel()
        square, gradient = total
        square = square.at[place[:, None], place].add(whitened @ moves.T)
        return (square, gradient.at[place].add(whitened @ residuals[at])), None

    unknown = number * count
    none = jnp.zeros((unknown, unknown)), jnp.zeros(unknown)
    return lax.scan(add, none, jnp.arange(len(rounds)))[0]


def ways(count: int, continuous: bool) -> np.ndarray:
    """How `[D, K - 1]` logits of so many candidates rise where they go with the target.

    Each of a few candidates may; of a number large values do.
    """
    if continuous:
        return np.linspace(0, 1, count)[None, 1:]
    return np.eye(count - 1) if count <= _MOST + 1 else np.zeros((0, count - 1))


def _directions(known: Known, logits: jax.Array, ways: np.ndarray) -> jax.Array:
    """The logits, and each way along the target; then all of them backwards."""
    there = known.mask
    rows = jnp.maximum(there.sum(axis=1, keepdims=True), 1)
    target = jnp.where(there, known.y, 0).astype(logits.dtype)
    largest = jnp.abs(target).max(axis=1, keepdims=True)
    target = jnp.where(there, target - target.sum(axis=1, keepdims=True) / rows, 0)
    spread = jnp.sqrt(jnp.square(target).sum(axis=1, keepdims=True) / rows)
    varies = spread > _EQUAL * largest
    target = jnp.where(varies, target / jnp.where(varies, spread, 1), 0)
    target = jnp.clip(target, -DOUBT, DOUBT)
    stacked = jnp.stack([logits, *(jnp.multiply.outer(target, way) for way in ways)])
    return jnp.concatenate([stacked, -stacked])
