"""Which clients take part in which round: NumPy, decided before training starts.

Each function returns one array of client ids per round, increasing, which is what
`schedule.build` packs into lanes. The choice depends on the seed alone, never on data.
"""

from collections.abc import Sequence

import numpy as np

from fljax.types import Array

_BLOCK = 2**12  # rounds that are drawn at once


def everyone(num_clients: int) -> list[np.ndarray]:
    """All clients in every round: a single entry that serves for all rounds.

    Example:
      >>> everyone(3)[0].tolist()
      [0, 1, 2]
    """
    return [np.arange(num_clients)]


def uniform(
    rng: np.random.Generator, num_clients: int, num_rounds: int, fraction: float
) -> list[np.ndarray]:
    """`max(1, round(fraction * num_clients))` clients a round, without replacement.

    Args:
      rng: of all draws.
      num_clients: C, of the federation.
      num_rounds: of the training.
      fraction: of the clients that take part, in (0, 1].

    Returns:
      Of each round the ids of those who take part, increasing.

    Raises:
      ValueError: if `fraction` is outside (0, 1].
    """
    _check_fraction(fraction)
    num_chosen = max(1, round(fraction * num_clients))
    return [
        np.sort(rng.choice(num_clients, num_chosen, replace=False))
        for _ in range(num_rounds)
    ]


def poisson(
    rng: np.random.Generator, num_clients: int, num_rounds: int, fraction: float
) -> list[np.ndarray]:
    """Every client joins a round independently with probability `fraction`.

    A round may be empty; the server's model then stays as it is.

    Args:
      rng: of all draws.
      num_clients: C, of the federation.
      num_rounds: of the training.
      fraction: probability of each client, in (0, 1].

    Returns:
      Of each round the ids of those who take part, increasing.

    Raises:
      ValueError: if `fraction` is outside (0, 1].
    """
    _check_fraction(fraction)
    chosen: list[np.ndarray] = []
    for begin in range(0, num_rounds, _BLOCK):
        drawn = rng.random((min(_BLOCK, num_rounds - begin), num_clients)) < fraction
        chosen += np.split(np.nonzero(drawn)[1], drawn.sum(axis=1).cumsum()[:-1])
    return chosen


def table(
    given: Sequence[Array] | None, num_clients: int, num_rounds: int
) -> np.ndarray:
    """Who takes part in which round, `[T, C]` bool.

    Args:
      given: ids of each round, or of one that serves for all; None means everyone.
      num_clients: C.
      num_rounds: of the training; T is this or 1.

    Raises:
      ValueError: unknown clients, one twice in a round, or another number of rounds.
    """
    if given is None:
        return np.ones((1, num_clients), bool)
    chosen = [np.asarray(ids) for ids in given]
    if len(chosen) not in (1, num_rounds):
        raise ValueError(f"participants: 1 or {num_rounds} rounds, got {len(chosen)}")
    for ids in chosen:
        if ids.size and not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(f"participants: expected ids of clients, got {ids}")
    counts = [ids.size for ids in chosen]
    flat, each = np.concatenate(chosen, axis=None).astype(int), np.arange(len(chosen))
    present = np.zeros((len(chosen), num_clients), bool)
    known = (flat >= 0) & (flat < num_clients)
    present[np.repeat(each, counts)[known], flat[known]] = True
    bad = present.sum(axis=1) != counts
    if bad.any():
        raise ValueError(
            f"participants: expected distinct clients in [0, {num_clients}), "
            f"got {chosen[bad.argmax()]}"
        )
    return present


def _check_fraction(fraction: float) -> None:
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1], got {fraction=}")
