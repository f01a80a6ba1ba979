"""Algorithm 2 on a whole run, for linear regression, beside the true local optimum."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia import model_based, passive, scoring
from experiments.aia.clients import Clients
from experiments.aia.problem import Problem
from experiments.aia.scene import Kind, Prepared, Scene, Victims
from experiments.aia.settings import AttackConfig
from fljax.attacks.reconstruction import least_squares
from fljax.driver.config import ConfigError
from fljax.results import Row
from fljax.transcript import views
from fljax.types import Params


def check_messages(prepared: Prepared, recorded: np.ndarray, source: str) -> None:
    """A linear model needs one message more than it has parameters.

    Args:
      prepared: from `pipeline.prepare`.
      recorded: `[seeds, Q, K]` client of every message.
      source: what decides how many there are.
    """
    clients, problem = prepared.clients, prepared.problem
    needed = 1 + sum(leaf.size for leaf in jax.tree.leaves(_shapes(problem)))
    everyone = range(clients.sizes.shape[1])
    fewest = min((recorded == c).sum(axis=(1, 2)).min() for c in everyone)
    if fewest < needed:
        raise ConfigError(
            f"{source}: reconstruct needs {needed} messages of every client, "
            f"got {fewest}"
        )
    chosen = prepared.told.attack.subset_rounds
    if chosen and (len(set(chosen)) < needed or max(chosen) >= fewest):
        raise ConfigError(
            f"--attack_subset_rounds: expected at least {needed} different messages "
            f"below {fewest}, got {len(set(chosen))} up to {max(chosen)}"
        )


def local_optima(clients: Clients, problem: Problem) -> Params:
    """Least squares on each client's own rows in float64; leaves `[seeds, C, ...]`."""
    dataset = clients.datasets[0]
    x = clients.rows.x
    onehot = np.eye(dataset.num_onehot + 1)[:, : dataset.num_onehot]
    flat = []
    for seed, sizes in enumerate(clients.sizes):
        design = np.concatenate(
            [
                np.ones((x.numeric.shape[1], 1)),  # the bias is the first leaf
                x.numeric[seed],
                onehot[x.codes[seed]].sum(axis=1),
            ],
            axis=1,
        )
        parts = np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])
        flat.append(
            [
                np.linalg.lstsq(design[rows], clients.rows.y[seed][rows].astype(float))[
                    0
                ]
                for rows in parts
            ]
        )
    return _unflatten(np.array(flat), problem)


def _check(prepared: Prepared) -> None:
    told = prepared.told
    if told.model.name != "linear" or prepared.table.task != "regression":
        raise ConfigError(
            "--attack_kinds: reconstruct needs --model_name=linear and a "
            "regression target"
        )
    if told.run.transcript is None:
        recorded = prepared.problem.schedule.recorded_clients
        check_messages(prepared, recorded, "--num_rounds")


def _rows(scene: Scene) -> list[Row]:
    """Algorithm 2, the authors' variant of it, and the true local optimum."""
    victims, told = scene.victims, scene.told
    # Where clients took part unequally often, as many messages as the one with fewest.
    alike = views.first(scene.view, int(scene.view.count.min()))
    sent, delta = views.flat(scene.seen, alike)
    found = {
        "reconstruct": _linear(sent, delta),
        "reconstruct_subset": _subset(sent, delta, told.run.seeds, told.attack),
    }
    best = local_optima(scene.prepared.clients, victims.problem)
    rows = []
    for name, estimate in found.items():
        params = _unflatten(estimate.estimate, victims.problem)
        rows += model_based.attack(victims, name, "passive", params)
        rows += _describe(victims, scene.prepared.clients, name, params, best)
        for metric, values in (
            ("rank", estimate.rank),
            ("determined", estimate.determined),
        ):
            rows += scoring.by_client(
                victims.labels, name, "passive", metric, values * 1.0, victims.goal
            )
    if "oracle" not in told.attack.kinds:
        rows += model_based.attack(victims, "model_oracle", "oracle", best)
    return rows


def _describe(victims: Victims, clients, name, params, best) -> list[Row]:
    """Distances of an estimate and, where rows are pooled, its loss on them."""
    numbers = {"optimum_distance": _distance(params, best)}
    true = clients.datasets[0].table.parameters
    if true:
        generating = {
            "bias": np.reshape(true["bias"], (1,)),
            "kernel": np.reshape(true["weights"], (-1, 1)),
        }
        numbers["parameter_distance"] = _distance(params, {"_": generating})
    if victims.pooled:
        numbers["pooled_loss"] = model_based.mean_loss(victims, params)
    rows = []
    for metric, values in numbers.items():
        rows += scoring.by_client(
            victims.labels, name, "passive", metric, values, victims.goal
        )
    return rows


def _distance(params, other) -> np.ndarray:
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(other), strict=True)
    squares = (np.square(np.asarray(a, np.float64) - b) for a, b in pairs)
    return np.sqrt(sum(s.reshape(*s.shape[:2], -1).sum(axis=-1) for s in squares))


def _unflatten(flat: np.ndarray, problem: Problem) -> Params:
    """Models, leaves `[..., *shape]`, from flat ones `[..., P]`."""
    leaves, treedef = jax.tree.flatten(_shapes(problem))
    cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]
    parts = np.split(np.asarray(flat, np.float32), cuts, axis=-1)
    return treedef.unflatten(
        [
            part.reshape(*flat.shape[:-1], *leaf.shape)
            for part, leaf in zip(parts, leaves, strict=True)
        ]
    )


def _shapes(problem: Problem) -> Params:
    return jax.eval_shape(problem.model.init, jax.random.key(0))


def _linear(sent: np.ndarray, delta: np.ndarray):
    """Algorithm 2 on all messages, `[seeds, C, Q, P]`, in float64."""
    with jax.enable_x64():
        # Messages travel as float32: their rounding is the smallest signal there is.
        kernel = functools.partial(least_squares.reconstruct_linear, rcond=1e-6)
        found = jax.jit(jax.vmap(jax.vmap(kernel)))(sent, delta)
        return jax.tree.map(np.asarray, found)


def _subset(sent: np.ndarray, delta: np.ndarray, seeds, config: AttackConfig):
    """The authors' variant: one square system, chosen or searched for."""
    if config.subset_rounds:
        chosen = list(config.subset_rounds)
        sent, delta = sent[:, :, chosen], delta[:, :, chosen]
    trials = 1 if config.subset_rounds else config.subset_trials

    def one(item):
        key, sent, delta = item
        return least_squares.reconstruct_linear_subset(
            key, sent, delta, num_trials=trials
        )

    def clients_of(seed, sent, delta):
        everyone = jnp.arange(len(sent))
        keys = jax.vmap(passive.key, (None, None, 0))(seed, passive.SUBSET, everyone)
        return jax.lax.map(one, (keys, sent, delta))

    with jax.enable_x64():
        found = jax.jit(lambda args: jax.lax.map(lambda a: clients_of(*a), args))(
            (np.asarray(seeds), sent, delta)
        )
        return jax.tree.map(np.asarray, found)


KIND = Kind(_check, _rows)
