"""How a client trains: a recipe for each defense, and the programs compiled from them."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh

from experiments.label_distribution import defended
from experiments.label_distribution.settings import Config
from experiments.label_distribution.task import Task
from fljax import parallel
from fljax.attacks.label_distribution import shadow_clients
from fljax.attacks.label_distribution.shadow_clients import Pool, Recipe
from fljax.defenses import specs
from fljax.defenses.specs import Spec


class Programs:
    """Trainings of chunks of clients, compiled once for each defense.

    Clients and shadow clients go through the same programs, on rows of their own.

    Attributes:
      over: devices.
    """

    def __init__(self, run: Config, task: Task):
        self._run, self._task = run, task
        self.over: Mesh = parallel.mesh()
        self._compiled: dict[tuple, Callable] = {}

    def of(self, spec: Spec) -> Callable:
        """The program of `shadow_clients.compiled` for a defense, given its `numbers`."""
        alike = specs.structure(spec)
        if alike not in self._compiled:
            recipe = recipe_of(self._run, self._task, spec)
            lanes = self._run.lanes
            self._compiled[alike] = shadow_clients.compiled(recipe, self.over, lanes)
        return self._compiled[alike]

    def numbers(self, spec: Spec) -> specs.Numbers:
        """Of a defense, as the program takes them."""
        settings = defended.numbers(self._run, self._task, spec)
        return jax.tree.map(np.float32, settings)

    def placed(self, rows: Pool) -> Pool:
        """Rows on the devices."""
        return parallel.place(rows, self.over)


def recipe_of(run: Config, task: Task, spec: Spec) -> Recipe:
    """How a client with a defense trains."""

    def local(numbers):
        return defended.local_update(run, task, spec, numbers, task.look_up)

    rows, size, epochs = run.rows_per_client, run.batch_size, run.local_epochs
    return Recipe(local, rows, size, epochs, run.attack_round)
