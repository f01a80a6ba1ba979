"""What an attack of an audit is given, and what it gives back.

Neither holds the truth: it is in `scoring.Truth`, which no attack imports.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses, parallel
from fljax.auditing.messages import Messages
from fljax.auditing.rates import Pace
from fljax.auditing.settings import AuditConfig
from fljax.types import Array, Exchange, Key, Known, PyTree


class Pool(NamedTuple):
    """The adversary's own rows: inputs `[N, D]` and classes `[N]`."""

    x: np.ndarray
    y: np.ndarray


class Evidence(NamedTuple):
    """All that the adversary has of the audited clients `C`.

    Attributes:
      messages: theirs.
      known: public columns and targets of their rows, leaves `[C, n, ...]`.
      candidates: `[K, W]` values that the sensitive block may take, or its range.
      continuous: whether it is a number.
      loss_fn: of one example, the inputs as `[public | sensitive]`.
      output: `(params, inputs [D]) -> outputs` of the model.
      pace: how the clients train, as far as it is known.
      task: regression, binary or multiclass.
      linear: whether the model is known to be linear.
      classes: outputs of the model.
      proxy: the adversary's own rows, or None.
      told: how hard to look.
    """

    messages: Messages
    known: Known
    candidates: np.ndarray
    continuous: bool
    loss_fn: losses.LossFn
    output: Callable
    pace: Pace
    task: str
    linear: bool
    classes: int
    proxy: Pool | None
    told: AuditConfig

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each client `[C]`."""
        return np.asarray(self.known.mask).sum(axis=1)


class Guess(NamedTuple):
    """What an attack says of each client's sensitive column.

    Attributes:
      value: `[C, n]` number of the candidate, -1 for none; for a continuous attribute
        its encoded value.
      said: diagnostics, metric -> `[C]`.
      setting: what the adversary needs.
    """

    value: np.ndarray
    said: dict[str, np.ndarray]
    setting: str = "passive"


class Shares(NamedTuple):
    """What an attack says of each client's labels, `[C, K]`."""

    value: np.ndarray
    setting: str = "passive"
    baseline: bool = False


class Rebuilt(NamedTuple):
    """Rows that an attack found in one message of each client, `[C, B, D]`."""

    value: np.ndarray
    setting: str = "passive"


class Skipped(NamedTuple):
    """Why an attack does not apply."""

    why: str


Answer = Guess | Shares | Rebuilt | Skipped
Answers = dict[str, Answer]


def key(seed: int, purpose: int, client) -> Key:
    """Stream of one purpose for one client, who is numbered from 0."""
    stream = jax.random.fold_in(jax.random.key(seed), purpose)
    return jax.random.fold_in(stream, client)


def over_clients(fun: Callable, evidence: Evidence, *more: Array) -> PyTree:
    """`fun(number, exchange, known, *more)` of every client, leaves `[C, ...]`.

    Clients with equally many messages are one compiled program over all devices.

    Args:
      fun: the attack on one client, who has her number, her messages `[Q, ...]`, what
        is known of her rows, and her entry of each of `more`.
      evidence: of all.
      more: `[C, ...]`.
    """
    box = evidence.messages

    def one(item, shared):
        number, row, slot, *rest = item
        seen, known = shared
        mine = Exchange(
            jax.tree.map(lambda leaf: leaf[row], seen.params),
            jax.tree.map(lambda leaf: leaf[row, slot], seen.delta),
        )
        hers = jax.tree.map(lambda leaf: leaf[number], known)
        return fun(number, mine, hers, *rest)

    shared = jax.tree.map(jnp.asarray, (box.seen, evidence.known))
    found, order = [], []
    for count in np.unique(box.count):
        group = np.flatnonzero(box.count == count)
        items = (
            group, box.row[group, :count], box.slot[group, :count],
            *(np.asarray(leaf)[group] for leaf in more),
        )  # fmt: skip
        over = parallel.mesh(min(len(group), jax.device_count()))
        run = jax.jit(lambda i, s, over=over: parallel.map_items(one, i, s, over))
        found.append(jax.tree.map(np.asarray, run(items, shared)))
        order.append(group)
    back = np.argsort(np.concatenate(order))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[back], *found)
