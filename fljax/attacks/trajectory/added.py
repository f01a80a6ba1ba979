"""Noise of known size: what a defense adds to steps or messages of a client.

On a step of rate eta, noise of deviation s on the mean gradient adds `(eta s)^2` to the
variance of every coordinate. It is carried along the path to zeroth order: K steps add it
K times, with momentum m that of step j times `((1 - m^(K - j)) / (1 - m))^2`. How the
curvature bends it is left to what is measured, as is noise that passes through Adam, is
clipped with a message, or has a budget in place of a size. A message is clipped after all
steps, and by a defense that is named after that which adds to messages.
"""

from typing import Any

import numpy as np

from fljax.attacks.adversary import LocalTraining
from fljax.defenses import clipping
from fljax.defenses.parts import Part
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
    found, clipped = np.zeros(rounds.shape), [_clips(part) for part in spec.parts]
    for at, part in enumerate(spec.parts):
        noise = np.square(_deviation(part, rounds, num_rounds))
        of_steps = _of_steps(part)
        if of_steps:
            gain = _gain(part, training, np.asarray(sizes))[:, None]
            noise = noise * gain * np.square(training.factors(rounds))
        bounded = any(clipped if of_steps else clipped[at + 1 :])
        if part.values.get("where") != "server" and not bounded:
            found = found + noise
    return found.astype(np.float32)


def _of_steps(part: Part) -> bool:
    return part.name in ("dp_sgd", "fed_cdp") or part.values.get("on") == "steps"


def _clips(part: Part) -> bool:
    """Whether it clips messages at the client."""
    if part.name == "fed_sdp":
        return part.values["where"] == "client"
    return part.name in ("norm_clipping", "value_clipping")


def _deviation(part: Part, rounds: np.ndarray, num_rounds: int) -> np.ndarray:
    """Of one draw, of the sum over a batch where examples are clipped `[C, Q]`."""
    values: dict[str, Any] = part.values
    one = np.ones(rounds.shape)
    match part.name:
        case "gaussian":
            return values["deviation"] * one
        case "laplace":
            return np.sqrt(2) * values["scale"] * one
        case "dp_sgd" | "fed_cdp" | "fed_sdp" if values.get("sigma") is not None:
            decay = values["clip"], values.get("decay_to"), num_rounds
            clip = clipping.at_round(clipping.decaying(*decay), rounds)
            return values["sigma"] * np.asarray(clip) * one
    return 0 * one


def _gain(part: Part, training: LocalTraining, sizes: np.ndarray) -> np.ndarray:
    """`[C]` of a message's variance over that of a draw in each step; 0 if unknown."""
    rate, momentum = training.learning_rate or 0.0, training.momentum
    if training.optimiser != "sgd":
        return np.zeros(len(sizes))
    found = []
    for size, steps in zip(sizes, training.local_steps(sizes), strict=True):
        left = np.arange(int(steps), 0, -1)
        weights = (1 - momentum**left) / (1 - momentum) if momentum else 1.0
        shares = rate * weights * _scales(part, training, int(size), int(steps))
        found.append(np.square(shares).sum())
    return np.array(found)


def _scales(part: Part, training: LocalTraining, size: int, steps: int) -> np.ndarray:
    """`[K]` of the draw in each step: one over its rows, where it is added to their sum."""
    mode, most = part.values.get("mode"), training.batch_size or size
    if part.values.get("on") == "steps":
        return np.ones(steps)
    if part.name == "dp_sgd" or mode == "recommended":  # Poisson samples of equal size
        return np.full(steps, -(-size // most) / size)
    # The last batch of an epoch is what is left over, and noisier.
    rows = np.diff(np.append(np.arange(0, size, most), size))
    stated = np.sqrt(min(most, size)) if mode == "per_example" else 1.0
    return stated / np.resize(rows, steps)
