"""What the stages of a run hand to each other, and what a kind of attack is."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from experiments.aia import settings
from experiments.aia.clients import Clients
from experiments.aia.passive import Attacker
from experiments.aia.problem import Problem
from experiments.aia.scoring import Labels, Target
from fljax import data
from fljax.results import Row
from fljax.transcript.views import ClientView
from fljax.types import Known, PyTree, Transcript


class Settings(NamedTuple):
    """All that a run was told."""

    data: settings.DataConfig
    partition: settings.PartitionConfig
    model: settings.ModelConfig
    train: settings.TrainConfig
    attack: settings.AttackConfig
    active: settings.ActiveConfig
    oracle: settings.OracleConfig
    trajectory: settings.TrajectoryConfig
    defense: settings.DefenseConfig
    run: settings.RunConfig


class Prepared(NamedTuple):
    """Everything that is known before training."""

    told: Settings
    label: str
    table: data.Table
    clients: Clients
    problem: Problem


class Victims(NamedTuple):
    """Whom models are used against.

    Attributes:
      problem: model and loss.
      known: leaves `[seeds, C, n, ...]`, what the adversary has.
      goal: the truth, for scoring.
      candidates: `[seeds, K, W]` encoded values.
      kind: of the attribute.
      linear: whether the model is a linear regression.
      pooled: whether `known` and `goal` are all clients' rows for everyone.
      attacker: the compiled attack.
      labels: of the result rows.
    """

    problem: Problem
    known: Known
    goal: Target
    candidates: np.ndarray
    kind: str
    linear: bool
    pooled: bool
    attacker: Attacker
    labels: Labels


class Scene(NamedTuple):
    """One trained federation before its adversary.

    Attributes:
      prepared: what was known before.
      seen: transcript, leaves `[seeds, ...]`.
      view: where each client's messages lie in it.
      victims: whom models are used against.
      bars: to show progress.
    """

    prepared: Prepared
    seen: Transcript
    view: ClientView
    victims: Victims
    bars: Progress

    @property
    def told(self) -> Settings:
        return self.prepared.told


def by_seed(scene: Scene, title: str, run: Callable, items: PyTree) -> PyTree:
    """`run(items, shared)` of one seed after the other, stacked on the host.

    Args:
      scene: who is attacked; `shared` is what her seed has of transcript, view, known
        columns, candidates and the seed itself.
      title: for the progress bar.
      run: compiled.
      items: leaves `[seeds, items, ...]`.

    Returns:
      Leaves `[seeds, items, ...]`.
    """
    seeds, victims = scene.told.run.seeds, scene.victims
    stacked = (
        scene.seen, scene.view, victims.known, victims.candidates,
        np.asarray(seeds, np.uint32),
    )  # fmt: skip
    bar = scene.bars.add_task(title, total=len(seeds))
    found = []
    for index in range(len(seeds)):
        of_seed = jax.tree.map(lambda leaf, at=index: leaf[at], (items, stacked))
        found.append(jax.tree.map(np.asarray, run(*of_seed)))
        scene.bars.update(bar, completed=index + 1)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *found)


class Kind(NamedTuple):
    """A kind of attack, one name of `--attack_kinds`.

    Attributes:
      check: refuses, with a ConfigError, what cannot be attacked so.
      rows: runs the attack on every client of every seed and scores it.
    """

    check: Callable[[Prepared], None]
    rows: Callable[[Scene], list[Row]]
