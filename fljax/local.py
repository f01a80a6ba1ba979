"""What a client does with its batches, written for ONE client.

A `LocalUpdate` is three pure functions. The engine (`rounds`) calls `init` when a
client starts, `step` for each of its mini-batches and `final` when it is done; it
maps them over lanes of clients. Two more say what a client keeps from round to round,
if it does: the state of its optimiser. FedSGD needs nothing of its own: it is one step on
the full batch with learning rate 1, and the server's optimiser does the rest.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from fljax import in_place, losses, tree
from fljax.types import (
    Batch,
    EncodeFn,
    GradientFn,
    Key,
    Message,
    Params,
    PyTree,
    Sender,
)


class Memory(NamedTuple):
    """What a client keeps from round to round.

    Attributes:
      keep: `(carry) -> kept`, of a client that is done.
      resume: `(carry, kept) -> carry`, from `init` and what it kept in its last round.
    """

    keep: Callable[[PyTree], PyTree]
    resume: Callable[[PyTree, PyTree], PyTree]


class LocalUpdate(NamedTuple):
    """A client's training algorithm.

    Attributes:
      init: `(sent) -> carry`, from the params that the server sent.
      step: `(key, carry, sent, batch) -> carry`, one mini-batch; the key is consumed.
      final: `(key, carry, sent, sender) -> Message`; the key is consumed.
      memory: of a client between its rounds; None: it begins each from `init`.
    """

    init: Callable[[Params], PyTree]
    step: Callable[[Key, PyTree, Params, Batch], PyTree]
    final: Callable[[Key, PyTree, Params, Sender], Message]
    memory: Memory | None = None


class _Carry(NamedTuple):
    params: Params
    opt_state: optax.OptState
    loss: jax.Array  # [] sum over steps
    steps: jax.Array  # []


def sgd(
    loss_fn: losses.LossFn,
    optimiser: optax.GradientTransformation,
    *,
    proximal: float | jax.Array | None = None,
    decay: float = 1.0,
    keeps: bool = False,
    gradient: GradientFn | None = None,
    encode: EncodeFn | None = None,
) -> LocalUpdate:
    """Mini-batch training with any optax optimiser.

    Args:
      loss_fn: `(params, x, y) -> []` of one example; a step uses the batch mean.
      optimiser: optax transformation; plain SGD is `optax.sgd(learning_rate)`, whose
        steps on one-hot columns are taken `in_place`.
      proximal: mu of FedProx (Li et al. 2020): adds `mu/2 |params - sent|^2` to the loss.
        None leaves the term out.
      decay: in round t the optimiser's updates are `decay**t` times as large.
      keeps: whether a client's optimiser goes on from the state of its last round, as
        where a script makes it once; else it begins each round anew.
      gradient: takes the place of the gradient of the batch mean, e.g. that of a defense
        (`defenses`). The proximal term, which touches no data, is added after it.
      encode: makes of the delta what leaves the client, e.g. that of a defense.

    Returns:
      A `LocalUpdate`; its message's loss is the mean of the batch losses seen.

    Raises:
      ValueError: if `proximal` is a negative number, or `decay` is not > 0 and finite.
    """
    if isinstance(proximal, int | float) and not proximal >= 0:
        raise ValueError(f"proximal must be >= 0, got {proximal=}")
    if not 0 < decay < float("inf"):
        raise ValueError(f"decay must be > 0 and finite, got {decay=}")

    def mean_gradient(key, params, batch):
        del key
        loss, grads = jax.value_and_grad(losses.batch_loss, 1)(loss_fn, params, batch)
        return grads, loss

    gradient_fn = mean_gradient if gradient is None else gradient
    mean = gradient is None and proximal is None

    def init(sent):
        return _Carry(sent, optimiser.init(sent), jnp.zeros(()), jnp.zeros(()))

    def step(key, carry, sent, batch):
        if mean and in_place.applies(loss_fn, optimiser, carry.params):
            factor = 1.0 if decay == 1 else _power(decay, batch.round)
            params, loss = in_place.step(
                loss_fn, optimiser, carry.params, batch, factor
            )
            return _Carry(params, carry.opt_state, carry.loss + loss, carry.steps + 1)
        found = gradient_fn(key, carry.params, batch)
        grads, loss = tree.of_batch(found, carry.params)
        if proximal is not None:
            grads = jax.tree.map(
                lambda g, p, s: g + proximal * (p - s), grads, carry.params, sent
            )
        updates, opt_state = optimiser.update(grads, carry.opt_state, carry.params)
        if decay != 1:
            factor = _power(decay, batch.round)
            updates = jax.tree.map(lambda leaf: factor * leaf, updates)
        params = optax.apply_updates(carry.params, updates)
        return _Carry(params, opt_state, carry.loss + loss, carry.steps + 1)

    def final(key, carry, sent, sender):
        delta = jax.tree.map(jnp.subtract, sent, carry.params)
        if encode is not None:
            delta = tree.of_form("encode", encode(key, delta, sender), delta)
        return Message(delta, carry.loss / jnp.maximum(carry.steps, 1))

    memory = Memory(_state, _with_state) if keeps else None
    return LocalUpdate(init, step, final, memory)


def _state(carry: _Carry) -> optax.OptState:
    return carry.opt_state


def _with_state(carry: _Carry, state: optax.OptState) -> _Carry:
    return carry._replace(opt_state=state)


def _power(decay, round_):
    return jnp.power(jnp.float32(decay), round_)
