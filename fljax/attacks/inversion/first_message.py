"""`inversion`: a client's rows from its first message, where that is one gradient of few.

The adversary knows the targets and how many rows there are, and none of their columns.
The search starts from standard normal rows, or with proxy rows from normal ones with
their means and deviations.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.estimates import Estimates, Reconstruction
from fljax.attacks.inversion import Budget, invert, points, solvers, spaces
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.transcript import views


class Settings(NamedTuple):
    """How hard to look: rows of a message at most, iterations, searches."""

    most_rows: int = 8
    iterations: int = 100
    starts: int = 4


class _Start(NamedTuple):
    """Mean and deviation `[D]` of the rows that a search starts from."""

    mean: jax.Array
    deviation: jax.Array


def run(view: AdversaryView, settings: Settings) -> Estimates:
    """Rows of every client, as many as it has; NaN behind them."""
    assert view.transcript is not None and view.messages is not None
    known = view.known
    width = known.public.numeric.shape[-1] + view.candidates.shape[1]
    rebuilt = np.full((*known.y.shape, width), np.nan, np.float32)
    rate = np.float32(view.training.learning_rate or 1)
    start = _start(view, width)
    for client, rows in enumerate(view.sizes):
        places = views.first(view.messages.of(client), 1)
        first = views.messages(view.transcript, places)
        params, delta = jax.tree.map(
            lambda leaf: np.asarray(leaf[0], np.float32), first
        )
        gradient = jax.tree.map(lambda leaf: leaf / rate, delta)
        stream = streams.key(view.seed, streams.INVERSION, int(view.clients[client]))
        y = np.asarray(known.y)[client, :rows]
        rebuilt[client, :rows] = _attack(
            view.loss_fn, settings, stream, params, gradient, y, start
        )
    return {"inversion": Reconstruction(rebuilt)}


def _start(view: AdversaryView, width: int) -> _Start:
    if view.proxy is None:
        return _Start(jnp.zeros(width), jnp.ones(width))
    x = view.proxy.x
    return _Start(jnp.asarray(x.mean(axis=0)), jnp.asarray(x.std(axis=0)))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _attack(loss_fn, settings, stream, params, observed, y, start):
    def seed(stream, shape):
        drawn = jax.random.normal(stream, shape)
        return start.mean[None] + drawn * start.deviation[None]

    space = spaces.examples((len(y), len(start.mean)), seed, y=y)
    budget = Budget(
        num_iterations=settings.iterations,
        starts=settings.starts,
        record_every=settings.iterations,
    )
    return invert(
        stream,
        params,
        observed,
        points.gradient_of(loss_fn),
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
