"""The defense of a run: what `--defense` says, and its numbers in every seed."""

from typing import NamedTuple

import jax
import numpy as np

from experiments import defense_options
from experiments.tabular.settings import DefenseConfig
from fljax.defenses import specs
from fljax.defenses.definition import Setting
from fljax.defenses.specs import Numbers, Spec
from fljax.driver.config import ConfigError
from fljax.privacy import Releases
from fljax.types import Defense, PyTree

_TRACED = ("sampling_rate", "batch_size", "participation", "num_summed")


class BoundDefense(NamedTuple):
    """A defense in a federation, over seeds.

    Attributes:
      spec: what it is; a clip may have alternatives.
      delta: of every epsilon.
      setting: the training; its numbers are `[seeds, ...]`.
      parts: numbers of each part of the spec, `[seeds, ...]`.
      steps: `[seeds, C]` local steps that a budget covers.
      rounds: in which they are taken; `[seeds, C]` where clients may have stopped.
      per_epoch: `[seeds, C]` local steps of one epoch.
    """

    spec: Spec
    delta: float
    setting: Setting
    parts: Numbers
    steps: np.ndarray
    rounds: int | np.ndarray
    per_epoch: np.ndarray

    @property
    def numbers(self) -> PyTree:
        """All that differs by seed; leaves `[seeds, ...]`."""
        traced = {name: getattr(self.setting, name) for name in _TRACED}
        return traced, self.parts

    @property
    def builder(self) -> "Builder":
        """What makes the defense of one seed from its numbers."""
        fixed = self.setting._replace(**dict.fromkeys(_TRACED, 1.0))
        return Builder(specs.skeleton(self.spec), fixed)

    def build(self, numbers: PyTree) -> Defense:
        """The defense of one seed from its `numbers`, which may be traced."""
        return self.builder(numbers)

    def of_seed(self, seed: int) -> PyTree:
        """Numbers of one seed, concrete."""
        return jax.tree.map(lambda leaf: leaf[seed], self.numbers)

    def releases(self, seed: int) -> Releases:
        stopped = not isinstance(self.rounds, int)
        return Releases(self.steps[seed], self.rounds[seed] if stopped else self.rounds)


class Builder(NamedTuple):
    """A spec in a setting without their numbers; equal ones share compiled programs."""

    spec: Spec
    setting: Setting

    def __call__(self, numbers: PyTree) -> Defense:
        """The defense with these numbers, which may be traced."""
        traced, parts = numbers
        return specs.bind(self.spec, self.setting._replace(**traced), parts)


def read(config: DefenseConfig) -> Spec:
    """The spec of the flag, in which a clip may have alternatives.

    Raises:
      ConfigError: naming the flag.
    """
    spec = defense_options.parse(config.defense)
    for part in spec.parts:
        for name, value in part.given:
            if isinstance(value, tuple) and name != "clip":
                raise ConfigError(
                    f"--defense: {part.name}: {name}: expected one value, for only a clip "
                    "is chosen on held-out rows; --sweep runs several"
                )
    return spec
