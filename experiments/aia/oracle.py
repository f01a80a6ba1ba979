"""The oracle's local model (Model-w-O): the best that any reconstruction could find.

For linear regression it is the solution of least squares. Otherwise it is trained on the
client's own rows by Adam with coupled weight decay: many trials of its settings, each
from a random initialisation of its own, all with the same batches, and the one with the
smallest training loss is kept.

Divergence: the authors search with Optuna's TPE and then train once more, from a new
initialisation, with the best settings, which loses the best trial's model.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from experiments.aia import (
    defense,
    model_based,
    passive,
    reconstruction,
    scoring,
    solo,
    tuning,
)
from experiments.aia.problem import local_update
from experiments.aia.scene import Kind, Prepared, Scene
from fljax.attacks.attribute import active
from fljax.results import Row
from fljax.types import Params

# The authors' ranges.
RANGES = {
    "learning_rate": active.Range(1e-3, 50.0, True),
    "weight_decay": active.Range(1e-4, 0.1, True),
    "beta1": active.Range(0.6, 0.999, False),
    "beta2": active.Range(0.6, 0.999, False),
}


def _check(prepared: Prepared) -> None:
    del prepared  # every model has a local optimum


def _rows(scene: Scene) -> list[Row]:
    victims = scene.victims
    if victims.linear:
        best = reconstruction.local_optima(scene.prepared.clients, victims.problem)
        loss = None if victims.pooled else model_based.mean_loss(victims, best)
    else:
        best, loss = _search(scene)
    rows = model_based.attack(victims, "model_oracle", "oracle", best)
    if loss is not None:
        rows += scoring.by_client(
            victims.labels, "model_oracle", "oracle", "local_loss", loss, victims.goal
        )
    return rows


def _search(scene: Scene) -> tuple[Params, np.ndarray]:
    """Best model, leaves `[seeds, C, ...]`, and its loss `[seeds, C]`."""
    told, prepared = scene.told, scene.prepared
    problem, clients = prepared.problem, prepared.clients
    if problem.shield is not None:
        epochs = told.oracle.epochs
        shield = defense.for_epochs(problem.shield, epochs)
        problem = problem._replace(shield=shield)
    everyone = solo.everyone(
        problem, clients, told.train, told.run.seeds,
        num_rounds=1, record_rounds=[0], epochs=told.oracle.epochs,
    )  # fmt: skip

    def one(me, settings, rows):
        stream = jax.random.fold_in(jax.random.key(me.seed), passive.ORACLE)
        init, batches = (jax.random.fold_in(stream, purpose) for purpose in (0, 1))
        init = jax.random.fold_in(init, me.client)

        def trial(item):
            number, (learning_rate, weight_decay, beta1, beta2) = item
            adam = optax.chain(
                optax.add_decayed_weights(weight_decay),
                optax.adam(learning_rate, beta1, beta2),
            )
            begin = problem.model.init(jax.random.fold_in(init, number))
            run = active.isolate(
                batches, begin, rows, me.schedule, np.zeros(1, np.int32),
                local=local_update(problem, me.index, adam),
            )  # fmt: skip
            return run.model

        numbered = (jnp.arange(told.oracle.trials), settings)
        models = solo.trials(problem, trial, numbered)
        loss = lax.map(lambda p: solo.loss(problem.loss_fn, p, rows, me), models)
        loss = jnp.where(jnp.isfinite(loss), loss, jnp.inf)
        best = jnp.argmin(loss)
        return jax.tree.map(lambda leaf: leaf[best], models), loss[best]

    settings = tuning.designs(
        RANGES, told.oracle.trials, told.run.seeds, clients.sizes.shape[1]
    )
    return solo.each(one)(everyone, settings, clients)


KIND = Kind(_check, _rows)
