"""Local epochs of SGD: batches, and a gradient for each."""

import functools
from collections.abc import Callable, Iterator

import jax
import numpy as np

from experiments.benchmarks.peers import training
from experiments.benchmarks.peers.rows import People
from experiments.benchmarks.peers.training import Epoch, Gradient, Plan
from fljax import losses

Batches = Callable[[np.random.Generator, int], Iterator[np.ndarray]]
# (generator, rows) -> masks [rows], one for each step of an epoch


def sgd(people: People, plan: Plan) -> Epoch:
    """A local epoch of shuffled batches."""

    def loss(params, x, y, mask):
        each = jax.vmap(training.loss_fn(people.task), (None, 0, 0))(params, x, y)
        return losses.masked_mean(each, mask)

    slope = jax.jit(jax.grad(loss))

    def gradient(key, params, rows, mask):
        del key
        return slope(params, *rows, mask)

    return stepping(people, plan, gradient, functools.partial(shuffled, plan))


def stepping(people: People, plan: Plan, gradient: Gradient, batches: Batches) -> Epoch:
    """Steps of SGD over a client's batches.

    Args:
      people: who train.
      plan: how.
      gradient: in place of the mean.
      batches: of an epoch.
    """

    def epoch(client, params, rng):
        rows = people.clients[client]
        for mask in batches(rng, len(rows.y)):
            key = jax.random.key(int(rng.integers(2**31)))
            slope = gradient(key, params, rows, mask)
            params = {
                name: np.asarray(array - plan.learning_rate * slope[name])
                for name, array in params.items()
            }
        return params

    return epoch


def shuffled(plan: Plan, rng: np.random.Generator, size: int) -> Iterator[np.ndarray]:
    """Masks of the disjoint batches of an epoch."""
    order, bounds = rng.permutation(size), range(0, size, plan.batch_size)
    for at in bounds:
        yield np.isin(np.arange(size), order[at : at + plan.batch_size])


def poisson(plan: Plan, rng: np.random.Generator, size: int) -> Iterator[np.ndarray]:
    """Masks of as many batches, into which each row comes independently."""
    for _ in range(plan.steps(size)):
        yield rng.random(size) < 1 / plan.steps(size)
