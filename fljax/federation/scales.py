"""How far clients step: what attacks that simulate them need to know."""

import dataclasses
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from fljax import in_place
from fljax.federation.method import FedAvg
from fljax.federation.tables import Training
from fljax.federation.training import Federation
from fljax.types import PyTree


def learning_rate(method: FedAvg, numbers: PyTree = ()) -> float:
    """That of clients who step by plain SGD, as attacks assume.

    Args:
      method: of the training.
      numbers: of one training.

    Raises:
      ValueError: the clients' optimiser is another one, or the rate changes.
    """
    if method.decay != 1:
        raise ValueError(f"decay: expected one rate in all rounds, got {method.decay}")
    if method.proximal:
        raise ValueError(f"proximal: expected no such term, got {method.proximal}")
    optimiser, param = method.optimiser(numbers), jnp.zeros(())
    change, _ = optimiser.update(jnp.ones(()), optimiser.init(param), param)
    step = cast(jax.Array, change)  # as the gradient is
    if not in_place.only_scales(optimiser, param) or step >= 0:
        raise ValueError("optimiser: expected plain SGD with one learning rate")
    return -float(step)


def scales(federation: Federation, training: Training) -> np.ndarray:
    """Learning rate times local steps `[C]`, the `scale` of trajectory matching.

    Args:
      federation: whose method is `FedAvg`.
      training: ONE training of it, leaves without a leading axis, or with one of 1.

    Raises:
      ValueError: clients do not step by plain SGD, whose steps are all alike in all
        rounds.
    """
    index = np.asarray(training.schedule).item()
    parted = dataclasses.replace(federation.tables.schedule, end_steps=())
    schedule = jax.tree.map(lambda leaf: np.asarray(leaf)[index], parted)
    numbers = jax.tree.map(lambda leaf: jnp.asarray(leaf).squeeze(), training.numbers)
    rate = learning_rate(cast(FedAvg, federation.method), numbers)
    return rate * schedule.local_steps
