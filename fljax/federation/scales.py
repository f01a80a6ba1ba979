"""How far clients step: what attacks that simulate them need to know."""

import jax
import jax.numpy as jnp
import numpy as np

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
    optimiser, param = method.optimiser(numbers), jnp.zeros(())
    state, steps = optimiser.init(param), []
    for gradient in (1.0, 1.0, -2.0):
        step, state = optimiser.update(jnp.asarray(gradient), state, param)
        steps.append(float(step))
    if not np.allclose(steps, steps[0] * np.array([1, 1, -2])) or steps[0] >= 0:
        raise ValueError("optimiser: expected plain SGD with one learning rate")
    return -steps[0]


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
    tables = jax.tree.map(np.asarray, federation.tables.schedule)
    own = jax.tree.map(lambda leaf: leaf[index], tables)
    numbers = jax.tree.map(lambda leaf: jnp.asarray(leaf).squeeze(), training.numbers)
    return learning_rate(federation.method, numbers) * own.local_steps
