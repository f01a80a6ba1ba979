"""What is compiled of a federation: the algorithm, built from numbers that are traced."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import optax

from fljax import local as local_lib
from fljax import losses
from fljax.types import Defense, EncodeFn, Key, Model, Params, PyTree


class Parts(NamedTuple):
    """What one training does.

    Attributes:
      params: `() -> Params`, the model that it begins with.
      local: the clients' algorithm.
      server_optimiser: applied to the weighted mean delta.
      receive: what the server makes of each message, or None.
    """

    params: Callable[[], Params]
    local: local_lib.LocalUpdate
    server_optimiser: optax.GradientTransformation
    receive: EncodeFn | None = None


Method = Callable[[Key, PyTree, PyTree], Parts]
# (key of the initial model, numbers of the training, pool of inputs) -> what it does


def average(numbers: PyTree) -> optax.GradientTransformation:
    """A server that takes the mean of the messages, as FedAvg's does."""
    del numbers
    return optax.sgd(1.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FedAvg:
    """FedAvg and its relatives, the `Method` of most trainings. Equal ones share programs.

    Attributes:
      model: the model.
      loss_fn: of one example.
      optimiser: `(numbers) -> the clients' optimiser`.
      server_optimiser: `(numbers) -> the server's`.
      defense: `(numbers) -> Defense`, or None.
      proximal: mu of FedProx, or None.
      decay: what the clients' learning rate is multiplied by after each round.
      keeps: whether clients keep their optimiser's state from round to round.
      prepare: `(pool, x of a batch) -> x` that the loss takes, or None.
      begin: `(key, numbers) -> Params` in place of the model's `init`, or None.
    """

    model: Model
    loss_fn: losses.LossFn
    optimiser: Callable[[PyTree], optax.GradientTransformation]
    server_optimiser: Callable[[PyTree], optax.GradientTransformation] = average
    defense: Callable[[PyTree], Defense] | None = None
    proximal: float | None = None
    decay: float = 1.0
    keeps: bool = False
    prepare: Callable[[PyTree, PyTree], PyTree] | None = None
    begin: Callable[[Key, PyTree], Params] | None = None

    def __call__(self, key: Key, numbers: PyTree, pool: PyTree) -> Parts:
        """The parts of one training; traceable."""
        return Parts(
            lambda: self.begun(key, numbers),
            self.local(numbers, pool),
            self.server_optimiser(numbers),
            self.defended(numbers).receive,
        )

    def begun(self, key: Key, numbers: PyTree) -> Params:
        """The model that a training begins with; traceable."""
        if self.begin is None:
            return self.model.init(key)
        return self.begin(key, numbers)

    def local(self, numbers: PyTree, pool: PyTree = None) -> local_lib.LocalUpdate:
        """The clients' algorithm; traceable."""
        defense = self.defended(numbers)
        update = local_lib.sgd(
            self.loss_fn,
            self.optimiser(numbers),
            proximal=self.proximal,
            decay=self.decay,
            keeps=self.keeps,
            gradient=defense.gradient,
            encode=defense.encode,
        )
        if self.prepare is None:
            return update
        return prepared(update, functools.partial(self.prepare, pool))

    def defended(self, numbers: PyTree) -> Defense:
        """The defense with these numbers, an empty one without; traceable."""
        return Defense() if self.defense is None else self.defense(numbers)


def prepared(
    local: local_lib.LocalUpdate, prepare: Callable[[PyTree], PyTree]
) -> local_lib.LocalUpdate:
    """The same algorithm on inputs that `(x of a batch) -> x` has prepared."""

    def step(key, carry, sent, batch):
        return local.step(key, carry, sent, batch._replace(x=prepare(batch.x)))

    return local._replace(step=step)
