"""Active server of a whole run: Algorithm 3 on every client, tuned, and isolation.

As in the authors' code the reported attacks after k rounds come from one run that was
tuned for all rounds, and the model used is the client's response; the forged model that
Algorithm 3 returns is reported beside it.

Tuning repeats the whole attack in every trial from the same start, which takes a client
who does not mind. The paper's objective, the training loss under the last forged model,
is evaluated here on the client's rows: the adversary is told it by the client.
`--active_objective=reported_loss` needs only the loss that every client reports.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.aia import model_based, scoring, solo, tuning
from experiments.aia.problem import local_update
from experiments.aia.scene import Kind, Prepared, Scene, Victims
from fljax.attacks.attribute import active
from fljax.driver.config import ConfigError
from fljax.results import Row
from fljax.transcript import views
from fljax.types import Exchange, Params


class Front(NamedTuple):
    """Where the attack begins.

    Attributes:
      first: number of the first attacked round.
      start: the model that each client returned last, leaves `[seeds, C, ...]`.
      honest: the model that she was sent last.
      before: the model that she was sent before that.
      has_messages: `[seeds, C]` whether it had returned any.
    """

    first: int
    start: Params
    honest: Params
    before: Params
    has_messages: np.ndarray


class _Forged(NamedTuple):
    """Outcome after each of the `K` reported numbers of rounds.

    Attributes:
      returned: leaves `[K, ...]`, the client's last response.
      forged: leaves `[K, ...]`, the model after the server's last step.
      returned_loss: `[K]` on the client's rows.
      forged_loss: `[K]`.
      found: `[K]` of the last model that she was sent.
    """

    returned: Params
    forged: Params
    returned_loss: jax.Array
    forged_loss: jax.Array
    found: active.Detectability


def front(scene: Scene) -> Front:
    """The clients' last messages before the first attacked round."""
    seen, chosen = scene.seen, scene.told.active.start
    first = int(seen.round[0, -1]) + 1 if chosen is None else chosen
    view = views.before(scene.view, np.asarray(seen.round), first)
    start, honest = views.last_models(seen, view)
    before = views.sent_models(seen, view, behind=1)
    return Front(first, start, honest, before, view.has_messages)


def victims_of(scene: Scene, at: Front) -> Victims:
    """Those whom the attack can begin with."""
    goal = scoring.only(scene.victims.goal, at.has_messages)
    return scene.victims._replace(goal=goal)


def isolation(scene: Scene, at: Front) -> Exchange:
    """What clients send when each is sent her own model; leaves `[seeds, C, R, ...]`.

    Divergence: the authors pair each isolated model with the next one, so that the
    first exchange is never used; here all are, in pairs of sent and returned.
    """
    told = scene.told.active
    num_rounds = min(told.rounds, max(told.grad_rounds))
    attacked = np.arange(at.first, at.first + num_rounds)
    everyone = _everyone(scene, attacked, attacked)
    problem = scene.prepared.problem

    def one(me, start, rows):
        return active.isolate(
            solo.key(me),
            start,
            rows,
            me.schedule,
            attacked,
            local=local_update(problem, me.index),
        ).exchange

    return solo.each(one)(everyone, at.start, scene.prepared.clients)


def _check(prepared: Prepared) -> None:
    told, train = prepared.told.active, prepared.told.train
    if not told.report or max(told.report) > told.rounds:
        raise ConfigError(
            f"--active_report: expected numbers from 1 to --active_rounds="
            f"{told.rounds}, got {','.join(map(str, told.report)) or 'none'}"
        )
    if told.start is not None and told.start > train.num_rounds:
        raise ConfigError(
            f"--active_start: expected at most --num_rounds={train.num_rounds}, "
            f"got {told.start}"
        )
    if len(told.step_sizes) != 2 or told.step_sizes[0] > told.step_sizes[1]:
        raise ConfigError(
            f"--active_step_sizes: expected the smallest and the largest, "
            f"got {','.join(map(str, told.step_sizes)) or 'nothing'}"
        )
    if train.algorithm == "fed_sgd":
        raise ConfigError(
            "--attack_kinds: active needs clients who return models, with "
            "--algorithm=fed_sgd they return gradients"
        )
    tuning.check(told.tuner, "--active_tuner")


