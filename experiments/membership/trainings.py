"""All trainings of a seed under one defense, and what of them is looked at."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.membership import coins
from experiments.membership.coins import Pool
from experiments.membership.settings import Settings
from experiments.tabular import defense, federation, problem
from experiments.tabular.clients import Clients
from experiments.tabular.problem import Problem
from experiments.tabular.schedules import local_work
from experiments.tabular.settings import DefenseConfig
from fljax import losses, packing
from fljax.defenses.specs import Spec
from fljax.types import Params, Rows, Transcript

_APART = 2**12  # seeds of the trainings of one repetition


class Trained(NamedTuple):
    """Trainings `[T, ...]`.

    Attributes:
      problem: what was trained and how.
      seen: the server's transcripts, of everybody in every round.
      last: the final models.
    """

    problem: Problem
    seen: Transcript
    last: Params


def train(
    settings: Settings,
    spec: Spec,
    pool: Pool,
    there: np.ndarray,
    seed: int,
) -> Trained:
    """Trains on the rows that are there, each time from the same initial model.

    Who sees a federation sees the model that it began with, and begins its own there.

    Raises:
      Diverged: as soon as a loss is not finite.
    """
    count, config = len(there), settings.train
    sizes = np.tile(pool.sizes // 2, (count, 1))
    rows, nobody = coins.members(pool, there), np.zeros((count, 0), bool)
    seeds = tuple(seed * _APART + each for each in range(count))
    told = DefenseConfig(defense=str(spec), delta=settings.run.delta)
    posed = problem.build(
        Clients([pool.dataset], rows, sizes, None, nobody),
        settings.model,
        config,
        seeds,
        defense=defense.maker(told, config, 0),
    )._replace(start=seeds[0])
    run = federation.train(posed, chunk=config.num_rounds, progress=lambda _: None)
    return Trained(posed, run.transcript, run.server.params)


def row_weights(settings: Settings, trained: Trained, pool: Pool) -> np.ndarray:
    """Weight `[C]` of one row's gradient in the message of its client."""
    own = pool.sizes // 2
    steps = packing.steps_per_round(own, *local_work(settings.train))
    return trained.problem.rates.client * steps / own


def row_losses(trained: Trained, params: Params, rows: Rows) -> np.ndarray:
    """Losses `[T, n]` of rows `[n, ...]` under models `[T, ...]`."""
    return np.asarray(_losses(params, rows, trained.problem.loss_fn))


def _of_each(params, rows, loss_fn: losses.LossFn):
    one = jax.vmap(loss_fn, (None, 0, 0))
    return jax.lax.map(lambda p: one(p, rows.x, jnp.asarray(rows.y)), params)


_losses = jax.jit(_of_each, static_argnums=2)
