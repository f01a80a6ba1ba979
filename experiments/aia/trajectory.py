"""Trajectory matching on a whole run, its first-order version, and negative controls.

Controls (`--trajectory_controls`) show that a gain is the client's own: with the
messages of the next client (`trajectory_other`, beside `model_other`, the model-based
attack on that client's model), and with her own messages but the targets of her rows
permuted (`trajectory_permuted`). Neither may gain anything.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from experiments.aia import passive, scoring
from experiments.aia.problem import local_training
from experiments.aia.scene import Kind, Prepared, Scene, by_seed
from fljax import packing, parallel
from fljax.attacks import trajectory
from fljax.driver.config import ConfigError
from fljax.results import Row
from fljax.transcript import views
from fljax.types import Array, Known, PyTree


def _check(prepared: Prepared) -> None:
    told = prepared.told
    if told.attack.score == "pooled":
        raise ConfigError(
            "--attack_score=pooled: trajectory attacks a client's own rows only"
        )
    if told.train.client_optimiser != "sgd" and told.train.algorithm != "fed_sgd":
        raise ConfigError(
            "--attack_kinds: trajectory simulates --client_optimiser=sgd, "
            f"got {told.train.client_optimiser}"
        )
    if told.train.algorithm == "fed_prox":
        raise ConfigError(
            "--attack_kinds: trajectory does not simulate --algorithm=fed_prox"
        )
    if told.trajectory.controls and prepared.clients.sizes.shape[1] < 2:
        raise ConfigError("--trajectory_controls: needs at least 2 clients")


def _settings(scene: Scene, *, first_order: bool) -> trajectory.Settings:
    told, train = scene.told.trajectory, scene.told.train
    epochs = local_training(train).epochs
    most = int(_steps(scene).max())
    return trajectory.Settings(
        path_steps=min(most, told.path_steps * epochs),
        iterations=told.iterations,
        batch_rounds=told.batch_rounds,
        rate=told.rate,
        stages=told.stages,
        held_out=told.held_out,
        first_order=first_order,
        estimate_scale=told.estimate_scale,
    )


def _steps(scene: Scene) -> np.ndarray:
    """Local steps `[seeds, C]` of each client's rounds."""
    return np.asarray(
        packing.steps_per_round(
            scene.prepared.clients.sizes, *local_training(scene.told.train)
        )
    )


def _scales(scene: Scene) -> np.ndarray:
    """Learning rate times local steps `[seeds, C]`; FedSGD's one step has rate 1."""
    train = scene.told.train
    rate = 1.0 if train.algorithm == "fed_sgd" else train.learning_rate
    return np.asarray(rate * _steps(scene), np.float32)


def _rows(scene: Scene, *, name: str, first_order: bool) -> list[Row]:
    settings = _settings(scene, first_order=first_order)
    attack = _attacker(scene, settings)
    found = attack("own rows")
    rows = _score(scene, name, found)
    if not scene.told.trajectory.controls or first_order:
        return rows
    rows += _score(
        scene, "trajectory_permuted", attack("permuted targets", permute=True)
    )
    victims = scene.victims
    goal = scoring.only(victims.goal, np.roll(scene.view.has_messages, -1, axis=1))
    scene = scene._replace(victims=victims._replace(goal=goal))
    rows += _score(
        scene, "trajectory_other", attack("next client's messages", sender=1)
    )
    returned, _ = views.last_models(scene.seen, scene.view)
    shifted = jax.tree.map(lambda leaf: np.roll(leaf, -1, axis=1), returned)
    guess = victims.attacker(shifted, victims.known, victims.candidates)
    return rows + scoring.guesses(victims.labels, "model_other", "passive", guess, goal)


def _attacker(scene: Scene, settings: trajectory.Settings) -> Callable:
    """`(task, sender, permute) -> Inference`, leaves `[seeds, C, ...]`, compiled once."""
    victims, clients = scene.victims, scene.prepared.clients
    num_clients = clients.sizes.shape[1]
    # As many messages of everyone, spread over her own and ending with her last.
    sent = scene.view.count[scene.view.has_messages]
    fewest = int(sent.min()) if sent.size else 1
    number = min(scene.told.trajectory.rounds or fewest, fewest)
    over = parallel.mesh()

    def one(item: PyTree, shared: PyTree):
        client, sender, permute, scale = item
        seen, view, known, candidates, seed = shared
        chosen = views.spread(view.of(sender), number)
        rows = jax.tree.map(lambda leaf: leaf[client], known)
        mixed = _permuted(passive.key(seed, passive.PERMUTATION, client), rows)
        rows = rows._replace(y=jnp.where(permute, mixed, rows.y))
        return views.if_messages(
            chosen,
            lambda: trajectory.trajectory_matching(
                passive.key(seed, passive.TRAJECTORY, client),
                victims.problem.loss_fn,
                views.messages(seen, chosen),
                rows,
                candidates,
                scale=scale,
                continuous=victims.kind == "continuous",
                settings=settings,
            ),
        )

    run = jax.jit(lambda items, shared: parallel.map_items(one, items, shared, over))
    scales = _scales(scene) * np.float32(scene.told.trajectory.scale_error)

    def attack(task: str, sender: int = 0, permute: bool = False):
        client = np.tile(np.arange(num_clients), (len(scales), 1))
        items = (
            client, (client + sender) % num_clients,
            np.full(client.shape, permute), np.roll(scales, -sender, axis=1),
        )  # fmt: skip
        return by_seed(scene, f"trajectory, {task}", run, items)

    return attack


def _permuted(key, rows: Known) -> Array:
    """Targets of the real rows in random order; padding stays at the end."""
    order = jax.random.uniform(key, rows.y.shape)
    order = jnp.argsort(jnp.where(rows.mask, order, jnp.inf))
    return jnp.asarray(rows.y)[order]


def _score(scene: Scene, name: str, found: trajectory.Inference) -> list[Row]:
    victims = scene.victims
    labels, goal = victims.labels, victims.goal
    continuous = victims.kind == "continuous"
    guess = found.value[..., 0] if continuous else found.index
    rows = scoring.guesses(labels, name, "passive", guess, goal)
    if not continuous:
        rows += scoring.posterior(labels, name, "passive", found.probability, goal)
    measured = {"misfit": found.misfit}
    if scene.told.trajectory.estimate_scale:
        measured["relative_scale"] = found.scale / _scales(scene)
    for metric, values in measured.items():
        rows += scoring.by_client(labels, name, "passive", metric, values, goal)
    return rows


KIND = Kind(_check, functools.partial(_rows, name="trajectory", first_order=False))
FIRST_ORDER = Kind(
    _check, functools.partial(_rows, name="linear_inversion", first_order=True)
)
