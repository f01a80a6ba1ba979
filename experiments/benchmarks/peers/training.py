"""Federated averaging, written plainly, around whatever a defense does in it.

The model is one hidden layer of ReLUs, `w1 [inputs, hidden]`, `b1`, `w2 [hidden, 1]`,
`b2`, as NumPy arrays by name: what every package takes.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks.peers.rows import People, Rows
from fljax import fit, losses, transcript
from fljax.types import NoiseSpec

Params = Mapping[str, np.ndarray]
_FAR = np.float32(1e3)
LOSSES = {"regression": losses.squared, "binary": losses.logistic}


class Plan(NamedTuple):
    """How clients train; `hidden` units, `rounds` of one local epoch."""

    hidden: int
    rounds: int
    batch_size: int
    learning_rate: float
    seed: int

    def steps(self, size: int) -> int:
        """Of a local epoch of so many rows."""
        return -(-size // self.batch_size)


class Sizes(NamedTuple):
    """Medians of what defenses clip, without one: clips of these sizes bind.

    Attributes:
      message: L2 norm of a message.
      coordinate: magnitude of a number in it, over its local steps.
      gradient: L2 norm of a row's gradient, in the first round's model.
    """

    message: float
    coordinate: float
    gradient: float


class Setting(NamedTuple):
    """What a defense is made for."""

    people: People
    plan: Plan
    sizes: Sizes


Gradient = Callable[[jax.Array, Params, Rows, np.ndarray], Params]
# (key, model, rows, mask [n]) -> gradient of the rows in the mask
Message = Callable[[Params, Params], Params]
# (model that was sent, model after a local epoch) -> model that leaves the client
Epoch = Callable[[int, Params, np.random.Generator], Params]
# (client, model that was sent, generator) -> model after a local epoch


class Shipped(NamedTuple):
    """What a package does in one training; None does nothing there.

    Attributes:
      epoch: local training; None is plain SGD.
      message: what leaves the client.
      after: called after every round.
      stated: epsilon of the whole training in the package's own words, once it is over.
      noise: what `fljax.privacy` accounts for.
      release: `(seed, present) -> arrays`, all that is seen of one noisy sum or message,
        with a canary that reaches the clip, or without it.
      simulated: text of `fljax.defenses.specs` that says the same, for attacks that know
        the defense; empty where there is none.
      delta: of a budget in that text.
    """

    epoch: Epoch | None = None
    message: Message | None = None
    after: Callable[[], None] | None = None
    stated: Callable[[], float | None] = lambda: None
    noise: NoiseSpec | None = None
    release: Callable[[int, bool], Params] | None = None
    simulated: str = ""
    delta: float | None = None


class Trained(NamedTuple):
    """The end of a training: its `params`, and every message `[rounds * clients, P]`."""

    params: Params
    messages: np.ndarray


def train(people: People, plan: Plan, shipped: Shipped, stem: str | None) -> Trained:
    """Trains, and records every round at `stem`, if there is one."""
    epoch = shipped.epoch or sgd(people, plan)
    rng = np.random.default_rng(plan.seed)
    np.random.seed(plan.seed)  # from which NVFlare's and Flower's noise is drawn
    params, messages = start(people, plan), []
    with recorder(stem, plan) as record:
        for number in range(plan.rounds):
            returned = {}
            for client in range(len(people.clients)):
                own = epoch(client, params, rng)
                if shipped.message is not None:
                    own = shipped.message(params, own)
                returned[client] = own
                messages.append(flat(own) - flat(params))
            record(number, params, returned)
            if shipped.after is not None:
                shipped.after()
            params = {
                name: np.mean([own[name] for own in returned.values()], axis=0)
                for name in params
            }
    return Trained(params, np.stack(messages))


@contextlib.contextmanager
def recorder(stem: str | None, plan: Plan) -> Iterator[Callable[..., None]]:
    """Where rounds go; nowhere without a stem."""
    if stem is None:
        yield lambda *_: None
        return
    about = {
        "optimiser": "sgd", "learning_rate": plan.learning_rate, "local_epochs": 1,
        "batch_size": plan.batch_size, "algorithm": "fed_avg",
    }  # fmt: skip
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    with transcript.Recorder(stem, about) as kept:
        yield kept.record


def start(people: People, plan: Plan) -> Params:
    """The first model: He's normal weights, no biases."""
    inputs, rng = people.held_out.x.shape[1], np.random.default_rng([plan.seed, 1])
    w1 = rng.normal(size=(inputs, plan.hidden)) * np.sqrt(2 / inputs)
    w2 = rng.normal(size=(plan.hidden, 1)) / np.sqrt(plan.hidden)
    found = {"w1": w1, "b1": np.zeros(plan.hidden), "w2": w2, "b2": np.zeros(1)}
    return {name: array.astype(np.float32) for name, array in found.items()}


