"""Active server of a whole run: Algorithm 3 on every client, tuned, and isolation.

The clients train here on their own rows and answer; what the server then has is handed
to the adversary, which attacks with the models of equation 3.

As in the authors' code the reported attacks after k rounds come from one run that was
tuned for all rounds, and the model used is the client's response; the forged model that
Algorithm 3 returns is reported beside it.

Tuning repeats the whole attack in every trial from the same start, which takes a client
that does not mind, with the batches and the noise of the reported attack, which is the
best trial itself; the authors seed theirs alike. The paper's objective, the training loss
under the last forged model, is evaluated here on the client's rows: the adversary is told
it by the client.
`--active_objective=reported_loss` needs only the loss that every client reports.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.aia import single_client, tuning
from experiments.aia.adversary import (
    Adversary,
    Attacked,
    Front,
    Isolated,
    each_seed,
    front,
    of_seeds,
)
from experiments.aia.setup import Setup
from experiments.aia.wall import local_training
from experiments.tabular.problem import local_update
from fljax.attacks.attribute import active, last_model
from fljax.attacks.estimates import Prediction
from fljax.driver.config import ConfigError
from fljax.types import Params


class _Forged(NamedTuple):
    """Outcome after each of the `K` reported numbers of rounds.

    Attributes:
      returned: leaves `[K, ...]`, the client's last response.
      forged: leaves `[K, ...]`, the model after the server's last step.
      returned_loss: `[K]` on the client's rows.
      forged_loss: `[K]`.
      detectability: `[K]` of the last model that it was sent.
    """

    returned: Params
    forged: Params
    returned_loss: jax.Array
    forged_loss: jax.Array
    detectability: active.Detectability


def isolate(setup: Setup, adversary: Adversary) -> Isolated:
    """What clients send when each is sent its own model.

    Divergence: the authors pair each isolated model with the next one, so that the
    first exchange is never used; here all are, in pairs of sent and returned.
    """
    config, problem = setup.config.active, setup.problem
    at = front(adversary, config.start)
    num_rounds = min(config.rounds, max(config.grad_rounds))
    attacked = np.arange(at.first, at.first + num_rounds)

    def one(me, start, rows):
        return active.isolate(
            single_client.key(me),
            start,
            rows,
            me.schedule,
            attacked,
            local=local_update(problem, me.index),
        ).exchange

    everyone = _everyone(setup, attacked, attacked)
    exchange = single_client.each(one)(everyone, at.start, setup.clients)
    return Isolated(at, exchange)


def check(setup: Setup) -> None:
    """Refuses flags under which no active server can work.

    Raises:
      ConfigError: naming the flag.
    """
    config, train = setup.config.active, setup.config.train
    if not config.report or max(config.report) > config.rounds:
        raise ConfigError(
            f"--active_report: expected numbers from 1 to --active_rounds="
            f"{config.rounds}, got {','.join(map(str, config.report)) or 'none'}"
        )
    if config.start is not None and config.start > train.num_rounds:
        raise ConfigError(
            f"--active_start: expected at most --num_rounds={train.num_rounds}, "
            f"got {config.start}"
        )
    if len(config.step_sizes) != 2 or config.step_sizes[0] > config.step_sizes[1]:
        raise ConfigError(
            f"--active_step_sizes: expected the smallest and the largest, "
            f"got {','.join(map(str, config.step_sizes)) or 'nothing'}"
        )
    if train.algorithm == "fed_sgd":
        raise ConfigError(
            "--attack_kinds: active needs clients that return models, with "
            "--algorithm=fed_sgd they return gradients"
        )
    if local_training(train).remembers:
        raise ConfigError(
            "--optimiser_state: active starts its clients anew, expected new"
        )
    tuning.check(config.tuner, "--active_tuner")


def run(setup: Setup, adversary: Adversary) -> list[Attacked]:
    """Forges, and attacks with what clients answered and with what was forged."""
    config, at = setup.config.active, front(adversary, setup.config.active.start)
    report = sorted(set(config.report))
    choice = _tune(setup, at)
    forged = _forge(setup, at, choice.setting, report)
    results = []
    for index, count in enumerate(report):
        now = jax.tree.map(lambda leaf, k=index: leaf[:, :, k], forged)
        distances = {
            "forged_distance": now.detectability.distance,
            "forged_distance_relative": now.detectability.relative,
        }
        for name, params, numbers in (
            ("model", now.returned, {"local_loss": now.returned_loss}),
            ("model_forged", now.forged, {"local_loss": now.forged_loss} | distances),
        ):
            value = each_seed(
                adversary, f"{name} after {count}, seeds", last_model.with_models,
                of_seeds(params),
            )  # fmt: skip
            prediction = Prediction(
                np.stack(value), _finite(numbers), {"params": params}, f"active_{count}"
            )
            results.append(Attacked(name, prediction, at.has_messages))
    tuned = {"tuning_objective": choice.loss} | _tuned(choice.setting)
    numbers = Prediction(None, _finite(tuned), {}, f"active_{config.rounds}")
    return [*results, Attacked("model_forged", numbers, at.has_messages)]


def _tuned(setting: np.ndarray) -> dict[str, np.ndarray]:
    """The chosen `[seeds, C, D]` numbers of Adam by name."""
    names = [f"adam_{name}" for name in active.ADAM_RANGES]
    return dict(zip(names, np.moveaxis(setting, 2, 0), strict=True))


def _tune(setup: Setup, at: Front) -> tuning.Choice:
    config, problem, clients = setup.config, setup.problem, setup.clients
    attacked = np.arange(at.first, at.first + config.active.rounds)
    everyone = _everyone(setup, attacked, attacked[-1:])
    reported = config.active.objective == "reported_loss"

    def one(me, item, rows):
        start, settings = item

        def trial(setting):
            alpha, beta1, beta2 = setting
            run = active.emulate_adam(
                single_client.key(me), start, rows, me.schedule, attacked, local=local_update(problem, me.index),
                alpha=alpha, beta1=beta1, beta2=beta2,
            )  # fmt: skip
            return run.model, run.loss[-1]

        models, reported_loss = single_client.trials(problem, trial, settings)
        if reported:
            return reported_loss
        return lax.map(
            lambda p: single_client.loss(problem.loss_fn, p, rows, me), models
        )

    run = single_client.each(one)
    return tuning.choose(
        lambda settings: run(everyone, (at.start, settings), clients),
        active.ADAM_RANGES
        | {"alpha": active.Range(*config.active.step_sizes, logarithmic=True)},
        config.active.trials,
        config.run.seeds,
        clients.sizes * at.has_messages,
        tuner=config.active.tuner,
        shared=config.active.choice == "shared",
    )


def _forge(setup: Setup, at: Front, setting: np.ndarray, report: list[int]) -> _Forged:
    """The attack with the chosen settings; leaves `[seeds, C, K, ...]`."""
    problem, total = setup.problem, setup.config.active.rounds
    attacked = np.arange(at.first, at.first + total)
    kept = sorted({k for n in report for k in (n - 1, n)} - {total})
    everyone = _everyone(setup, attacked, attacked[kept])
    last = [kept.index(count - 1) for count in report]
    after = [kept.index(count) if count < total else len(kept) for count in report]

    def one(me, item, rows):
        start, honest, before, (alpha, beta1, beta2) = item
        run = active.emulate_adam(
            single_client.key(me), start, rows, me.schedule, attacked, local=local_update(problem, me.index),
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
                lambda p: single_client.loss(problem.loss_fn, p, rows, me), each
            ),
            both,
        )
        distances = active.detectability(sent, honest, before)
        return _Forged(returned, forged, loss[0], loss[1], distances)

    items = (at.start, at.honest, at.before, tuple(np.moveaxis(setting, 2, 0)))
    return single_client.each(one)(everyone, items, setup.clients)


def _everyone(setup: Setup, attacked, recorded) -> single_client.Client:
    config = setup.config
    return single_client.everyone(
        setup.problem, setup.clients, config.train, config.run.seeds,
        num_rounds=int(attacked[-1]) + 1, record_rounds=recorded,
    )  # fmt: skip


def _finite(numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What is not finite becomes NaN."""
    return {k: np.where(np.isfinite(each), each, np.nan) for k, each in numbers.items()}
