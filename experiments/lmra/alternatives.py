"""What messages leave open: how clients that explain them would name a client's rows.

A simulated client that leaves no more of the messages than their noise could have sent
them. Where the local optima of such clients name rows otherwise than the decoded model,
nothing in the messages says who is right.
"""

from collections.abc import Mapping

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.lmra.clients import Clients
from experiments.lmra.reporting import EXPERIMENT, MODEL
from experiments.lmra.settings import Settings, cases
from fljax.attacks.reconstruction.decoding import Decoded
from fljax.results import Labels, Row

EXPLAINING = "alternatives_explaining_percent"
AGREEING = "alternatives_agree_percent"
_EXPLAINED = 2.0  # misfit over noise; one that was learned from noisy messages has 1.4


def rows(
    settings: Settings, clients: Clients, decoded: Mapping[str, Decoded]
) -> list[Row]:
    """Of each draw: which alternatives explain the messages, and what these name alike.

    Of all clients together; the second only where there is such an alternative.
    """
    run, found = settings.run, []
    labels = Labels(EXPERIMENT, clients.task.name, MODEL)
    for attack, each in decoded.items():
        if each.alternatives is None:
            continue
        same = agreement(clients, each.estimate, each.alternatives.optimum)
        explains = each.alternatives.misfit < _EXPLAINED
        for at, case in enumerate(cases(run)):
            for seed, own, fits in zip(run.seeds, same[at], explains[at], strict=True):
                where = attack, case.setting(run), seed
                share = 100 * fits.mean()
                found.append(labels.row(*where, EXPLAINING, share, fits.size))
                if fits.any():
                    alike = own[fits].mean()
                    found.append(labels.row(*where, AGREEING, alike, int(fits.sum())))
    return found


def agreement(clients: Clients, models: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Percent of a client's training rows that each of the others names as its model does.

    Args:
      clients: whose rows are named.
      models: `[cases, seeds, A, P]`.
      others: `[cases, seeds, A, S, P]`.

    Returns:
      `[cases, seeds, A, S]`.
    """
    task, attacked = clients.task, models.shape[2]
    unravel = ravel_pytree(task.model.init(jax.random.key(0)))[1]
    own = jax.tree.map(lambda leaf: leaf[:, :attacked], clients.own)

    def one(theta, others, own):
        def named(theta):
            params = unravel(theta)
            return jax.vmap(task.model.apply, (None, 0))(params, own.rows.x) > 0

        mine = named(theta)

        def share(other):
            return 100 * ((named(other) == mine) & own.mask).sum() / own.mask.sum()

        return jax.vmap(share)(others)

    over_seeds = jax.vmap(jax.vmap(one))
    every = jax.jit(jax.vmap(over_seeds, (0, 0, None)))
    models, others = (np.asarray(each, np.float32) for each in (models, others))
    return np.asarray(every(models, others, own))
