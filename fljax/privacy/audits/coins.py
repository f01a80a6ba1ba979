"""Which of many canaries were in one training: the best linear guess of their coins.

At each model that is sent it is known what every row adds to its client's message
whenever a step has it. A round shows the sum of what the rows add, each as often as steps
have it, and noise. With canaries that add g_j where they are in, and else h_j,

    seen = sum_j (h_j + c_j (g_j - h_j)) + others + noise,   c_j a fair coin,

all rounds together give the mean of the coins given what was seen, if everything were
normal. Rows that look alike are told apart as far as they can be.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from fljax.federation import Tables
from fljax.privacy.audits import chances, evidence
from fljax.privacy.audits.chances import Others
from fljax.privacy.audits.crowd import Crowd
from fljax.privacy.audits.evidence import Observer
from fljax.types import Array, PyTree

_RIDGE = 1e-6  # of the rows' variance, where there is no noise
_PRECISION = 4.0  # of a fair coin


class Exchange(NamedTuple):
    """All that is exchanged in one training, flat.

    Attributes:
      sent: `[R, P]` models.
      last: `[P]` the last one.
      messages: `[R, C, P]`, 0 of clients that were away.
      here: `[R, C]` bool, who took part.
    """

    sent: Array
    last: Array
    messages: Array
    here: Array


class Effects(NamedTuple):
    """What is added to messages at one model.

    Attributes:
      of: `[2, N, P]` by each row (or client) in one step, without and with the canaries.
      noise: `[C]` variance of the noise of one step of each client.
    """

    of: np.ndarray
    noise: np.ndarray


class Shown(NamedTuple):
    """What one observer sees of one round, or of several in one sum.

    Attributes:
      seen: `[P]`.
      at: effects.
      weight: `[C]` of each client's message, summed over rounds.
      squares: `[C]` of the weights, summed over rounds.
    """

    seen: np.ndarray
    at: Effects
    weight: np.ndarray
    squares: np.ndarray


def scores(
    crowd: Crowd, tables: Tables, exchange: Exchange, numbers: PyTree
) -> dict[Observer, np.ndarray]:
    """Observer -> `[M]`, higher where a canary is taken to be in.

    Args:
      crowd: the canaries.
      tables: of the federation.
      exchange: all that was exchanged.
      numbers: of the method.
    """
    often = chances.others(tables, -1)
    count = len(often.steps)
    if crowd.canary.kind == "client":  # each in all rounds, and nothing beside them
        one = np.ones(count)
        often = Others(np.arange(count), one, 0 * one, one)
    effects = _effects(crowd, often, numbers)
    models = [*exchange.sent, exchange.last]
    at = [effects(model) for model in models]
    schedule = jax.tree.map(np.asarray, tables.schedule)
    share = evidence.shares(schedule)
    sums = [
        Shown(one - after, each, weight, weight**2)
        for one, after, each, weight in zip(models, models[1:], at, share, strict=False)
    ]
    in_all = share.sum(axis=0), (share**2).sum(axis=0)
    final = [Shown(models[0] - models[-1], at[-1], *in_all)]
    own: np.ndarray = sum(
        posterior(_messages(exchange, at, client, count), crowd.at, often)
        for client in range(count)
    )  # type: ignore[assignment]
    of_sums = posterior(sums, crowd.at, often)
    last = posterior(final, crowd.at, often)
    return {"messages": own, "sum": of_sums, "models": of_sums, "final": last}


def _messages(exchange, at, client, count) -> Iterator[Shown]:
    alone = np.eye(count)[client]
    for number in np.flatnonzero(exchange.here[:, client]):
        yield Shown(exchange.messages[number, client], at[number], alone, alone)


def posterior(shown: Iterable[Shown], at: np.ndarray, often: Others) -> np.ndarray:
    """`[M]` mean of each coin, less a half, given all that was shown.

    Args:
      shown: each round.
      at: `[M]` positions of the canaries.
      often: how often all rows are in a round's steps.
    """
    precision, told = _PRECISION * np.eye(len(at)), np.zeros(len(at))
    for one in shown:
        effects = np.asarray(one.at.of, float)
        mean = one.weight[often.client] * often.mean
        without, with_ = (mean[:, None] * each for each in effects)
        apart = (with_ - without)[at]
        expected = without.sum(axis=0) + apart.sum(axis=0) / 2
        spread = np.sqrt(one.squares[often.client] * often.variance / 2)
        rows = (spread[:, None] * effects).reshape(-1, effects.shape[-1])
        noise = float(np.sum(one.squares * often.steps * one.at.noise))
        whitened = _whitened(apart, rows, noise)
        precision += whitened @ apart.T
        told += whitened @ (np.asarray(one.seen, float) - expected)
    return np.linalg.solve(precision, told)


def _whitened(apart: np.ndarray, rows: np.ndarray, noise: float) -> np.ndarray:
    """`apart` times the inverse of `rows^T rows + noise`, by Woodbury's identity."""
    rows = rows[np.any(rows != 0, axis=1)]
    inner = rows @ rows.T
    least = _RIDGE * float(np.trace(inner)) / max(len(rows), 1)
    noise = max(noise, least, float(np.finfo(np.float32).tiny))
    if not len(rows):
        return apart / noise
    weights = np.linalg.solve(inner + noise * np.eye(len(rows)), rows @ apart.T)
    return (apart - weights.T @ rows) / noise


def _effects(crowd: Crowd, often: Others, numbers: PyTree):
    """Flat model -> `Effects` there."""
    key, count = jax.random.key(0), len(often.steps)
    shapes = jax.eval_shape(crowd.method.model.init, key)
    like = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    shape = ravel_pytree(like)[1]
    who = jnp.asarray(often.client, jnp.int32)
    first = np.unique(often.client, return_index=True)[1]
    rows = jax.tree.map(jnp.asarray, crowd.both)
    is_client = crowd.canary.kind == "client"

    def sent(model, sign, row, client, there):
        local = crowd.method(key, numbers, None).local
        local = crowd.crowded(local, np.full(count, sign, np.float32))
        return ravel_pytree(evidence.message(local, model, row, there, client))[0]

    @jax.jit
    def found(flat):
        model = shape(flat)
        some = jax.tree.map(lambda leaf: leaf[0][first], rows)
        noise = jax.vmap(lambda row, c: sent(model, 0.0, row, c, False))(
            some, jnp.arange(count)
        )
        each = []
        for world, sign in enumerate((crowd.absent, 1.0)):
            own = jax.tree.map(lambda leaf, at=world: leaf[at][: len(who)], rows)
            added = jax.vmap(
                lambda row, c, sign=sign: sent(model, sign, row, c, not is_client)
            )(own, who)
            each.append(added - noise[who])
        return jnp.stack(each), jnp.mean(jnp.square(noise), axis=1)

    return lambda flat: Effects(*map(np.asarray, found(jnp.asarray(flat))))
