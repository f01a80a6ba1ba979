"""How sure the adversary may be: what members of an ensemble say of one another.

A simulated client that leaves hardly more of the messages than their noise
(`decoding.EXPLAINS`) could have sent them. Were it the true one, a decoder that had learned
all others would name so many of a client's rows as it would, on average over clients. It
is counted on the client's rows, which no adversary has.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.lmra.clients import Clients
from experiments.lmra.reporting import EXPERIMENT, MODEL, Attacked
from experiments.lmra.settings import Settings, cases
from fljax.attacks.reconstruction import decoding
from fljax.results import Labels, Row

EXPLAINING = "members_explaining_percent"
EXPLAINED = "clients_explained_percent"
AGREEING = "members_agree_percent"
ACCURACY = "accuracy_beside_members_percent"


def rows(settings: Settings, clients: Clients, attacked: Attacked) -> list[Row]:
    """Of each draw: members that explain the messages, and clients with any such member.

    And over the clients with several: of how many rows such a member and all others say
    the same, and how many of their rows what was decoded names rightly.
    """
    run, found = settings.run, []
    labels = Labels(EXPERIMENT, clients.task.name, MODEL)
    for attack, each in attacked.decoded.items():
        if each.members is None:
            continue
        same = agreement(clients, each.members.optimum, each.members.others)
        explains = each.members.misfit <= decoding.EXPLAINS
        accuracy = attacked.scores[attack].train_accuracy_percent
        for at, case in enumerate(cases(run)):
            for number, seed in enumerate(run.seeds):
                told = of_draw(
                    *(leaf[at, number] for leaf in (same, explains, accuracy))
                )
                found += [
                    labels.row(attack, case.setting(run), seed, metric, value, count)
                    for metric, (value, count) in told.items()
                ]
    return found


def of_draw(same, explains, accuracy) -> dict[str, tuple[float, int]]:
    """Metric -> mean, and of how many.

    Args:
      same: `[A, S]` percent of the rows that a member and all others name alike; NaN
        where there are no others.
      explains: `[A, S]` bool, whether it explains the messages.
      accuracy: `[A]` percent.
    """
    told = {
        EXPLAINING: (100 * explains.mean(), explains.size),
        EXPLAINED: (100 * explains.any(axis=1).mean(), len(explains)),
    }
    compared = explains & np.isfinite(same)
    some = compared.any(axis=1)
    if some.any():
        count = np.maximum(compared.sum(axis=1), 1)
        alike = np.where(compared, same, 0).sum(axis=1) / count
        told[AGREEING] = alike[some].mean(), int(some.sum())
        told[ACCURACY] = accuracy[some].mean(), int(some.sum())
    return told


def agreement(clients: Clients, models: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Percent of a client's training rows that two models name alike.

    Args:
      clients: whose rows are named.
      models: `[cases, seeds, A, S, P]`.
      others: likewise.

    Returns:
      `[cases, seeds, A, S]`; NaN where either is not finite.
    """
    task, attacked = clients.task, models.shape[2]
    unravel = ravel_pytree(task.model.init(jax.random.key(0)))[1]
    own = jax.tree.map(lambda leaf: leaf[:, :attacked], clients.own)

    def share(one, other, own):
        def named(theta):
            params = unravel(theta)
            return jax.vmap(task.model.apply, (None, 0))(params, own.rows.x) > 0

        same = named(one) == named(other)
        percent = 100 * (same & own.mask).sum() / own.mask.sum()
        both = jnp.isfinite(one).all() & jnp.isfinite(other).all()
        return jnp.where(both, percent, jnp.nan)

    over_clients = jax.vmap(jax.vmap(share, (0, 0, None)))
    every = jax.jit(jax.vmap(jax.vmap(over_clients), (0, 0, None)))
    models, others = (np.asarray(each, np.float32) for each in (models, others))
    return np.asarray(every(models, others, own))
