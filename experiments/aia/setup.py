"""What is known before training: flags, data, clients and the problem."""

import types
from collections.abc import Mapping
from typing import NamedTuple

import jax

from experiments.aia import active_config, settings
from experiments.aia.adversary_config import AdversaryConfig
from experiments.aia.knowledge_config import KnowledgeConfig
from experiments.tabular import settings as training
from experiments.tabular.clients import Clients
from experiments.tabular.problem import Problem
from experiments.tabular.targets import Targets
from fljax import data
from fljax.types import Known


class Settings(NamedTuple):
    """The configuration of a run."""

    data: training.DataConfig
    partition: training.PartitionConfig
    model: training.ModelConfig
    train: training.TrainConfig
    attack: settings.AttackConfig
    active: active_config.ActiveConfig
    oracle: active_config.OracleConfig
    trajectory: settings.TrajectoryConfig
    defense: training.DefenseConfig
    run: settings.RunConfig
    knowledge: KnowledgeConfig = KnowledgeConfig()
    adversary: AdversaryConfig = AdversaryConfig()


class Setup(NamedTuple):
    """One point of a run before its training. No attack is given this.

    Attributes:
      config: of the run.
      label: of the point.
      table: the data set.
      clients: the federation.
      known: what an adversary knows of the rows, leaves `[seeds, C, n, ...]`.
      targets: the truth, None without a sensitive attribute.
      problem: what is trained and how.
      not_run: attack -> why it was left out of the standard ones.
    """

    config: Settings
    label: str
    table: data.Table
    clients: Clients
    known: Known
    targets: Targets | None
    problem: Problem
    not_run: Mapping[str, str] = types.MappingProxyType({})

    @property
    def linear_regression(self) -> bool:
        """Whether the model is a linear regression."""
        return self.config.model.name == "linear" and self.table.task == "regression"

    @property
    def num_parameters(self) -> int:
        """P."""
        shapes = jax.eval_shape(self.problem.model.init, jax.random.key(0))
        return sum(leaf.size for leaf in jax.tree.leaves(shapes))
