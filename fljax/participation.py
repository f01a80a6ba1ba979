"""Which clients take part in which round: NumPy, decided before training starts.

Each function returns one array of client ids per round, increasing, which is what
`schedule.build` packs into lanes. The choice depends on the seed alone, never on data.
"""

import numpy as np

_BLOCK = 2**12  # rounds that are drawn at once


def everyone(num_clients: int) -> list[np.ndarray]:
    """All clients in every round: a single entry that serves for all rounds."""
    return [np.arange(num_clients)]


def uniform(
    rng: np.random.Generator, num_clients: int, num_rounds: int, fraction: float
) -> list[np.ndarray]:
    """`max(1, round(fraction * num_clients))` clients a round, without replacement.

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

    Raises:
      ValueError: if `fraction` is outside (0, 1].
    """
    _check_fraction(fraction)
    chosen: list[np.ndarray] = []
    for begin in range(0, num_rounds, _BLOCK):
        drawn = rng.random((min(_BLOCK, num_rounds - begin), num_clients)) < fraction
        chosen += np.split(np.nonzero(drawn)[1], drawn.sum(axis=1).cumsum()[:-1])
    return chosen


def _check_fraction(fraction: float) -> None:
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must be in (0, 1], got {fraction=}")
