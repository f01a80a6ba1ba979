"""Defenses by name, as `--defenses` has them, and the epsilon of what promises one.

`gaussian:s` and `laplace:s` are the paper's "noise on client gradients": a fresh draw of
scale s on every coordinate of the mean gradient of every local step, before the
optimiser. With plain SGD the message then has s * rate * sqrt(steps). `gaussian_update`
and `laplace_update` add one draw of scale s to the message itself, the other reading
("noise into model weights", the paper's abstract).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import optax

from experiments import named_defenses
from experiments.label_distribution.settings import Config
from experiments.label_distribution.task import Task
from fljax import local as local_lib
from fljax import privacy
from fljax.defenses import clipping
from fljax.driver.config import ConfigError
from fljax.types import Array, Defense, PyTree

# As `experiments.named_defenses` calls them.
_NAMES = {
    "gaussian": "gaussian_steps",
    "laplace": "laplace_steps",
    "gaussian_update": "gaussian",
    "laplace_update": "laplace",
    "fed_sdp": "fed_sdp",
    "fed_cdp": "fed_cdp",
    "fed_cdp_per_batch": "fed_cdp",
    "median": "median",
    "pruning": "pruning",
    "dssgd": "dssgd",
}
NAMES = tuple(_NAMES)


class Shield(NamedTuple):
    """One of `--defenses`.

    Attributes:
      name: of the defense, or `none`.
      number: its scale, sigma or fraction.
    """

    name: str
    number: float

    @property
    def point(self) -> str:
        """Label of its rows."""
        return "" if self.name == "none" else f"{self.name}={self.number:g}"


NONE = Shield("none", 0.0)


def parse(run: Config) -> list[Shield]:
    """All of `--defenses`.

    Raises:
      ConfigError: for a name that is not known, or a number that does not fit.
    """
    found = []
    for text in run.defenses:
        name, _, number = text.partition(":")
        try:
            found.append(NONE if text == "none" else Shield(name, float(number)))
        except ValueError:
            found.append(Shield(name, np.nan))
        if found[-1].name not in ("none", *NAMES) or np.isnan(found[-1].number):
            raise ConfigError(
                f"--defenses: expected none or NAME:NUMBER with one of "
                f"{', '.join(NAMES)}, got {text!r}"
            )
    return found


def steps(run: Config) -> int:
    """Local steps of a round."""
    return run.local_epochs * -(-run.rows_per_client // run.batch_size)


def defense(run: Config, task: Task, name: str, number: Array | float) -> Defense:
    """A defense whose number may be traced.

    Raises:
      ValueError: for a concrete number out of range.
    """
    params = jax.eval_shape(task.model.init, jax.random.key(0))
    batches = -(-run.rows_per_client // run.batch_size)
    setting = named_defenses.Setting(
        task.loss_fn,
        clipping.num_layers(params),
        sampling_rate=1 / batches,
        batch_size=run.rows_per_client / batches,
        mode="per_batch" if name == "fed_cdp_per_batch" else "per_example",
    )
    return named_defenses.make(_NAMES.get(name, "none"), setting, number, run.clip)


def check(run: Config, task: Task) -> list[Shield]:
    """All of `--defenses`, each of which can be built.

    Raises:
      ConfigError: naming the one that cannot.
    """
    found = parse(run)
    for shield in found:
        try:
            defense(run, task, *shield)
        except ValueError as error:
            raise ConfigError(
                f"--defenses={shield.name}:{shield.number:g}: {error}"
            ) from None
    return found


def local_update(
    run: Config,
    task: Task,
    name: str,
    number: Array | float,
    look_up: Callable[[jax.Array], PyTree],
) -> local_lib.LocalUpdate:
    """A client's training on rows that `look_up` makes inputs of."""
    optimiser = {"sgd": optax.sgd, "adam": optax.adam}[run.optimiser](run.learning_rate)
    built = defense(run, task, name, number)
    inner = local_lib.sgd(
        task.loss_fn, optimiser, gradient=built.gradient, encode=built.encode
    )

    def step(key, carry, sent, batch):
        seen = batch._replace(x=look_up(batch.x))
        return inner.step(key, carry, sent, seen)

    return local_lib.LocalUpdate(inner.init, step, inner.final)


def epsilon(run: Config, task: Task, shield: Shield) -> privacy.Guarantee | None:
    """What FedAvg with it promises to a client who is in every round; None if nothing."""
    built = defense(run, task, *shield)
    if not built.noise or not run.num_rounds:
        return None
    (spec,) = built.noise
    sums = run.num_rounds * (steps(run) if spec.unit == "record" else 1)
    return privacy.guarantee(spec, sums, run.delta, rounds=run.num_rounds)
