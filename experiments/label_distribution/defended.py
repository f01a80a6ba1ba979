"""Clients with a defense: how they train, and the epsilon of what promises one.

The paper's "noise on client gradients" is `gaussian(deviation=..., on=steps)`: a fresh
draw on every coordinate of the mean gradient of every local step, before the optimiser.
With plain SGD the message then has deviation * rate * sqrt(steps). `on=messages`, one draw
on the message itself, is the other reading ("noise into model weights", the paper's
abstract).
"""

from collections.abc import Callable

import jax
import optax

from experiments import defense_options
from experiments.label_distribution.settings import Config
from experiments.label_distribution.task import Task
from fljax import federation, privacy
from fljax import local as local_lib
from fljax.defenses import clipping, specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Numbers, Spec
from fljax.driver.config import ConfigError
from fljax.privacy import Promise, Releases
from fljax.types import Defense, PyTree


def read(run: Config, task: Task) -> tuple[Spec, ...]:
    """All of `--defense`, each of which can be built.

    Raises:
      ConfigError: naming the one that cannot.
    """
    found = defense_options.parse_all(run.defense)
    for spec in found:
        _check_budget(run, spec)
        defense(run, task, spec, numbers(run, task, spec))
    return found


def _check_budget(run: Config, spec: Spec) -> None:
    if spec.has_budget and run.num_rounds <= run.attack_round:
        raise ConfigError(
            f"--num_rounds: expected more than --attack_round={run.attack_round}, for "
            f"the budget of {spec} is that of these rounds, got {run.num_rounds}"
        )


def steps(run: Config) -> int:
    """Local steps of a round."""
    return run.local_epochs * -(-run.rows_per_client // run.batch_size)


def numbers(run: Config, task: Task, spec: Spec) -> Numbers:
    """Those of a spec; a budget is that of FedAvg's rounds.

    Raises:
      ConfigError: for a budget that cannot be kept.
    """
    with defense_options.naming(spec):
        return privacy.numbers_for(spec, _setting(run, task), _releases(run), run.delta)


def defense(run: Config, task: Task, spec: Spec, settings: Numbers) -> Defense:
    """A defense whose numbers may be traced.

    Raises:
      ConfigError: for concrete numbers out of range, or what does not go together.
    """
    with defense_options.naming(spec):
        return specs.bind(spec, _setting(run, task), settings)


def local_update(
    run: Config,
    task: Task,
    spec: Spec,
    settings: Numbers,
    look_up: Callable[[jax.Array], PyTree],
) -> local_lib.LocalUpdate:
    """A client's training on rows that `look_up` makes inputs of."""
    built = defense(run, task, spec, settings)
    update = local_lib.sgd(
        task.loss_fn, optimiser(run), gradient=built.gradient, encode=built.encode
    )
    return federation.prepared(update, look_up)


def optimiser(run: Config) -> optax.GradientTransformation:
    """The clients'."""
    return {"sgd": optax.sgd, "adam": optax.adam}[run.optimiser](run.learning_rate)


def promises(run: Config, task: Task, spec: Spec) -> list[Promise]:
    """What FedAvg with it promises to a client whose messages are seen in every round."""
    if not run.num_rounds:
        return []
    built = defense(run, task, spec, numbers(run, task, spec))
    promised = privacy.promises(built, _releases(run), run.delta)
    return [*privacy.against(promised, ["messages"]).values()]


def _releases(run: Config) -> Releases:
    return Releases(run.num_rounds * steps(run), run.num_rounds)


def _setting(run: Config, task: Task) -> Setting:
    params = jax.eval_shape(task.model.init, jax.random.key(0))
    return Setting.of_clients(
        task.loss_fn,
        clipping.num_layers(params),
        run.rows_per_client,
        run.batch_size,
        poisson=False,
        num_rounds=run.num_rounds or None,
    )
