"""What the adversary sees of one client."""

import jax
import numpy as np

from fljax.types import Exchange, Transcript


class TranscriptError(ValueError):
    """A transcript that cannot be used; the message names the file and the reason."""


def exchange(transcript: Transcript, client: int) -> Exchange:
    """One client's messages, oldest first.

    Args:
      transcript: arrays as they come out of a run, without a seed axis.
      client: her id.

    Returns:
      An `Exchange` of NumPy arrays over the recorded rounds in which she took part, in
      the precision of the model whatever that of the recorded messages.

    Raises:
      TranscriptError: if no recorded round has her.
    """
    row, slot = np.nonzero(np.asarray(transcript.client) == client)
    if not len(row):
        raise TranscriptError(f"no recorded message of client {client}")
    params = jax.tree.map(lambda leaf: np.asarray(leaf)[row], transcript.params)
    delta = jax.tree.map(
        lambda sent, leaf: np.asarray(leaf)[row, slot].astype(sent.dtype),
        params,
        transcript.delta,
    )
    return Exchange(params, delta)
