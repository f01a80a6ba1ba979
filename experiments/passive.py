"""Passive attribute inference on a whole run: every seed, every client, every attack.

Each function maps a one-client attack of the library over seeds and clients and returns
guesses. None of them is given the truth; `scoring` compares.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.federation import Problem
from experiments.settings import AttackConfig
from fljax import losses, parallel
from fljax.attacks import attribute, gradient, reconstruct
from fljax.types import Exchange, Known, Params, Transcript

Attacker = Callable[[Params, Known, np.ndarray], np.ndarray]


class Inbox(NamedTuple):
    """Where each client's messages lie in the transcript, oldest first.

    Attributes:
      row: `[seeds, C, Q]` recorded round; a client's last message fills up.
      slot: `[seeds, C, Q]` place within the round.
      count: `[seeds, C]` messages.
    """

    row: np.ndarray
    slot: np.ndarray
    count: np.ndarray


class Grid(NamedTuple):
    """Gradient-based attack for every setting; `F` round counts, `L` learning rates.

    Attributes:
      index: `[seeds, C, F, L, n]` int16 inferred candidates.
      dissimilarity: `[seeds, C, F, L]`.
    """

    index: np.ndarray
    dissimilarity: np.ndarray


def inbox(transcript: Transcript, num_clients: int) -> Inbox:
    """Finds every client's messages."""
    clients = np.asarray(transcript.client)  # [seeds, Q, K]
    lists = [
        [np.nonzero(one == client) for client in range(num_clients)] for one in clients
    ]
    count = np.array([[len(row) for row, _ in each] for each in lists])
    shape = (*count.shape, max(int(count.max()), 1))
    row, slot = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for seed, each in enumerate(lists):
        for client, (rows, slots) in enumerate(each):
            if len(rows):
                last = np.minimum(np.arange(shape[-1]), len(rows) - 1)
                row[seed, client], slot[seed, client] = rows[last], slots[last]
    return Inbox(row, slot, count)


def last_models(transcript: Transcript, box: Inbox) -> tuple[Params, Params]:
    """Last model returned by, and last model sent to, each client `[seeds, C, ...]`."""
    seed = np.arange(len(box.count))[:, None]
    row, slot = box.row[..., -1], box.slot[..., -1]
    sent = jax.tree.map(lambda leaf: leaf[seed, row], transcript.params)
    returned = jax.tree.map(
        lambda leaf, d: leaf - d[seed, row, slot], sent, transcript.delta
    )
    return returned, sent


def model_attacker(loss_fn: losses.LossFn, kind: str) -> Attacker:
    """Model-based attack with one model per client, compiled once.

    Args:
      loss_fn: loss of one example.
      kind: of the attribute.

    Returns:
      `(params [seeds, C, ...], known [seeds, C, n, ...], candidates [seeds, K, W]) ->
      [seeds, C, n]` candidate index, or encoded value for a continuous attribute.
    """

    def one(item, _):
        params, known, candidates = item
        if kind == "continuous":
            return attribute.model_based_continuous(loss_fn, params, known, candidates)
        return attribute.model_based(loss_fn, params, known, candidates).index

    over = parallel.mesh()
    run = jax.jit(lambda items: parallel.map_items(one, items, (), over))

    def attack(params, known, candidates):
        lead = known.y.shape[:2]
        values = np.broadcast_to(candidates[:, None], (*lead, *candidates.shape[1:]))
        items = jax.tree.map(_merge, (params, known, values))
        return np.asarray(run(items)).reshape(*lead, -1)

    return attack


