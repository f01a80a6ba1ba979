"""Random streams of attacks: by seed, purpose and client id, and nothing else.

Whoever else is attacked, on which device and in which order, changes no draw.
"""

import jax
import numpy as np

from fljax.types import Array, Key

# Purposes of a seed's streams; 0 and 1 belong to the training.
(
    GRADIENT,
    SUBSET,
    ORACLE,
    TRAJECTORY,
    PERMUTATION,
    PREDICTOR,
    INVERSION,
    LABELS,
    DECODING,
    POSTERIOR,
) = range(2, 12)


def numbers(clients: Array | int) -> np.ndarray:
    """Client ids below 2^63 as the uint32 of their streams, those below 2^32 as they are.

    Larger ones that follow each other have different ones.
    """
    ids = np.asarray(clients, np.int64)
    return (ids ^ (ids >> 32)).astype(np.uint32)


def key(seed: Array | int, purpose: int, client: Array | int) -> Key:
    """Stream of one purpose for one client; seed and client may be traced.

    Args:
      seed: of the attack.
      purpose: one of those above; attacks of your own take 100 and more.
      client: id of the client, of those that are traced its number (`numbers`).
    """
    stream = jax.random.fold_in(jax.random.key(seed), purpose)
    known = client if isinstance(client, jax.Array) else numbers(client)
    return jax.random.fold_in(stream, known)