def _rows(scene: Scene) -> list[Row]:
    told, at = scene.told.active, front(scene)
    victims, report = victims_of(scene, at), sorted(set(told.report))
    choice = _tune(scene, at, victims.goal.weights)
    found = _attack(scene, at, choice.setting, report)
    rows = []
    for index, count in enumerate(report):
        setting = f"active_{count}"
        now = jax.tree.map(lambda leaf, k=index: leaf[:, :, k], found)
        for name, params, loss in (
            ("model", now.returned, now.returned_loss),
            ("model_forged", now.forged, now.forged_loss),
        ):
            rows += model_based.attack(victims, name, setting, params)
            rows += _numbers(victims, name, setting, local_loss=loss)
        rows += _numbers(
            victims, "model_forged", setting, forged_distance=now.found.distance,
            forged_distance_relative=now.found.relative,
        )  # fmt: skip
    names = [f"adam_{name}" for name in active.ADAM_RANGES]
    tuned = dict(zip(names, np.moveaxis(choice.setting, 2, 0), strict=True))
    setting = f"active_{told.rounds}"
    return rows + _numbers(
        victims, "model_forged", setting, tuning_objective=choice.loss, **tuned
    )


def _tune(scene: Scene, at: Front, weights: np.ndarray) -> tuning.Choice:
    told, prepared = scene.told, scene.prepared
    problem, clients = prepared.problem, prepared.clients
    attacked = np.arange(at.first, at.first + told.active.rounds)
    everyone = _everyone(scene, attacked, attacked[-1:])
    reported = told.active.objective == "reported_loss"

    def one(me, item, rows):
        start, settings = item

        def trial(setting):
            alpha, beta1, beta2 = setting
            run = active.emulate_adam(
                solo.key(me), start, rows, me.schedule, attacked, local=local_update(problem, me.index),
                alpha=alpha, beta1=beta1, beta2=beta2,
            )  # fmt: skip
            return run.model, run.loss[-1]

        models, told_loss = solo.trials(problem, trial, settings)
        if reported:
            return told_loss
        return lax.map(lambda p: solo.loss(problem.loss_fn, p, rows, me), models)

    run = solo.each(one)
    return tuning.choose(
        lambda settings: run(everyone, (at.start, settings), clients),
        active.ADAM_RANGES | {"alpha": active.Range(*told.active.step_sizes, True)},
        told.active.trials,
        told.run.seeds,
        weights,
        tuner=told.active.tuner,
        shared=told.active.choice == "shared",
    )


def _attack(scene: Scene, at: Front, setting: np.ndarray, report: list[int]) -> _Forged:
    """The attack with the chosen settings; leaves `[seeds, C, K, ...]`."""
    problem, total = scene.prepared.problem, scene.told.active.rounds
    attacked = np.arange(at.first, at.first + total)
    kept = sorted({k for n in report for k in (n - 1, n)} - {total})
    everyone = _everyone(scene, attacked, attacked[kept])
    last = [kept.index(count - 1) for count in report]
    after = [kept.index(count) if count < total else len(kept) for count in report]

    def one(me, item, rows):
        start, honest, before, (alpha, beta1, beta2) = item
        run = active.emulate_adam(
            solo.key(me), start, rows, me.schedule, attacked, local=local_update(problem, me.index),
            alpha=alpha, beta1=beta1, beta2=beta2,
        )  # fmt: skip
        sent = jax.tree.map(lambda leaf: leaf[np.array(last)], run.exchange.params)
        returned = jax.tree.map(
            lambda p, d: p - d[np.array(last)], sent, run.exchange.delta
        )
        forged = jax.tree.map(
            lambda p, final: jnp.concatenate([p, final[None]])[np.array(after)],
            run.exchange.params, run.model,
        )  # fmt: skip
        both = jax.tree.map(lambda a, b: jnp.stack([a, b]), returned, forged)
        loss = lax.map(
            lambda each: lax.map(
                lambda p: solo.loss(problem.loss_fn, p, rows, me), each
            ),
            both,
        )
        found = active.detectability(sent, honest, before)
        return _Forged(returned, forged, loss[0], loss[1], found)

    items = (at.start, at.honest, at.before, tuple(np.moveaxis(setting, 2, 0)))
    return solo.each(one)(everyone, items, scene.prepared.clients)


def _everyone(scene: Scene, attacked, recorded) -> solo.Client:
    told, prepared = scene.told, scene.prepared
    return solo.everyone(
        prepared.problem, prepared.clients, told.train, told.run.seeds,
        num_rounds=int(attacked[-1]) + 1, record_rounds=recorded,
    )  # fmt: skip


def _numbers(victims: Victims, name: str, setting: str, **metrics) -> list[Row]:
    """Rows of numbers `[seeds, C]` by metric; what is not finite becomes NaN."""
    rows = []
    for metric, values in metrics.items():
        values = np.where(np.isfinite(values), values, np.nan)
        rows += scoring.by_client(
            victims.labels, name, setting, metric, values, victims.goal
        )
    return rows


KIND = Kind(_check, _rows)
