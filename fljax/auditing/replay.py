"""Messages that clients might have sent who train on their true rows as was declared.

With batches of their own: what a simulation of the mean leaves of these it leaves of honest ones.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from fljax import losses
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.types import Batch, Params

_MOST_STEPS = 10**6  # of all messages
_OPTIMISERS = ("sgd", "adam", "adamw")


def sent_again(view: AdversaryView) -> AdversaryView | None:
    """The view of other messages, of the same clients and models; None if it would be long.

    Only of single messages of undefended clients, with known rules and without memory.

    Args:
      view: of somebody who knows all of the rows.
    """
    training, seen, places = view.training, view.transcript, view.messages
    assert seen is not None and places is not None
    told = view.sees == "messages" and not view.defense and not training.missing
    plain = not training.dropout and not training.remembers
    known = training.algorithm in ("fed_avg", "fed_prox", "fed_sgd")
    if not (told and plain and known and training.optimiser in _OPTIMISERS):
        return None
    steps = training.local_steps(view.sizes)
    if np.sum(steps * np.asarray(places.count)) > _MOST_STEPS:
        return None
    rng = np.random.default_rng(view.seed)
    program = _program(view.loss_fn, training)
    delta = jax.tree.map(np.array, seen.delta)
    factors = training.factors(np.asarray(seen.round)).astype(np.float32)
    for client, (count, own) in enumerate(zip(places.count, steps, strict=True)):
        kept = np.asarray(view.known.mask)[client]
        rows = jax.tree.map(lambda leaf, c=client: np.asarray(leaf)[c], view.known)
        which = np.asarray(places.row)[client][:count]
        sent = jax.tree.map(lambda leaf, w=which: np.asarray(leaf)[w], seen.params)
        order = np.stack([_batches(rng, kept, int(own), training) for _ in which])
        moved = program(rows, sent, order, factors[which])
        at = which, np.asarray(places.slot)[client][:count]
        jax.tree.map(lambda whole, new, at=at: whole.__setitem__(at, new), delta, moved)
    return view._replace(transcript=seen._replace(delta=delta))


def _batches(
    rng: np.random.Generator, kept: np.ndarray, steps: int, training: LocalTraining
) -> np.ndarray:
    """`[K, B]` rows of each step, -1 for none."""
    rows = np.flatnonzero(kept)
    size = training.batch_size or len(rows)
    found: list[np.ndarray] = []
    while len(found) < steps:
        order = rng.permutation(rows)
        parts = [order[at : at + size] for at in range(0, len(order), size)]
        if training.drop_last and len(parts[-1]) < size:
            parts.pop()
        found += parts
    return np.stack(
        [np.pad(p, (0, size - len(p)), constant_values=-1) for p in found[:steps]]
    )


@functools.lru_cache(maxsize=4)
def _program(loss_fn: losses.LossFn, training: LocalTraining) -> Callable:
    """`(rows, sent [Q, ...], order [Q, K, B], factors [Q]) -> sent minus returned`."""
    rate, decay = training.learning_rate, training.weight_decay
    mu = (training.proximal or 0.0) * (training.algorithm == "fed_prox")
    assert rate is not None
    rule = {
        "sgd": lambda: optax.sgd(rate, training.momentum or None),
        "adam": lambda: optax.adam(rate),
        "adamw": lambda: optax.adamw(rate, weight_decay=decay),
    }[training.optimiser]()
    if decay and training.optimiser != "adamw":
        rule = optax.chain(optax.add_decayed_weights(decay), rule)

    def message(rows, sent: Params, order, factor):
        def step(carry, at):
            params, state = carry
            x, y = jax.tree.map(lambda leaf: leaf[at], (rows.public, rows.y))
            grads = jax.grad(losses.batch_loss, 1)(
                loss_fn, params, Batch(x, y, at >= 0)
            )
            grads = jax.tree.map(lambda g, p, s: g + mu * (p - s), grads, params, sent)
            moves, state = rule.update(grads, state, params)
            moves = jax.tree.map(lambda move: factor * move, moves)
            return (optax.apply_updates(params, moves), state), None

        (returned, _), _ = lax.scan(step, (sent, rule.init(sent)), order)
        return jax.tree.map(jnp.subtract, sent, returned)

    @jax.jit
    def messages(rows, sent, order, factors):
        return lax.map(lambda each: message(rows, *each), (sent, order, factors))

    return messages
