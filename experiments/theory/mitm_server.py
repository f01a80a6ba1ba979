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

from fljax import federation, local, losses, packing, schedule, stacking
from fljax.federation import Federation, Parts, States, Tables, Training
from fljax.types import Array, Batch, Rows


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
    states: States | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Trains the client from drawn models.

    Args:
      client: from `generate`.
      points: of equal `num_messages` `R`.
      sampling: `shuffled`, epochs without replacement, or `independent`, every step on
        rows drawn anew from all.
      seeds: of the draws; points share them.
      spread: standard deviation of the sent models.
      states: where a run that was stopped left its state, and this one does.

    Returns:
      Sent models and deltas (sent minus returned), `[points, seeds, R, d]` each.
    """
    num_rows, repeats = client.y.shape[1], len(points)
    plans = [_schedule(p, num_rows, sampling) for p in points]
    rows = Rows(*(np.float32(leaf) for leaf in (client.x, client.y)))
    method = _Method(
        spread,
        num_rows if sampling == "independent" else None,
        max(p.batch_size for p in points),
    )
    training = Training(
        np.tile(np.arange(len(seeds)), repeats),
        np.repeat(np.arange(repeats), len(seeds)),
        np.tile(np.asarray(seeds, np.uint32), repeats),
        numbers=Numbers(
            np.repeat(np.float32([p.learning_rate for p in points]), len(seeds)),
            np.repeat(np.int32([p.batch_size for p in points]), len(seeds)),
            np.tile(np.float32(client.centre), (repeats, 1)),
        ),
    )
    tables = Tables(rows, stacking.stack(plans)[0])
    seen = federation.train(
        Federation(method, tables),
        training,
        stops=federation.evenly(points[0].num_messages),
        states=states,
    ).run.transcript
    shape = (repeats, len(seeds), *seen.params.shape[1:])
    sent, delta = seen.params.reshape(shape), seen.delta[:, :, 0].reshape(shape)
    return sent.astype(np.float64), delta.astype(np.float64)


class Numbers(NamedTuple):
    """Of one training.

    Attributes:
      rate: [] learning rate.
      batch_size: [].
      centre: `[d]` mean of the sent models.
    """

    rate: Array
    batch_size: Array
    centre: Array


class _Method(NamedTuple):
    """A client that trains, and the man in the middle for its server.

    Attributes:
      spread: standard deviation of the sent models.
      num_rows: from which every step draws its rows anew; None for epochs.
      widest: rows of the largest batch.
    """

    spread: float
    num_rows: int | None
    widest: int

    def __call__(self, key, numbers: Numbers, pool) -> Parts:
        update = local.sgd(_loss, optax.sgd(numbers.rate))
        if self.num_rows is not None:
            update = _drawing_anew(
                update, self.num_rows, self.widest, numbers.batch_size
            )
        first, server = _mitm_server(key, numbers.centre, self.spread)
        return Parts(lambda: first, update, server)


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


def _mitm_server(key, centre, spread: float):
    """The first model to send, and a server that then sends what it has drawn."""

    def draw(number):
        own = jax.random.fold_in(key, number)
        return centre + spread * jax.random.normal(own, centre.shape)

    def update(delta, state, params=None):
        del delta
        return draw(state) - params, state + 1

    server = optax.GradientTransformation(lambda _: jnp.ones((), jnp.int32), update)
    return draw(0), server