def gradient_grid(
    problem: Problem,
    transcript: Transcript,
    box: Inbox,
    known: Known,
    candidates: np.ndarray,
    seeds: Sequence[int],
    config: AttackConfig,
    *,
    progress: Callable[[int], None],
) -> Grid:
    """Gradient-based attack over round counts and learning rates.

    One compiled program serves all seeds, each of which is one call, so that progress
    can be shown.
    """
    most = box.row.shape[-1]
    counts = jnp.asarray(sorted({min(r, most) for r in config.grad_rounds}), jnp.int32)
    rates = jnp.asarray(config.grad_learning_rates, jnp.float32)
    num_clients = box.count.shape[1]

    def one(item, shared):
        client, rate = item
        transcript, row, slot, count, known, candidates, seed = shared
        mine = Exchange(
            jax.tree.map(lambda leaf: leaf[row[client]], transcript.params),
            jax.tree.map(
                lambda leaf: leaf[row[client], slot[client]], transcript.delta
            ),
        )
        rows = jax.tree.map(lambda leaf: leaf[client], known)

        def attack(num_rounds):
            # The same draws for every setting: settings differ, luck does not.
            guess = gradient.gradient_based(
                _key(seed, 2, client),
                problem.loss_fn,
                mine,
                rows,
                candidates,
                num_rounds=jnp.clip(num_rounds, 1, jnp.maximum(count[client], 1)),
                optimiser=optax.sgd(rate),
                num_iterations=config.grad_iterations,
                temperature=config.grad_temperature,
                noise=config.grad_noise,
            )
            return guess.index.astype(jnp.int16), guess.dissimilarity

        return jax.lax.map(attack, counts)

    pairs = jnp.meshgrid(jnp.arange(num_clients), rates, indexing="ij")
    items = tuple(leaf.ravel() for leaf in pairs)
    over = parallel.mesh()
    numbers = np.asarray(seeds, np.uint32)
    stacked = (transcript, box.row, box.slot, box.count, known, candidates, numbers)

    def shared(index):
        return jax.tree.map(lambda leaf: leaf[index], stacked)

    run = jax.jit(lambda items, shared: parallel.map_items(one, items, shared, over))
    found = []
    for seed in range(len(box.count)):
        found.append(jax.tree.map(np.asarray, run(items, shared(seed))))
        progress(seed + 1)
    index, dissimilarity = (np.stack(leaves) for leaves in zip(*found, strict=True))
    shape = (len(box.count), num_clients, len(rates), len(counts))
    return Grid(
        np.swapaxes(index.reshape(*shape, -1), 2, 3),
        np.swapaxes(dissimilarity.reshape(shape), 2, 3),
    )


def _key(seed, purpose: int, client):
    """Stream of one attack on one client; purposes 0 and 1 belong to the training."""
    key = jax.random.fold_in(jax.random.key(seed), purpose)
    return jax.random.fold_in(key, client)


def _merge(leaf):
    return leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])


def flat_messages(
    transcript: Transcript, box: Inbox
) -> tuple[np.ndarray, np.ndarray, object]:
    """Sent and delta `[seeds, C, Q, P]` in float64, and how to unflatten `[..., P]`.

    Where clients took part unequally often, everyone's first messages are used, as many
    as the one with the fewest has.
    """
    seed = np.arange(len(box.count))[:, None, None]
    first = int(box.count.min())
    row, slot = box.row[..., :first], box.slot[..., :first]
    sent = jax.tree.map(lambda x: np.asarray(x)[seed, row], transcript.params)
    delta = jax.tree.map(lambda x: np.asarray(x)[seed, row, slot], transcript.delta)
    leaves, treedef = jax.tree.flatten(sent)
    shapes = [leaf.shape[3:] for leaf in leaves]
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def flatten(tree):
        parts = [leaf.reshape(*leaf.shape[:3], -1) for leaf in jax.tree.leaves(tree)]
        return np.concatenate(parts, axis=-1).astype(np.float64)

    def unflatten(flat):
        parts = np.split(np.asarray(flat, np.float32), cuts, axis=-1)
        return treedef.unflatten(
            [
                p.reshape(*flat.shape[:-1], *shape)
                for p, shape in zip(parts, shapes, strict=True)
            ]
        )

    return flatten(sent), flatten(delta), unflatten


def linear_reconstruction(sent: np.ndarray, delta: np.ndarray):
    """Algorithm 2 on all messages, `[seeds, C, Q, P]`, in float64."""
    with jax.enable_x64():
        # Messages travel as float32: their rounding is the smallest signal there is.
        kernel = functools.partial(reconstruct.reconstruct_linear, rcond=1e-6)
        found = jax.jit(jax.vmap(jax.vmap(kernel)))(sent, delta)
        return jax.tree.map(np.asarray, found)


def subset_reconstruction(
    sent: np.ndarray, delta: np.ndarray, seeds, config: AttackConfig
):
    """The authors' variant: one square system, chosen or searched for."""
    if config.subset_rounds:
        chosen = list(config.subset_rounds)
        sent, delta = sent[:, :, chosen], delta[:, :, chosen]
    trials = 1 if config.subset_rounds else config.subset_trials

    def one(item):
        key, sent, delta = item
        return reconstruct.reconstruct_linear_subset(
            key, sent, delta, num_trials=trials
        )

    def clients_of(seed, sent, delta):
        keys = jax.vmap(_key, (None, None, 0))(seed, 3, jnp.arange(len(sent)))
        return jax.lax.map(one, (keys, sent, delta))

    with jax.enable_x64():
        found = jax.jit(lambda args: jax.lax.map(lambda a: clients_of(*a), args))(
            (np.asarray(seeds), sent, delta)
        )
        return jax.tree.map(np.asarray, found)
