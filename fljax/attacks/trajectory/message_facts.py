"""What an attack knows of each message, beside what it holds."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from fljax.defenses.specs import Spec
from fljax.types import Array


class MessageFacts(NamedTuple):
    """What is known of each message beside what it holds; leaves `[R]`.

    Attributes:
      clip: of the examples' gradients, 1 without one.
      message_clip: of the message, 1 without one.
      limit: at which its numbers are cut off, 1 without one.
      noise: variance that is known to be added to each coordinate.
      rate: learning rate of the round over that of the attack's scale.
      path: bool, whether its training is simulated; else it is followed to first order.
        Traced, so that either is one program.
    """

    clip: Array
    message_clip: Array
    limit: Array
    noise: Array
    rate: Array
    path: Array


def none(count: int) -> MessageFacts:
    """Of so many messages, of clients without clips, noise and schedule."""
    one = jnp.ones(count)
    return MessageFacts(one, one, one, jnp.zeros(count), one, jnp.ones(count, bool))


def clips(
    spec: Spec, rounds: np.ndarray, num_rounds: int, num_layers: int
) -> np.ndarray:
    """Clips of examples, of messages, of their numbers `[..., 3]`; 1 without one.

    Args:
      spec: of the defense, without alternatives.
      rounds: `[...]` numbers of rounds.
      num_rounds: of the run, over which a clip decays.
      num_layers: arrays of parameters, M.
    """
    found = np.ones((*np.shape(rounds), 3), np.float32)
    for part in spec.parts:
        does = part.effects
        if does is None or does.arrival:
            continue
        clip = does.clip_at(rounds, num_rounds, num_layers)
        if does.examples:
            found[..., 0] = clip
        if does.messages:
            found[..., 1] = clip
        if does.limit is not None:
            found[..., 2] = does.limit
    return found