def output(params: Any, x: Any) -> jax.Array:
    """`[...]` of inputs `[..., inputs]`: a number, or a logit."""
    hidden = jnp.maximum(x @ params["w1"] + params["b1"], 0)
    return (hidden @ params["w2"] + params["b2"])[..., 0]


@functools.cache
def loss_fn(task: str) -> losses.LossFn:
    """Of one row."""
    return losses.example_loss(output, LOSSES[task])


def explained(params: Params, people: People) -> float:
    """Percent of the held-out targets' variation; a constant has 0."""
    x, y = people.held_out
    loss = np.mean(LOSSES[people.task](output(params, x), jnp.asarray(y)))
    every = np.ones((1, len(y)), bool)
    return float(fit.explained([loss], y[None], every, people.task)[0])


def sgd(people: People, plan: Plan) -> Epoch:
    """A local epoch of shuffled batches."""

    def loss(params, x, y, mask):
        each = jax.vmap(loss_fn(people.task), (None, 0, 0))(params, x, y)
        return losses.masked_mean(each, mask)

    slope = jax.jit(jax.grad(loss))

    def gradient(key, params, rows, mask):
        del key
        return slope(params, *rows, mask)

    return stepping(people, plan, gradient, functools.partial(shuffled, plan))


def stepping(people: People, plan: Plan, gradient: Gradient, batches) -> Epoch:
    """Steps of SGD over a client's batches.

    Args:
      people: who train.
      plan: how.
      gradient: in place of the mean.
      batches: `(rng, n) -> masks [n]` of a local epoch.
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


def released_gradient(people: People, plan: Plan, gradient: Gradient):
    """A `Shipped.release`: one batch, with a row that is very far out or without it."""
    rows, params = canary(people, plan), start(people, plan)

    def release(seed, present):
        mask = np.arange(len(rows.y)) > 0
        mask[0] = present
        return gradient(jax.random.key(seed % 2**32), params, rows, mask)

    return release


def released_message(people: People, plan: Plan, message: Message):
    """A `Shipped.release`: one message, of a client that moved far or hardly.

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


def canary(people: People, plan: Plan) -> Rows:
    """A batch of the first client whose first row is very far out."""
    x, y = (array[: plan.batch_size].copy() for array in people.clients[0])
    x[0] *= _FAR
    return Rows(x, y)


def measure(people: People, plan: Plan, undefended: Trained) -> Sizes:
    """What clips would meet, from a training without one."""
    each = jax.vmap(jax.grad(loss_fn(people.task)), (None, 0, 0))
    first, steps = start(people, plan), plan.steps(len(people.clients[0].y))
    norms = [
        np.sqrt(sum(np.square(np.asarray(g)).reshape(len(rows.y), -1).sum(1) for g in
                    each(first, *rows).values()))
        for rows in people.clients
    ]  # fmt: skip
    messages = undefended.messages
    return Sizes(
        message=float(np.median(np.linalg.norm(messages, axis=1))),
        coordinate=float(np.median(np.abs(messages))) / steps,
        gradient=float(np.median(np.concatenate(norms))),
    )


def flat(params: Params) -> np.ndarray:
    """`[P]`"""
    return np.concatenate([np.ravel(params[name]) for name in sorted(params)])
