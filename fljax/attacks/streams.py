"""Random streams of attacks: by seed, purpose and client id, and nothing else.

Whoever else is attacked, on which device and in which order, changes no draw.
"""

import jax

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
) = range(2, 11)


def key(seed: Array | int, purpose: int, client: Array | int) -> Key:
    """Stream of one purpose for one client; seed and client may be traced.

    Args:
      seed: of the attack.
      purpose: one of those above; attacks of your own take 100 and more.
      client: id of the client.
    """
    stream = jax.random.fold_in(jax.random.key(seed), purpose)
    return jax.random.fold_in(stream, client)
