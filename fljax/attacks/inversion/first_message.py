"""`inversion`: a client's rows from its first message, where that is one gradient of few.

The adversary knows the targets and how many rows there are, and none of their columns.
The search starts from standard normal rows, or with proxy rows from normal ones with
their means and deviations.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses
from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.each_client import Client, Task, over_items, task
from fljax.attacks.estimates import Estimates, Reconstruction
from fljax.attacks.inversion import Budget, invert, solvers, spaces
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.transcript import views
from fljax.types import Batch


class Settings(NamedTuple):
    """How hard to look: rows of a message at most, iterations, searches."""

    most_rows: int = 8
    iterations: int = 100
    starts: int = 4


def run(view: AdversaryView, settings: Settings) -> Estimates:
    """Rows of every client, as many as it has; NaN behind them."""
    assert view.transcript is not None and view.messages is not None
    count, known = len(view.clients), view.known
    width = known.public.numeric.shape[-1] + view.candidates.shape[1]
    first = view._replace(messages=views.first(view.messages, 1))
    told = (np.float32(view.training.learning_rate or 1), *_start(view, width))
    more = [np.broadcast_to(each, (count, *each.shape)) for each in told]
    found = over_items(_one, task(view, settings), first, np.arange(count), *more)
    return {"inversion": Reconstruction(np.where(known.mask[..., None], found, np.nan))}


def _start(view: AdversaryView, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation `[D]` of the rows that a search starts from."""
    if view.proxy is None:
        return np.zeros(width, np.float32), np.ones(width, np.float32)
    x = np.asarray(view.proxy.x, np.float32)
    return x.mean(axis=0), x.std(axis=0)


def _one(static: Task, client: Client, rate, mean, deviation) -> jax.Array:
    """Rows `[n, D]` of one client; those that it does not have count nowhere."""
    settings, known, seen = static.settings, client.known, client.exchange
    params, delta = jax.tree.map(lambda leaf: leaf[0], (seen.params, seen.delta))

    def seed(stream, shape):
        each = jax.vmap(jax.random.fold_in, (None, 0))(stream, jnp.arange(shape[0]))
        drawn = jax.vmap(lambda key: jax.random.normal(key, shape[1:]))(each)
        return mean[None] + drawn * deviation[None]

    def loss(params, x, y):
        return losses.batch_loss(static.loss_fn, params, Batch(x, y, known.mask))

    space = spaces.examples((len(known.y), len(mean)), seed, y=known.y)
    budget = Budget(
        num_iterations=settings.iterations,
        starts=settings.starts,
        record_every=settings.iterations,
    )
    return invert(
        streams.key(client.seed, streams.INVERSION, client.id),
        params,
        jax.tree.map(lambda leaf: leaf.astype(jnp.float32) / rate, delta),
        jax.grad(loss),
        spaces.as_features(space),
        solvers.whitened_lbfgs(),
        budget=budget,
    ).x.numeric


SPEC = AttackSpec(
    "inversion",
    Needs(training=True, single_gradient=True, optimisers=("sgd",)),
    run,
    Settings(),
    gives=Reconstruction,
)
