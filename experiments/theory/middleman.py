"""Messages of a least squares client whose sent models a man in the middle draws.

The client's rounds are those of the engine (`fljax.rounds`); only the server differs. It
ignores what comes back and sends independent normal models, so that no sent model
depends on the client's earlier draws.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fljax import local, losses, packing, rounds, schedule, stacking
from fljax.types import Batch, Rows

SAMPLINGS = ("shuffled", "independent")


class Client(NamedTuple):
    """The target of every seed.

    Attributes:
      x: `[seeds, S, d]` float64, the last column being one.
      y: `[seeds, S]`.
      optimum: `[seeds, d]` least squares solution.
      centre: `[seeds, d]` mean of the sent models.
    """

    x: np.ndarray
    y: np.ndarray
    optimum: np.ndarray
    centre: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """How a client trains and how many messages are seen."""

    learning_rate: float
    batch_size: int
    local_epochs: int
    num_messages: int

    def steps(self, num_rows: int) -> int:
        """Local steps `K` of a round."""
        rows = np.asarray(num_rows)
        return int(packing.steps_per_round(rows, self.batch_size, self.local_epochs))


def generate(
    seeds: Sequence[int],
    *,
    num_rows: int,
    num_params: int,
    target_noise: float,
    spread: float,
    offset: float,
) -> Client:
    """Draws rows, targets and the centre of the sent models.

    Args:
      seeds: one client each.
      num_rows: rows `S`.
      num_params: parameters `d`, the intercept included.
      target_noise: standard deviation of the targets around the generating model.
      spread: standard deviation of every parameter of the sent models.
      offset: distance of their centre from the optimum, root mean square over the
        parameters, in units of `spread`.
    """
    drawn = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        x = np.ones((num_rows, num_params))
        x[:, :-1] = rng.normal(size=(num_rows, num_params - 1))
        y = x @ rng.normal(size=num_params) + target_noise * rng.normal(size=num_rows)
        optimum = np.linalg.lstsq(x, y)[0]
        way = rng.normal(size=num_params)
        way *= offset * spread / np.sqrt(np.mean(np.square(way)))
        drawn.append((x, y, optimum, optimum + way))
    return Client(*map(np.stack, zip(*drawn, strict=True)))


def largest_rate(client: Client) -> float:
    """The theorem's limit `S / (2 lambda_max(x^T x))`, the smallest over the seeds."""
    eigenvalues = np.linalg.eigvalsh(hessian(client))
    return float(1 / (2 * eigenvalues[:, -1].max()))


def hessian(client: Client) -> np.ndarray:
    """`x^T x / S`, `[seeds, d, d]`, half the Hessian of the mean squared loss."""
    return np.swapaxes(client.x, 1, 2) @ client.x / client.x.shape[1]


def messages(
    client: Client,
    points: Sequence[Point],
    sampling: str,
    seeds: Sequence[int],
    spread: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Trains the client from drawn models; one compiled program for all points.

    Args:
      client: from `generate`.
      points: of equal `num_messages` `R`.
      sampling: `shuffled`, epochs without replacement, or `independent`, every step on
        rows drawn anew from all.
      seeds: of the draws; points share them.
      spread: standard deviation of the sent models.

    Returns:
      Sent models and deltas (sent minus returned), `[points, seeds, R, d]` each.
    """
    num_rows = client.y.shape[1]
    tables, axes = stacking.stack([_schedule(p, num_rows, sampling) for p in points])
    widest = max(p.batch_size for p in points)

    def one(key, x, y, centre, table, rate, batch_size):
        update = local.sgd(_loss, optax.sgd(rate))
        if sampling == "independent":
            update = _drawing_anew(update, num_rows, widest, batch_size)
        keys = (jax.random.fold_in(key, stream) for stream in (0, 1))
        first, server = _man_in_the_middle(next(keys), centre, spread)
        seen = rounds.advance(
            next(keys),
            rounds.start(first, table, server),
            Rows(x, y),
            table,
            table.num_rounds,
            local=update,
            server_optimiser=server,
        ).transcript
        return seen.params, seen.delta[:, 0]

    over_seeds = jax.vmap(one, (0, 0, 0, 0, None, None, None))
    over_points = jax.vmap(over_seeds, (None, None, None, None, axes, 0, 0))
    sent, delta = jax.jit(over_points)(
        jax.vmap(jax.random.key)(np.asarray(seeds)),
        *(jnp.asarray(a, jnp.float32) for a in (client.x, client.y, client.centre)),
        tables,
        jnp.array([p.learning_rate for p in points]),
        jnp.array([p.batch_size for p in points]),
    )
    return np.asarray(sent, np.float64), np.asarray(delta, np.float64)


def _predict(params, x):
    # Accelerators multiply in reduced precision unless told otherwise.
    return jnp.dot(params, x, precision="highest")


_loss = losses.example_loss(_predict, losses.squared)


def _schedule(point: Point, num_rows: int, sampling: str) -> schedule.Schedule:
    shuffled = sampling == "shuffled"
    return schedule.build(
        [num_rows],
        num_rounds=point.num_messages,
        batch_size=point.batch_size if shuffled else None,
        epochs=point.local_epochs if shuffled else 1,
        steps=None if shuffled else point.steps(num_rows),
        shuffle=shuffled,
    )


def _drawing_anew(update: local.LocalUpdate, num_rows: int, widest: int, batch_size):
    """The same training, every step on rows drawn with replacement from all rows."""

    def step(key, carry, sent, batch):
        key_rows, key_step = jax.random.split(key)
        index = jax.random.randint(key_rows, (widest,), 0, num_rows)
        mask = jnp.arange(widest) < batch_size
        drawn = Batch(batch.x[index], batch.y[index], mask)
        return update.step(key_step, carry, sent, drawn)

    return update._replace(step=step)


def _man_in_the_middle(key, centre, spread: float):
    """The first model to send, and a server that then sends what it has drawn."""

    def draw(number):
        own = jax.random.fold_in(key, number)
        return centre + spread * jax.random.normal(own, centre.shape)

    def update(delta, state, params=None):
        del delta
        return draw(state) - params, state + 1

    server = optax.GradientTransformation(lambda _: jnp.ones((), jnp.int32), update)
    return draw(0), server
