"""Gradient-based attack of a whole run: a grid over messages and learning rates.

With the active server it also runs on the messages of isolated clients; what is then
reported after k attacked rounds is the best of the passive settings and of those active
ones that need no more than k rounds (Diana et al., appendix B.5).

Divergence: the authors' code tries the first 1, 3, 5, 10, 25 and 49 isolated rounds, the
paper, followed here, 1, 2, 5, 10, 25 and 50.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.aia import active, passive, scoring
from experiments.aia.scene import Kind, Prepared, Scene, by_seed
from fljax import parallel
from fljax.attacks.attribute import gradient
from fljax.driver.config import ConfigError
from fljax.results import Row
from fljax.transcript import views
from fljax.types import Exchange


def _check(prepared: Prepared) -> None:
    attribute = prepared.clients.datasets[0].attribute
    if attribute.kind == "continuous":
        raise ConfigError(
            f"--attack_kinds: grad needs a binary or categorical attribute, "
            f"{attribute.name} is continuous"
        )
    if prepared.told.attack.score == "pooled":
        raise ConfigError(
            "--attack_score=pooled: grad attacks a client's own rows only"
        )
    if "active" in prepared.told.attack.kinds and not prepared.told.active.grad_rounds:
        raise ConfigError("--active_grad_rounds: expected at least one number")


def _rows(scene: Scene) -> list[Row]:
    told, victims = scene.told, scene.victims
    counts = _counts(told.attack.grad_rounds, scene.view.row.shape[-1])
    settings = [(0, count) for count in counts]
    isolated = None
    if "active" in told.attack.kinds:
        at = active.front(scene)
        isolated = active.isolation(scene, at)
        more = _counts(told.active.grad_rounds, told.active.rounds)
        settings += [(1, count) for count in more]
    found = _grid(scene, isolated, np.array(settings, np.int32))
    source, count = np.transpose(settings)
    rows = scoring.grid(victims.labels, found, victims.goal, "passive", source == 0)
    if isolated is None:
        return rows
    goal = scoring.only(victims.goal, at.has_messages)
    early = views.before(scene.view, np.asarray(scene.seen.round), at.first).count
    used = np.minimum(count[:, None, None], scene.view.count)
    before = ((used <= early) | ~at.has_messages).all(axis=(1, 2))
    for number in sorted(set(told.active.report)):
        allowed = np.where(source == 0, before, count <= number)
        if allowed.any():
            setting = f"active_{number}"
            rows += scoring.grid(victims.labels, found, goal, setting, allowed)
    return rows


def _counts(told: tuple[int, ...], most: int) -> list[int]:
    return sorted({min(count, most) for count in told})


def _grid(
    scene: Scene, isolated: Exchange | None, settings: np.ndarray
) -> scoring.Grid:
    """The attack for every client, setting and learning rate.

    One compiled program serves all seeds, each of which is one call, so that progress
    can be shown.

    Args:
      scene: who is attacked.
      isolated: leaves `[seeds, C, R, ...]`.
      settings: `[F, 2]` 1 for isolated and 0 for passive messages, and how many.
    """
    num_seeds, num_clients = scene.prepared.clients.sizes.shape
    rates = np.asarray(scene.told.attack.grad_learning_rates, np.float32)
    grid = np.meshgrid(
        np.arange(num_seeds), np.arange(num_clients), rates, indexing="ij"
    )
    _, client, rate = (leaf.reshape(num_seeds, -1) for leaf in grid)
    over = parallel.mesh()
    one = _one(scene, settings)

    def run(items, shared):
        *pairs, isolated = items
        return parallel.map_items(one, tuple(pairs), (isolated, *shared), over)

    index, dissimilarity = by_seed(
        scene, "gradient attack, seeds", jax.jit(run), (client, rate, isolated)
    )
    shape = (num_seeds, num_clients, len(rates), len(settings))
    return scoring.Grid(
        np.swapaxes(index.reshape(*shape, -1), 2, 3),
        np.swapaxes(dissimilarity.reshape(shape), 2, 3),
    )


def _one(scene: Scene, settings: np.ndarray) -> Callable:
    """The attack on one client with one learning rate, setting by setting."""
    problem, config = scene.prepared.problem, scene.told.attack

    def one(item, shared):
        client, rate = item
        isolated, transcript, view, known, candidates, seed = shared
        view = view.of(client)
        mine = views.messages(transcript, view)
        if isolated is not None:
            alone = jax.tree.map(lambda leaf: leaf[client], isolated)
            mine, alone = _same_length(mine, alone)
        rows = jax.tree.map(lambda leaf: leaf[client], known)

        def attack(setting):
            is_isolated, num_rounds = setting
            exchange, available = mine, view.count
            if isolated is not None:
                exchange = jax.tree.map(
                    lambda a, b: jnp.where(is_isolated == 1, a, b), alone, mine
                )
                available = jnp.where(is_isolated == 1, num_rounds, available)
            # The same draws for every setting: settings differ, luck does not.
            guess = gradient.gradient_based(
                passive.key(seed, passive.GRADIENT, client),
                problem.loss_fn,
                exchange,
                rows,
                candidates,
                num_rounds=jnp.clip(num_rounds, 1, jnp.maximum(available, 1)),
                optimiser=optax.sgd(rate),
                num_iterations=config.grad_iterations,
                temperature=config.grad_temperature,
                noise=config.grad_noise,
            )
            return guess.index.astype(jnp.int16), guess.dissimilarity

        def attacks():
            return jax.lax.map(attack, jnp.asarray(settings))

        return attacks() if isolated is not None else views.if_messages(view, attacks)

    return one


def _same_length(*exchanges: Exchange) -> list[Exchange]:
    """Zeros behind the shorter one; rounds past a setting's number are never read."""
    most = max(len(jax.tree.leaves(e)[0]) for e in exchanges)

    def padded(leaf):
        return jnp.pad(leaf, ((0, most - len(leaf)), *[(0, 0)] * (leaf.ndim - 1)))

    return [jax.tree.map(padded, e) for e in exchanges]


KIND = Kind(_check, _rows)
