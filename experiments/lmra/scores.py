"""What decoded models are worth: on a client's rows, on others, and for attacks."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.lmra import attack
from experiments.lmra.clients import ClientRows, Clients
from fljax.attacks import attribute


class Scores(NamedTuple):
    """Of one kind of model; leaves `[cases, seeds, A]`, in percent where so named.

    Attributes:
      train_accuracy_percent: on the client's own training rows.
      test_accuracy_percent: on its held-out rows.
      membership_auc: area under the curve of membership inference by loss, 0 to 1: the
        chance that a training row has a smaller loss than a held-out one; 0.5 is chance.
      optimum_distance: of the model to the local optimum, over the optimum's norm.
      aia_accuracy_percent: of model-based attribute inference on its training rows;
        NaN where there is no attribute.
    """

    train_accuracy_percent: np.ndarray
    test_accuracy_percent: np.ndarray
    membership_auc: np.ndarray
    optimum_distance: np.ndarray
    aia_accuracy_percent: np.ndarray


class Judge:
    """Scores models of the attacked clients; compiled once for all kinds of model."""

    def __init__(self, clients: Clients, optima: np.ndarray, attacked: int):
        self._clients = clients
        self._optima = optima[:, :attacked]
        self._parts = tuple(
            jax.tree.map(lambda leaf: leaf[:, :attacked], part)
            for part in (clients.own, clients.held)
        )
        over_clients = jax.vmap(self._one)
        over_seeds = jax.vmap(over_clients)
        self._all = jax.jit(jax.vmap(over_seeds, (0, None, None, None)))

    def __call__(self, models: np.ndarray) -> Scores:
        """Of `models [cases, seeds, A, P]`."""
        models = np.asarray(models, np.float32)
        optima = np.asarray(self._optima, np.float32)
        return jax.tree.map(np.asarray, self._all(models, optima, *self._parts))

    def _one(self, theta, optimum, own: ClientRows, held: ClientRows) -> Scores:
        task = self._clients.task
        unravel = ravel_pytree(task.model.init(jax.random.key(0)))[1]
        params = unravel(theta)

        def accuracy(part):
            logits = jax.vmap(task.model.apply, (None, 0))(params, part.rows.x)
            right = (logits > 0) == (part.rows.y > 0.5)
            return 100 * jnp.sum(right & part.mask) / jnp.sum(part.mask)

        def loss(part):
            rows = part.rows
            return jax.vmap(task.loss_fn, (None, 0, 0))(params, rows.x, rows.y)

        gap = jnp.linalg.norm(theta - optimum)
        return Scores(
            accuracy(own),
            accuracy(held),
            _auc(loss(own), own.mask, loss(held), held.mask),
            gap / jnp.linalg.norm(optimum),
            self._attribute(params, own),
        )

    def _attribute(self, params, own: ClientRows):
        task = self._clients.task
        if task.candidates is None:
            return jnp.full((), jnp.nan)
        width = task.candidates.shape[1]
        known = attribute.conceal(own.rows.x, own.rows.y, own.mask, width=width)
        right = (attack.infer_attribute(task, params, known) == own.truth) & own.mask
        return 100 * jnp.sum(right) / jnp.sum(own.mask)


def label_majority(clients: Clients, attacked: int) -> np.ndarray:
    """`[seeds, A]` percent of naming the more frequent label of each client."""
    mask, y = clients.own.mask[:, :attacked], clients.own.rows.y[:, :attacked]
    share = (mask & (y > 0.5)).sum(axis=2) / mask.sum(axis=2)
    return 100 * np.maximum(share, 1 - share)


def attribute_majority(clients: Clients, attacked: int) -> np.ndarray | None:
    """`[seeds, A]` percent of naming each client's most frequent value."""
    if clients.task.candidates is None:
        return None
    mask, truth = (a[:, :attacked] for a in (clients.own.mask, clients.own.truth))
    count = [
        (mask & (truth == k)).sum(axis=2) for k in range(len(clients.task.candidates))
    ]
    return 100 * np.max(count, axis=0) / mask.sum(axis=2)


def relative_distances(optima: np.ndarray) -> np.ndarray:
    """`[seeds, C, C]` of local optima, over the mean of the two norms (Figure 1a)."""
    norms = np.linalg.norm(optima, axis=-1)
    gaps = np.linalg.norm(optima[:, :, None] - optima[:, None], axis=-1)
    return 2 * gaps / (norms[:, :, None] + norms[:, None])


def _auc(members, member_mask, others, other_mask):
    """Chance that a member's loss is below another's, ties counting half."""
    ranked = jnp.sort(jnp.where(other_mask, others, jnp.inf))
    total = jnp.sum(other_mask)
    above = total - jnp.minimum(jnp.searchsorted(ranked, members, side="right"), total)
    at_least = total - jnp.searchsorted(ranked, members, side="left")
    chance = (above + jnp.maximum(at_least, above)) / (2 * total)
    return jnp.sum(jnp.where(member_mask, chance, 0)) / jnp.sum(member_mask)
