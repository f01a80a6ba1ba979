"""The federation that is audited: data, model, schedule, defense and its noise."""

from typing import NamedTuple

import jax
import numpy as np
import optax

from experiments.epsilon_audit.settings import Planted, Settings, canary
from fljax import data, losses, models
from fljax.defenses import clipping, dp_sgd, fed_sdp
from fljax.driver.config import ConfigError
from fljax.federation import FedAvg, Tables
from fljax.privacy import audits, calibration, noise_multiplier_for
from fljax.privacy.audits import Canary
from fljax.types import Array, Features, Model, Rows


class Loaded(NamedTuple):
    """What is trained on, and what.

    Attributes:
      table: the data set.
      model: a multilayer perceptron.
      loss_fn: of one example.
      tables: rows and schedule.
      values: `[K, W]` blocks of the sensitive column.
    """

    table: data.Table
    model: Model
    loss_fn: losses.LossFn
    tables: Tables
    values: np.ndarray


class Numbers(NamedTuple):
    """Of one training.

    Attributes:
      noise: [] multiplier.
    """

    noise: Array


def load(settings: Settings) -> Loaded:
    """Reads the data and deals it, one client after the other."""
    run = settings.run
    table = data.load(settings.data.name, data_dir=settings.data.dir)
    prepared = data.prepare(table, data.preset(table.name, "neural"), seed=run.seed)
    x, y = Features(*map(np.asarray, prepared.train.x)), prepared.train.y
    if len(y) < 2 * run.clients:
        raise ConfigError(f"--clients: expected half of {len(y)} rows at most")
    model = models.mlp(
        x.numeric.shape[1], x.codes.shape[1], hidden=(run.hidden,),
        num_onehot=prepared.num_onehot, initialisation="torch",
    )  # fmt: skip
    tables = Tables.of(
        Rows(x, y),
        np.array_split(np.arange(len(y)), run.clients),
        num_rounds=run.num_rounds,
        batch_size=run.batch_size,
        steps=run.local_steps,
        poisson=True,
    )
    attribute = prepared.attribute
    values = np.zeros((0, 1)) if attribute is None else attribute.candidates
    loss_fn = losses.example_loss(model.apply, losses.of_task(table.task))
    return Loaded(table, model, loss_fn, tables, values)


def planted(loaded: Loaded, name: Planted) -> Canary:
    """The canary of a flag; of a sensitive column its first two values.

    Raises:
      ConfigError: the data have no sensitive column with two.
    """
    if name.endswith(":sensitive") and len(loaded.values) < 2:
        raise ConfigError(
            f"--canaries={name}: expected data with a sensitive column of two values, got "
            f"{loaded.table.name}"
        )
    return canary(name, loaded.values[:2])


def method_of(settings: Settings, loaded: Loaded, unit: Canary):
    """`(loss_fn) -> FedAvg` under DP-SGD, or Fed-SDP where a client is the unit."""
    run, schedule = settings.run, loaded.tables.schedule
    rate, rows = (
        np.asarray(each, np.float32)[0, :-1]  # of each client
        for each in (schedule.sampling_rate, schedule.sizes)
    )

    def record(loss_fn):
        return lambda numbers: dp_sgd.dp_sgd(
            loss_fn, clip=run.clip, noise_multiplier=numbers.noise,
            sampling_rate=rate, batch_size=rate * rows,
        )  # fmt: skip

    def client(loss_fn):
        del loss_fn
        params = jax.eval_shape(loaded.model.init, jax.random.key(0))
        layers = clipping.num_layers(params)
        return lambda numbers: fed_sdp.fed_sdp(
            clip=run.clip, noise_scale=numbers.noise * layers**0.5,
            sampling_rate=1.0, num_layers=layers, sampling="all",
        )  # fmt: skip

    def method(loss_fn):
        defense = (client if unit.kind == "client" else record)(loss_fn)
        return FedAvg(
            model=loaded.model,
            loss_fn=loss_fn,
            optimiser=lambda numbers: optax.sgd(run.learning_rate),
            defense=defense,
        )

    return method


def noise_for(settings: Settings, loaded: Loaded, unit: Canary, budget: float) -> float:
    """Multiplier of the noise that keeps a budget of the run, for every client.

    Raises:
      ConfigError: no noise does.
    """
    clients = range(settings.run.clients)
    each = [
        audits.inclusions(loaded.tables, unit._replace(client=client))
        for client in clients
    ]
    told = {(often.rate, often.total) for often in each}
    try:
        return max(
            noise_multiplier_for(
                budget, settings.run.delta, rate, total, accountant="pld"
            )
            for rate, total in told
        )
    except calibration.Unattainable as error:
        raise ConfigError(f"--epsilons: {error}") from error
