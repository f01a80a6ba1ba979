"""The oracle's local model (Model-w-O): the best that any reconstruction could find.

It is made of the client's own rows, the sensitive column included: no attack, but what
attacks are compared with, on scoring's side of the wall.

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

from experiments.aia import scoring, single_client, tuning
from experiments.aia.adversary import Adversary, Attacked, of_seeds
from experiments.aia.scoring import Scoring
from experiments.aia.setup import Setup
from experiments.tabular import defense
from experiments.tabular.problem import local_update
from fljax.attacks import streams
from fljax.attacks.attribute import active, last_model
from fljax.attacks.estimates import Prediction
from fljax.results import Row
from fljax.types import Params

# The authors' ranges.
RANGES = {
    "learning_rate": active.Range(1e-3, 50.0, logarithmic=True),
    "weight_decay": active.Range(1e-4, 0.1, logarithmic=True),
    "beta1": active.Range(0.6, 0.999),
    "beta2": active.Range(0.6, 0.999),
}


def rows(setup: Setup, adversary: Adversary, scored: Scoring) -> list[Row]:
    """Every client's own optimum, and what equation 3 infers with it."""
    if setup.linear_regression:
        best = local_optima(setup)
        loss = None if scored.pooled else scoring.mean_loss(scored, best)
    else:
        best, loss = _search(setup)
    return scoring.rows(scored, _attacked(adversary, best, loss))


def reconstruction_rows(
    setup: Setup, adversary: Adversary, scored: Scoring, found: list[Attacked]
) -> list[Row]:
    """How far reconstructed models are from what they should be.

    Beside them stands the true optimum, unless it is asked for by itself.
    """
    best = local_optima(setup)
    results = []
    for attacked in found:
        params = attacked.prediction.details["params"]
        numbers = {"optimum_distance": _distance(params, best)}
        if true := setup.table.parameters:
            generating = {
                "bias": np.reshape(true["bias"], (1,)),
                "kernel": np.reshape(true["weights"], (-1, 1)),
            }
            numbers["parameter_distance"] = _distance(params, {"_": generating})
        if scored.pooled:
            numbers["pooled_loss"] = scoring.mean_loss(scored, params)
        only = attacked._replace(prediction=Prediction(None, numbers))
        results += scoring.rows(scored, only)
    if "oracle" in setup.config.attack.kinds:
        return results
    return results + scoring.rows(scored, _attacked(adversary, best, None))


def local_optima(setup: Setup) -> Params:
    """Least squares on each client's own rows in float64; leaves `[seeds, C, ...]`."""
    clients = setup.clients
    x, onehot = clients.rows.x, clients.datasets[0].num_onehot
    columns = np.eye(onehot + 1)[:, :onehot]
    flat = []
    for seed, sizes in enumerate(clients.sizes):
        design = np.concatenate(
            [
                np.ones((x.numeric.shape[1], 1)),  # the bias is the first leaf
                x.numeric[seed],
                columns[x.codes[seed]].sum(axis=1),
            ],
            axis=1,
        )
        y = clients.rows.y[seed].astype(float)
        parts = np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])
        flat.append([np.linalg.lstsq(design[rows], y[rows])[0] for rows in parts])
    return _unflatten(np.array(flat, np.float32), setup)


def _unflatten(flat: np.ndarray, setup: Setup) -> Params:
    """Models, leaves `[..., *shape]`, from flat ones `[..., P]`."""
    shapes = jax.eval_shape(setup.problem.model.init, jax.random.key(0))
    leaves, treedef = jax.tree.flatten(shapes)
    parts = np.split(flat, np.cumsum([leaf.size for leaf in leaves])[:-1], axis=-1)
    return treedef.unflatten(
        [
            part.reshape(*flat.shape[:-1], *leaf.shape)
            for part, leaf in zip(parts, leaves, strict=True)
        ]
    )


def _distance(params: Params, other: Params) -> np.ndarray:
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(other), strict=True)
    squares = (np.square(np.asarray(a, np.float64) - b) for a, b in pairs)
    return np.sqrt(sum(s.reshape(*s.shape[:2], -1).sum(axis=-1) for s in squares))


def _attacked(adversary: Adversary, best: Params, loss: np.ndarray | None) -> Attacked:
    value = [
        last_model.with_models(view, params)
        for view, params in zip(adversary.views, of_seeds(best), strict=True)
    ]
    numbers = {} if loss is None else {"local_loss": loss}
    prediction = Prediction(np.stack(value), numbers, {"params": best}, "oracle")
    clients = adversary.messages.has_messages
    return Attacked("model_oracle", prediction, clients)


def _search(setup: Setup) -> tuple[Params, np.ndarray]:
    """Best model, leaves `[seeds, C, ...]`, and its loss `[seeds, C]`."""
    config, problem, clients = setup.config, setup.problem, setup.clients
    if problem.bound_defense is not None:
        epochs = config.oracle.epochs
        bound = defense.for_epochs(problem.bound_defense, epochs)
        problem = problem._replace(bound_defense=bound)
    everyone = single_client.everyone(
        problem, clients, config.train, config.run.seeds,
        num_rounds=1, record_rounds=[0], epochs=config.oracle.epochs,
    )  # fmt: skip

    def one(me, settings, rows):
        stream = jax.random.fold_in(jax.random.key(me.seed), streams.ORACLE)
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

        numbered = (jnp.arange(config.oracle.trials), settings)
        models = single_client.trials(problem, trial, numbered)
        loss = lax.map(
            lambda p: single_client.loss(problem.loss_fn, p, rows, me), models
        )
        loss = jnp.where(jnp.isfinite(loss), loss, jnp.inf)
        best = jnp.argmin(loss)
        return jax.tree.map(lambda leaf: leaf[best], models), loss[best]

    settings = tuning.designs(
        RANGES, config.oracle.trials, config.run.seeds, clients.sizes.shape[1]
    )
    return single_client.each(one)(everyone, settings, clients)
