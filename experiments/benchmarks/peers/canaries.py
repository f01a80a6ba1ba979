"""One noisy sum or message with a canary that reaches the clip, and without it."""

import jax
import numpy as np

from experiments.benchmarks.peers.rows import People, Rows
from experiments.benchmarks.peers.training import (
    Gradient,
    Message,
    Plan,
    Release,
    start,
)

_FAR = np.float32(1e3)


def of_gradient(people: People, plan: Plan, gradient: Gradient) -> Release:
    """One batch, with a row that is very far out or without it."""
    rows, params = batch(people, plan), start(people, plan)

    def release(seed, present):
        mask = np.arange(len(rows.y)) > 0
        mask[0] = present
        return gradient(jax.random.key(seed % 2**32), params, rows, mask)

    return release


def of_message(people: People, plan: Plan, message: Message) -> Release:
    """One message, of a client that moved far or hardly.

    Not at all is a division by zero in Flower's clip.
    """
    sent = start(people, plan)
    far, near = (
        {name: array + np.float32(by) for name, array in sent.items()}
        for by in (_FAR, 1e-6)
    )

    def release(seed, present):
        np.random.seed(seed % 2**32)
        return message(sent, far if present else near)

    return release


def batch(people: People, plan: Plan) -> Rows:
    """A batch of the first client whose first row is very far out."""
    x, y = (array[: plan.batch_size].copy() for array in people.clients[0])
    x[0] *= _FAR
    return Rows(x, y)
