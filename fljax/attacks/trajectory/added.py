"""Noise of known size: what a defense adds to steps or messages of a client.

On a step of rate eta, noise of deviation s on the mean gradient adds `(eta s)^2` to the
variance of every coordinate. It is carried along the path to zeroth order: K steps add it
K times, with momentum m that of step j times `((1 - m^(K - j)) / (1 - m))^2`. How the
curvature bends it is left to what is measured, as is noise that passes through Adam, is
clipped with a message, or has a budget in place of a size. A message is clipped after all
steps, and by a defense that is named after that which adds to messages.
"""

import numpy as np

from fljax.attacks.adversary import LocalTraining
from fljax.defenses.effects import Effects
from fljax.defenses.specs import Spec


def variance(
    spec: Spec, training: LocalTraining, sizes: np.ndarray, rounds: np.ndarray,
    num_rounds: int,
) -> np.ndarray:  # fmt: skip
    """Variance of every coordinate of messages `[C, Q]`; 0 where nothing is known.

    Args:
      spec: of the defense, without alternatives.
      training: of the clients.
      sizes: `[C]` rows of each.
      rounds: `[C, Q]` numbers of the rounds of its messages.
      num_rounds: of the run, over which a clip decays.
    """
    rounds = np.asarray(rounds)
    facts = [part.effects or Effects() for part in spec.parts]
    found, bounded = np.zeros(rounds.shape), [does.bounds_messages for does in facts]
    for at, does in enumerate(facts):
        noise = np.square(does.deviation_at(rounds, num_rounds))
        of_steps = does.noise in ("sums", "steps")
        if of_steps:
            gain = _gain(does, training, np.asarray(sizes))[:, None]
            noise = noise * gain * np.square(training.factors(rounds))
        if not does.arrival and not any(bounded if of_steps else bounded[at + 1 :]):
            found = found + noise
    return found.astype(np.float32)


def _gain(does: Effects, training: LocalTraining, sizes: np.ndarray) -> np.ndarray:
    """`[C]` of a message's variance over that of a draw in each step; 0 if unknown."""
    rate, momentum = training.learning_rate or 0.0, training.momentum
    if training.optimiser != "sgd":
        return np.zeros(len(sizes))
    found = []
    for size, steps in zip(sizes, training.local_steps(sizes), strict=True):
        left = np.arange(int(steps), 0, -1)
        weights = (1 - momentum**left) / (1 - momentum) if momentum else 1.0
        shares = rate * weights * _scales(does, training, int(size), int(steps))
        found.append(np.square(shares).sum())
    return np.array(found)


def _scales(
    does: Effects, training: LocalTraining, size: int, steps: int
) -> np.ndarray:
    """`[K]` of the draw in each step: one over its rows, where it is added to their sum."""
    if does.noise == "steps":
        return np.ones(steps)
    most = training.batch_size or size
    if does.expected:  # Poisson samples of equal size
        return np.full(steps, training.batches(np.array(size)) / size)
    # The last batch of an epoch is what is left over, and noisier, unless it is dropped.
    rows = np.diff(np.append(np.arange(0, size, most), size))
    rows = rows[: int(training.batches(np.array(size)))]
    stated = np.sqrt(min(most, size)) if does.each else 1.0
    return stated / np.resize(rows, steps)
