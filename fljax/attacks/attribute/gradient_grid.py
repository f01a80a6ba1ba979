"""`grad`: equation 2 over a grid of messages and learning rates.

The highest cosine similarity chooses; no truth is needed for that. Every setting of a
client draws the same, so that settings differ and luck does not.

Divergence: the authors choose one setting for all clients, as `experiments.aia` does; here
each client has its own.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.attribute import gradient
from fljax.attacks.each_client import Client, Task, over_items, training_task
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.groups import Group, over_groups
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.transcript import views
from fljax.types import Known


class Settings(NamedTuple):
    """How hard to look.

    Attributes:
      rounds: numbers of first messages tried.
      learning_rates: of the search, tried.
      iterations: of the search.
      temperature: tau of the relaxation.
      noise: of a binary attribute.
    """

    rounds: tuple[int, ...] = (1, 5, 10, 20, 50, 100)
    learning_rates: tuple[float, ...] = (1e2, 1e3, 1e4, 1e5, 1e6)
    iterations: int = 100
    temperature: float = 1.0
    noise: gradient.Noise = "gumbel"


class Grid(NamedTuple):
    """Every setting's outcome.

    Attributes:
      rounds: `[F]` numbers of messages, increasing.
      learning_rates: `[L]`.
      index: `[C, F, L, n]` int16 candidates; zeros for a client without a message, -1
        for one who is in none of the sums that are used.
      dissimilarity: `[C, F, L]` mean of 1 - cosine over the messages used; NaN there.
    """

    rounds: np.ndarray
    learning_rates: np.ndarray
    index: np.ndarray
    dissimilarity: np.ndarray


def grid(view: AdversaryView, settings: Settings) -> Grid:
    """The attack with every number of messages and every learning rate."""
    assert view.messages is not None
    most, member = view.messages.row.shape[-1], None
    if view.transcript is not None and view.transcript.member is not None:
        member = view.transcript.member
        most = member.shape[0] * member.shape[1]  # sums, more than anybody is in
    rounds = np.unique(np.minimum(settings.rounds, most)).astype(np.int32)
    rates = np.asarray(settings.learning_rates, np.float32)
    count = len(view.clients)
    tried = settings._replace(rounds=tuple(map(int, rounds)))
    static = training_task(view, tried)
    if member is not None:
        return Grid(rounds, rates, *over_groups(_of_group, static, view))
    which = np.repeat(np.arange(count), len(rates))
    index, far = over_items(_one, static, view, which, np.tile(rates, count))
    shape = (count, len(rates), len(rounds))
    return Grid(
        rounds,
        rates,
        np.swapaxes(index.reshape(*shape, -1), 1, 2),
        np.swapaxes(far.reshape(shape), 1, 2),
    )


def run(view: AdversaryView, settings: Settings) -> Estimates:
    """The best setting of each client; `details["grid"]` has all."""
    found = grid(view, settings)
    # As ties go: the first learning rate, then the fewest messages.
    far = np.swapaxes(found.dissimilarity, 1, 2).reshape(len(view.clients), -1)
    index = np.swapaxes(found.index, 1, 2).reshape(*far.shape, -1)
    best = np.argmin(np.where(np.isnan(far), np.inf, far), axis=1)[:, None]
    value = np.take_along_axis(index, best[..., None], axis=1)[:, 0].astype(np.int32)
    cosine = 1 - np.take_along_axis(far, best, axis=1)[:, 0]
    return {"grad": Prediction(value, {"cosine": cosine}, {"grid": found})}


def _one(static: Task, client: Client, rate: jax.Array):
    counts = jnp.asarray(static.settings.rounds, jnp.int32)

    def attack(number):
        return _search(static, client, client.known, rate, number)

    return views.if_messages(client.places, lambda: jax.lax.map(attack, counts))


def _of_group(static: Task, group: Group):
    """All rows of a group as those of one client, but for who was absent from a round."""
    clients, rows = group.known.mask.shape
    known = jax.tree.map(
        lambda leaf: leaf.reshape(clients * rows, *leaf.shape[2:]), group.known
    )
    weight = jnp.einsum(
        "qs,qsm->qm", group.share, jax.nn.one_hot(group.member, clients)
    )
    sizes = jnp.maximum(jnp.sum(group.known.mask, axis=1), 1)
    of_row = weight / sizes[None]  # a client's share, over its rows
    present = jnp.repeat(of_row, rows, axis=1)
    numbers = jnp.asarray(static.settings.rounds, jnp.int32)
    used = jnp.clip(numbers, 1, jnp.maximum(group.places.count, 1))
    came = jnp.cumsum(weight > 0, axis=0)[used - 1].T > 0  # [clients, F]

    def attack(setting):
        number, rate = setting
        return _search(static, group, known, rate, number, present)

    numbers, rates = jnp.meshgrid(
        numbers, jnp.asarray(static.settings.learning_rates), indexing="ij"
    )
    index, far = jax.lax.map(attack, (numbers.ravel(), rates.ravel()))
    index = jnp.moveaxis(index.reshape(*numbers.shape, clients, rows), 2, 0)
    far = jnp.where(came[..., None], far.reshape(numbers.shape), jnp.nan)
    return jnp.where(came[..., None, None], index, -1), far


def _search(
    static: Task, seen: Client | Group, known: Known, rate, number, present=None
):
    """One setting's values and mismatch."""
    settings = static.settings
    guess = gradient.gradient_based(
        streams.key(seen.seed, streams.GRADIENT, seen.id),
        static.loss_fn,
        seen.exchange,
        known,
        seen.candidates,
        num_rounds=jnp.clip(number, 1, jnp.maximum(seen.places.count, 1)),
        optimiser=optax.sgd(rate),
        num_iterations=settings.iterations,
        temperature=settings.temperature,
        noise=settings.noise,
        present=present,
    )
    return guess.index.astype(jnp.int16), guess.dissimilarity


NEEDS = Needs(views=("messages", "sum", "models"), members=True, categorical=True)
SPEC = AttackSpec("grad", NEEDS, run, Settings())
