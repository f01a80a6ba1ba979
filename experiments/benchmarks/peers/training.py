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
    """Medians of what defenses clip, in a training without one: such clips bind.

    Attributes:
      message: L2 norm of a message.
      gradient: L2 norm of a row's gradient, in the first round's model.
      changes: percentile -> magnitude of a message's numbers, over its local steps.
    """

    message: float
    gradient: float
    changes: Mapping[int, float]


class Setting(NamedTuple):
    """What a defense is made for."""

    people: People
    plan: Plan
    sizes: Sizes


Gradient = Callable[[jax.Array, Params, Rows, np.ndarray], Params]
# (key, model, rows, mask [n]) -> gradient of the rows in the mask
Message = Callable[[Params, Params], Params]
# (model that was sent, model after a local epoch) -> model that leaves the client
Release = Callable[[int, bool], Params]
# (seed, whether a canary is there) -> all that is seen of one noisy sum or message
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
      release: of what noise is added to.
      simulated: text of `fljax.defenses.specs` that says the same, for attacks that know
        the defense; empty where there is none.
      delta: of a budget in that text.
      fixed: names of arrays that never move, which such attacks know, too.
    """

    epoch: Epoch | None = None
    message: Message | None = None
    after: Callable[[], None] | None = None
    stated: Callable[[], float | None] = lambda: None
    noise: NoiseSpec | None = None
    release: Release | None = None
    simulated: str = ""
    delta: float | None = None
    fixed: tuple[str, ...] = ()


class Trained(NamedTuple):
    """The end of a training: its `params`, and every message `[rounds * clients, P]`."""

    params: Params
    messages: np.ndarray


def train(
    people: People, plan: Plan, epoch: Epoch, shipped: Shipped, stem: str | None = None
) -> Trained:
    """Trains, and records every round.

    Args:
      people: who train.
      plan: how.
      epoch: local training, where `shipped` has none of its own.
      shipped: the defense.
      stem: path of the transcript; None to keep none.
    """
    epoch = shipped.epoch or epoch
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
    os.makedirs(os.path.dirname(stem), exist_ok=True)
    with transcript.Recorder(stem, about(plan)) as kept:
        yield kept.record


def about(plan: Plan) -> dict[str, Any]:
    """How clients train, for whoever reads a transcript."""
    return {
        "optimiser": "sgd", "learning_rate": plan.learning_rate, "local_epochs": 1,
        "batch_size": plan.batch_size,
    }  # fmt: skip


def start(people: People, plan: Plan) -> Params:
    """The first model: He's normal weights, no biases."""
    inputs, rng = people.held_out.x.shape[1], np.random.default_rng([plan.seed, 1])
    w1 = rng.normal(size=(inputs, plan.hidden)) * np.sqrt(2 / inputs)
    w2 = rng.normal(size=(plan.hidden, 1)) / np.sqrt(plan.hidden)
    found = {"w1": w1, "b1": np.zeros(plan.hidden), "w2": w2, "b2": np.zeros(1)}
    return {name: array.astype(np.float32) for name, array in found.items()}


def output(params: Any, x: Any) -> jax.Array:
    """`[]` of inputs `[inputs]`: a number, or a logit."""
    hidden = jnp.maximum(x @ params["w1"] + params["b1"], 0)
    return (hidden @ params["w2"] + params["b2"])[0]


@functools.cache
def loss_fn(task: str) -> losses.LossFn:
    """Of one row."""
    return losses.example_loss(output, losses.of_task(task))


def explained(params: Params, people: People) -> float:
    """Percent of the held-out targets' variation; a constant has 0."""
    x, y = people.held_out
    loss = np.mean(jax.vmap(loss_fn(people.task), (None, 0, 0))(params, x, y))
    every = np.ones((1, len(y)), bool)
    return float(fit.explained([loss], y[None], every, people.task)[0])


def flat(params: Params) -> np.ndarray:
    """`[P]`"""
    return np.concatenate([np.ravel(params[name]) for name in sorted(params)])
