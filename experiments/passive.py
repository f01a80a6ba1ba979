"""Passive attribute inference on a whole run: every seed, every client, every attack.

Each function maps a one-client attack of the library over seeds and clients and returns
guesses. None of them is given the truth; `scoring` compares.
"""

import functools
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.config import ConfigError
from experiments.federation import Problem
from experiments.settings import AttackConfig
from fljax import parallel
from fljax.attacks import attribute, gradient, reconstruct
from fljax.types import Exchange, Known, Params, Transcript


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
      index: `[seeds, C, F, L, n]` int8 inferred candidates.
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


def model_attack(
    problem: Problem, params: Params, known: Known, bounds: np.ndarray, *, kind: str
) -> np.ndarray:
    """Model-based attack with one model per client.

    Args:
      problem: for the loss.
      params: leaves `[seeds, C, ...]`.
      known: leaves `[seeds, C, n, ...]`.
      bounds: `[seeds, K, W]` candidate values.
      kind: of the attribute.

    Returns:
      `[seeds, C, n]` candidate index, or encoded value for a continuous attribute.
    """

    def one(item, _):
        params, known, candidates = item
        if kind == "continuous":
            return attribute.model_based_continuous(
                problem.loss_fn, params, known, candidates
            )
        return attribute.model_based(problem.loss_fn, params, known, candidates).index

    lead = known.y.shape[:2]
    values = np.broadcast_to(bounds[:, None], (*lead, *bounds.shape[1:]))
    items = jax.tree.map(_merge, (params, known, values))
    over = parallel.mesh()
    run = jax.jit(lambda items: parallel.map_items(one, items, (), over))
    return np.asarray(run(items)).reshape(*lead, -1)


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
) -> tuple[Grid, float]:
    """Gradient-based attack over round counts and learning rates.

    One compiled program serves all seeds, each of which is one call, so that progress
    can be shown. Returns the `Grid` and the seconds spent compiling.
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
                jax.random.fold_in(jax.random.key(seed), client),
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
            return guess.index.astype(jnp.int8), guess.dissimilarity

        return jax.lax.map(attack, counts)

    pairs = jnp.meshgrid(jnp.arange(num_clients), rates, indexing="ij")
    items = tuple(leaf.ravel() for leaf in pairs)
    over = parallel.mesh()
    numbers = np.asarray(seeds, np.uint32)
    stacked = (transcript, box.row, box.slot, box.count, known, candidates, numbers)

    def shared(index):
        return jax.tree.map(lambda leaf: leaf[index], stacked)

    begin = time.perf_counter()
    run = jax.jit(lambda items, shared: parallel.map_items(one, items, shared, over))
    run = run.lower(items, shared(0)).compile()
    compile_seconds = time.perf_counter() - begin
    found = []
    for seed in range(len(box.count)):
        found.append(jax.tree.map(np.asarray, run(items, shared(seed))))
        progress(seed + 1)
    index, dissimilarity = (np.stack(leaves) for leaves in zip(*found, strict=True))
    shape = (len(box.count), num_clients, len(rates), len(counts))
    return Grid(
        np.swapaxes(index.reshape(*shape, -1), 2, 3),
        np.swapaxes(dissimilarity.reshape(shape), 2, 3),
    ), compile_seconds


def _merge(leaf):
    return leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])


def flat_messages(
    transcript: Transcript, box: Inbox
) -> tuple[np.ndarray, np.ndarray, object]:
    """Sent and delta `[seeds, C, Q, P]` in float64, and how to unflatten `[..., P]`.

    For full participation: every client has the same number of messages.
    """
    seed = np.arange(len(box.count))[:, None, None]
    sent = jax.tree.map(lambda x: np.asarray(x)[seed, box.row], transcript.params)
    delta = jax.tree.map(
        lambda x: np.asarray(x)[seed, box.row, box.slot], transcript.delta
    )
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
    num_messages, needed = sent.shape[2], sent.shape[3] + 1
    if config.subset_rounds:
        chosen = list(config.subset_rounds)
        if len(chosen) < needed or max(chosen) >= num_messages:
            raise ConfigError(
                f"--attack_subset_rounds: expected at least {needed} messages below "
                f"{num_messages}, got {chosen}"
            )
        sent, delta = sent[:, :, chosen], delta[:, :, chosen]
    elif num_messages < needed:
        raise ConfigError(
            f"--num_rounds: reconstruct needs {needed} messages of every client, "
            f"got {num_messages}"
        )
    trials = 1 if config.subset_rounds else config.subset_trials

    def one(item):
        key, sent, delta = item
        return reconstruct.reconstruct_linear_subset(
            key, sent, delta, num_trials=trials
        )

    def clients_of(seed, sent, delta):
        keys = jax.random.split(jax.random.key(seed), len(sent))
        return jax.lax.map(one, (keys, sent, delta))

    with jax.enable_x64():
        found = jax.jit(lambda args: jax.lax.map(lambda a: clients_of(*a), args))(
            (np.asarray(seeds), sent, delta)
        )
        return jax.tree.map(np.asarray, found)
