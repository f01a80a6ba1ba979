"""How large what defenses clip is without one, so that their clips can bind.

Found on the clients' own rows, which no epsilon here counts.
"""

import jax
import numpy as np

from experiments.benchmarks.peers import training
from experiments.benchmarks.peers.rows import People
from experiments.benchmarks.peers.training import Plan, Sizes

PERCENTILES = (90, 99)


def measure(people: People, plan: Plan, messages: np.ndarray) -> Sizes:
    """Sizes of what a training without defense sent, `messages [rounds * clients, P]`."""
    each = jax.vmap(jax.grad(training.loss_fn(people.task)), (None, 0, 0))
    first, steps = training.start(people, plan), plan.steps(len(people.clients[0].y))
    norms = [
        np.sqrt(sum(np.square(np.asarray(g)).reshape(len(rows.y), -1).sum(1) for g in
                    each(first, *rows).values()))
        for rows in people.clients
    ]  # fmt: skip
    each_step = np.abs(messages) / steps
    return Sizes(
        message=float(np.median(np.linalg.norm(messages, axis=1))),
        gradient=float(np.median(np.concatenate(norms))),
        changes={at: float(np.percentile(each_step, at)) for at in PERCENTILES},
    )
