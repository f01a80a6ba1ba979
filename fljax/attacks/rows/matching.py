"""Rows whose gradient resembles the one that came: TabLeak, for any dense network.

Vero et al., "TabLeak: Tabular Data Leakage in Federated Learning", 2023
(https://arxiv.org/abs/2210.01785). Searches from random rows minimise the cosine distance
of the simulated gradient from the one that came, by Adam on signs; categories are a softmax
and numbers a sigmoid between the least and the largest one. The rows of all searches are
matched to those of the one that fits best, and the median of each cell is taken. Targets
are given, as in their Table 1.

Divergences from their code: a search ends with the iterate of the smallest loss, not with
the last one, and is chosen as the best one by it, not by the loss of its rows as read; the
median of an even number is between the two in the middle, where they take the lower; a
category of a single column is a sigmoid, where they write out both values.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

from fljax.attacks.inversion import Budget, invert
from fljax.attacks.inversion.objectives import cosine_distance
from fljax.attacks.inversion.points import gradient_of
from fljax.attacks.inversion.solvers import adam
from fljax.attacks.inversion.spaces import Guess, Space, as_features
from fljax.attacks.rows.network import Network, says_something
from fljax.attacks.rows.recovery import Found, judged
from fljax.attacks.rows.schema import Group, Schema
from fljax.losses import LossFn
from fljax.types import Array, Params

_CLOSE = 0.319  # deviations between two numbers that count as the same


class Pool(NamedTuple):
    """Searches, by default as many and as long as TabLeak's.

    Attributes:
      members: searches whose rows are pooled.
      iterations: of each.
      learning_rate: of Adam.
    """

    members: int = 30
    iterations: int = 1500
    learning_rate: float = 0.06


_POOL = Pool()


class _Codes(NamedTuple):
    """The numbers of a schema, as one row `[1, D]` or `[1, Dn]` each."""

    mean: Array
    scale: Array
    low: Array
    high: Array


def recover(
    params: Params,
    message: Params,
    loss_fn: LossFn,
    schema: Schema,
    y: np.ndarray,
    *,
    seed: int = 0,
    pool: Pool = _POOL,
) -> Found:
    """Rows behind the mean gradient of a batch whose targets are known.

    Args:
      params: at which it was taken.
      message: the gradient.
      loss_fn: of one example.
      schema: how the table is encoded.
      y: `[B]` the batch's targets.
      seed: of where the searches start.
      pool: how many, and how long.

    Returns:
      As many rows as targets, none of a message of zeros.

    Raises:
      ValueError: the pool has no search, or none of an iteration; numbers that are not
        finite; a model without a first `TabularDense` layer.
    """
    if min(pool.members, pool.iterations) < 1:
        raise ValueError(f"pool: expected counts of 1 or more, got {pool}")
    if not says_something(params, message):
        return Found.nothing(schema)
    network, y = Network(params, loss_fn), np.asarray(y)
    layout = schema.groups, tuple(int(place) for place in schema.numbers)
    codes = _Codes(schema.mean, schema.scale, schema.low, schema.high)
    rows = jax.tree.map(lambda leaf: jnp.float32(leaf)[None], codes)
    given = jax.random.key(seed), params, message, jnp.asarray(y), rows
    x, loss = jax.device_get(_searched(loss_fn, layout, pool, *given))
    pooled = _pooled(schema, x.astype(float), x[np.argmin(loss)].astype(float))
    return judged(network, message, schema, pooled, y, len(y))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _searched(loss_fn, layout, pool: Pool, key, params, message, y, codes: _Codes):
    """Encoded rows `[M, B, D]` of every search, and its loss `[M]`."""
    groups, numbers = layout
    space = as_features(_space(groups, numbers, y, codes))
    solver = adam(pool.learning_rate, None, signed=True)
    budget = Budget(pool.iterations, record_every=pool.iterations)

    def search(key):
        found = invert(
            key, params, message, gradient_of(loss_fn), space, solver,
            distance=cosine_distance, budget=budget,
        )  # fmt: skip
        return found.x.numeric, found.loss

    return jax.vmap(search)(jax.random.split(key, pool.members))


def _space(groups: Sequence[Group], numbers: Sequence[int], y, codes: _Codes) -> Space:
    """Encoded rows `[B, D]`, of which variables between -1 and 1 are the start."""
    at = jnp.asarray(numbers, int)

    def init(key):
        shape = len(y), codes.mean.shape[1]
        return {"x": jax.random.uniform(key, shape, minval=-1.0)}

    def decode(variables):
        x = variables["x"]
        raw = x * codes.scale + codes.mean
        for group in groups:
            columns = jnp.asarray(group.columns)
            scores = jnp.pad(raw[:, columns], ((0, 0), (0, int(group.reference))))
            shares = jax.nn.softmax(scores)[:, : len(group.columns)]
            raw = raw.at[:, columns].set(shares)
        inside = codes.low + (codes.high - codes.low) * jax.nn.sigmoid(x[:, at])
        raw = raw.at[:, at].set(inside)
        return Guess((raw - codes.mean) / codes.scale, y)

    return Space(init, decode)


def _pooled(schema: Schema, x: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Medians `[B, D]` of rows `[M, B, D]`, each search's in the order of the best's."""
    read = [schema.encode(schema.read(each)) for each in (*x, best)]
    ordered = []
    for member, rows in zip(x, read[:-1], strict=True):
        apart = _apart(schema, read[-1], rows)
        ordered.append(member[optimize.linear_sum_assignment(apart)[1]])
    return np.median(ordered, axis=0)


def _apart(schema: Schema, some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Cells `[B, B]` in which rows differ."""
    far = np.abs(some[:, None] - others[None]) > _CLOSE
    numbers = far[..., schema.numbers].sum(axis=2)
    groups = [far[..., list(group.columns)].any(axis=2) for group in schema.groups]
    return numbers + sum(groups, np.zeros_like(numbers))
