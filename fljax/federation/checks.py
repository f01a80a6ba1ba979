"""What a federation refuses before anything is compiled."""

from collections.abc import Iterable

import jax
import numpy as np

from fljax import losses
from fljax.federation.method import FedAvg, Method
from fljax.federation.tables import Tables, Training
from fljax.types import Defense, NoiseSpec, PyTree

_ROUNDING = 1e-6  # of a sampling rate, relative


def check(method: Method, tables: Tables, trainings: Training) -> None:
    """Refuses trainings of what is not there, and noise that promises too much.

    What noise promises is looked at in the first training.

    Raises:
      ValueError: naming the field, and what was expected.
      TypeError: the optimiser or the defense is no function that returns one.
    """
    count = len(trainings.seed) if np.ndim(trainings.seed) else 0
    if not count:
        raise ValueError("trainings.seed: expected one seed at least, [trainings]")
    for name, tree in trainings._asdict().items():
        lengths = {len(leaf) if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(tree)}
        if lengths - {count}:
            raise ValueError(
                f"trainings.{name}: expected {count} of them, one for each seed, "
                f"got {min(lengths - {count})}"
            )
    for name, most in (
        ("rows", len(tables.rows.y)), ("schedule", len(tables.schedule.sizes)),
    ):  # fmt: skip
        at = np.asarray(getattr(trainings, name))
        if at.min() < 0 or at.max() >= most:
            raise ValueError(
                f"trainings.{name}: expected positions in [0, {most}), got {at}"
            )
    _check_targets(method, tables)
    if isinstance(method, FedAvg) and not callable(method.optimiser):
        raise TypeError(
            "optimiser: expected a function (numbers) -> optimiser, such as lambda _: "
            f"optax.sgd(0.1), got {type(method.optimiser).__name__}"
        )
    if isinstance(method, FedAvg) and method.defense is not None:
        first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], trainings)
        check_noise(_defense(method, first.numbers).noise, tables, int(first.schedule))


def check_noise(noise: Iterable[NoiseSpec], tables: Tables, at: int = 0) -> None:
    """Refuses noise that promises for other batches, or fewer clients, than there are.

    Args:
      noise: of a defense.
      tables: of the federation.
      at: which of its schedules.

    Raises:
      ValueError: saying what is promised and what the schedule has.
    """
    for spec in noise:
        looked_at = _check_batches if spec.unit == "record" else _check_clients
        looked_at(spec, tables, at)


def _defense(method: FedAvg, numbers: PyTree) -> Defense:
    """The defense of a method, if it is one."""
    said = "a function (numbers) -> Defense, such as lambda _: defense"
    if not callable(method.defense):
        raise TypeError(
            f"defense: expected {said}, got {type(method.defense).__name__}"
        )
    found = method.defended(numbers)
    if not isinstance(found, Defense):
        raise TypeError(
            f"defense: expected {said}, got one that returns {type(found).__name__}"
        )
    return found


def _check_targets(method: Method, tables: Tables) -> None:
    """Refuses targets of which the logistic loss is no loss: it has no least there."""
    loss = getattr(getattr(method, "loss_fn", None), "element_loss", None)
    if loss is not losses.logistic and not isinstance(loss, losses.WeightedLogistic):
        return
    y = np.asarray(tables.rows.y)
    if y.size and not (0 <= y.min() and y.max() <= 1):
        raise ValueError(
            "rows: expected targets from 0 to 1 for the logistic loss, got "
            f"{y.min():g} to {y.max():g}"
        )


def _check_batches(noise: NoiseSpec, tables: Tables, at: int) -> None:
    """Refuses noise on records whose batches are drawn in another way than it says."""
    schedule, said = tables.schedule, np.asarray(noise.sampling_rate)
    if noise.sampling == "all" or said.min() >= 1:
        return
    drawn = "poisson" if schedule.poisson else "fixed"
    if noise.sampling != drawn:
        raise ValueError(
            f"defense: its noise promises for {noise.sampling!r} batches, "
            f"those of the schedule are {drawn!r}"
        )
    real = np.asarray(schedule.sampling_rate)[at, :-1]
    if np.any(said * (1 + _ROUNDING) < real):
        raise ValueError(
            f"defense: its noise promises for a sampling rate of {said}, "
            f"that of the schedule is {real}"
        )


def _check_clients(noise: NoiseSpec, tables: Tables, at: int) -> None:
    """Refuses noise on whole clients of whom more take part in a round than it says.

    Of how many messages are summed before somebody sees them a schedule says nothing.
    """
    if noise.sampling != "fixed":  # of a chance no round is the measure
        return
    clients = tables.schedule.sizes.shape[-1] - 1
    present = np.asarray(tables.schedule.participants)[at] < clients
    most, said = present.sum(-1).max(), float(np.max(noise.sampling_rate))
    if said * (1 + _ROUNDING) < most / clients:
        raise ValueError(
            f"defense: its noise promises for a share of {said:g} of the clients in a "
            f"round, the schedule has up to {most} of {clients}"
        )
