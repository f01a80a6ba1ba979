"""What the noise of a defense promises, read from the object that adds it."""

from typing import NamedTuple

import numpy as np

from fljax.accounting import exact, sampled
from fljax.types import NoiseSpec


class Guarantee(NamedTuple):
    """What is promised to each client's records, or to each client.

    Attributes:
      epsilon_rdp: `[C]` float64 by Renyi divergences; inf without noise.
      epsilon_pld: `[C]` float64 by privacy loss distributions, exact without sampling.
      delta: of both.
      assumption: what they rest on, in words.
    """

    epsilon_rdp: np.ndarray
    epsilon_pld: np.ndarray
    delta: float
    assumption: str


def guarantee(
    noise: NoiseSpec,
    steps: np.ndarray | int,
    delta: float,
    *,
    rounds: int | None = None,
) -> Guarantee:
    """What one kind of noise of a defense promises.

    Args:
      noise: from the defense, concrete.
      steps: `[C]` or [], noisy sums that are released: of each client's records, or, for
        a unit 'client', rounds.
      delta: in (0, 1).
      rounds: for 'fixed' batches of records, that many rounds the steps are spread over
        if each begins a pass of its own; None: a pass goes on in the next round.

    Raises:
      ValueError: for numbers out of range, or a unit or sampling that is not known.
    """
    multiplier, rate, count = np.broadcast_arrays(
        *map(np.atleast_1d, (noise.noise_multiplier, noise.sampling_rate, steps))
    )
    told = noise.unit, noise.sampling
    if told not in _HOW:
        raise ValueError(f"no accounting for the unit and sampling {told}")
    for s, q, n in zip(multiplier, rate, count):
        sampled.epsilon(s, q, min(n, 0), delta)  # only looks at the numbers
    met = None
    if noise.sampling == "poisson":
        pairs = _poisson(multiplier, rate, count, delta)
    elif noise.sampling == "all":
        pairs = _every(multiplier, count, delta)
    elif noise.unit == "record":
        met = _met(rate, count, rounds)
        pairs = _every(multiplier, met, delta)
    else:
        pairs = _drawn(multiplier, rate, count, delta)
    renyi, tight = np.array(pairs, float).reshape(-1, 2).T
    said = _say(noise, multiplier, rate, count, met, delta)
    return Guarantee(renyi, tight, delta, said)


# How a unit comes into the sums; `{q}` is its rate.
_HOW = {
    ("record", "poisson"): (
        "every row is in each of her batches independently with probability q = {q} "
        "(Poisson)"
    ),
    ("client", "poisson"): (
        "every client is in each round independently with probability q = {q} (Poisson), "
        "and who is in it is not seen"
    ),
    ("record", "all"): "every row is in every sum",
    ("client", "all"): "every client may be in every round, and be seen in it",
    ("record", "fixed"): (
        "batches are disjoint and hold a share q = {q} of her rows: a row is in one sum "
        "of each pass, and nothing is gained by sampling"
    ),
    ("client", "fixed"): (
        "a fixed share q = {q} of the clients is drawn anew for each round, and may be "
        "seen: delta is a mean over the rounds that she is drawn for, exactly so in "
        "epsilon_pld, while epsilon_rdp takes her as in all of them"
    ),
}


def _say(noise, multiplier, rate, count, met, delta) -> str:
    how = _HOW[noise.unit, noise.sampling].format(q=_span(rate))
    whose, one, public = {
        "record": ("(one row) of one client", "row", "rows she has"),
        "client": ("(all that she has)", "client", "clients there are"),
    }[noise.unit]
    some = "" if met is None else f", of which a row is in {_span(met)}"
    return (
        f"neighbours: {noise.adjacency} {whose}; {how}; one {one} changes a sum by at "
        f"most {float(np.max(noise.sensitivity)):g} and the noise has a deviation of "
        f"{_span(multiplier)} times that; {_span(count)} such sums are composed{some}, "
        f"whatever the server sends; how many {public} is public; delta = {delta:g}"
    )


def _met(rate, count, rounds: int | None) -> np.ndarray:
    """In how many sums a row is, at most."""
    spread = 1 if rounds is None else rounds
    per_round = -(-count // spread)
    return spread * np.ceil(per_round * rate * (1 - 1e-9)).astype(int)


def _poisson(multiplier, rate, count, delta) -> list[tuple[float, float]]:
    return [
        (
            sampled.epsilon(s, q, n, delta, "rdp"),
            sampled.epsilon(s, q, n, delta, "pld"),
        )
        for s, q, n in zip(multiplier, rate, count)
    ]


def _every(multiplier, count, delta) -> list[tuple[float, float]]:
    return _poisson(multiplier, np.ones(len(count)), count, delta)


def _drawn(multiplier, rate, count, delta) -> list[tuple[float, float]]:
    return [
        (
            sampled.epsilon(s, 1.0, n, delta, "rdp"),
            exact.gaussian(float(s), *exact.drawn(int(n), float(q)), delta),
        )
        for s, q, n in zip(multiplier, rate, count)
    ]


def _span(values: np.ndarray) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
