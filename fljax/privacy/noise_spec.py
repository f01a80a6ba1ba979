"""What the noise of a defense promises, read from the object that adds it."""

import functools
from typing import NamedTuple

import numpy as np

from fljax.privacy import exact, sampled
from fljax.privacy.sampled import Accountant
from fljax.types import Array, NoiseSpec


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
    steps: Array | int,
    delta: float,
    *,
    rounds: Array | int | None = None,
) -> Guarantee:
    """What one kind of noise of a defense promises.

    Args:
      noise: from the defense, concrete.
      steps: `[C]` or [], noisy sums that are released: of each client's records, or, for
        a unit 'client', rounds.
      delta: in (0, 1).
      rounds: `[C]` or [], for 'fixed' batches of records, that many rounds the steps are
        spread over if each begins a pass of its own; None: a pass goes on in the next
        round.

    Raises:
      ValueError: for numbers out of range, or a unit or sampling that is not known.
    """
    renyi, tight = (
        epsilons(noise, steps, delta, each, rounds=rounds) for each in ("rdp", "pld")
    )
    return Guarantee(renyi, tight, delta, _say(noise, steps, delta, rounds))


def epsilons(
    noise: NoiseSpec,
    steps: Array | int,
    delta: float,
    accountant: Accountant,
    *,
    rounds: Array | int | None = None,
) -> np.ndarray:
    """The `[C]` epsilons of `guarantee` by one of its accountants.

    Args:
      noise: as in `guarantee`.
      steps: as in `guarantee`.
      delta: as in `guarantee`.
      accountant: 'rdp' or 'pld'.
      rounds: as in `guarantee`.

    Raises:
      ValueError: as `guarantee` does.
    """
    multiplier, rate, count = _numbers(noise, steps)
    for s, q in set(zip(multiplier.tolist(), rate.tolist())):
        exact.check(s, q, delta)
    drawn = (noise.unit, noise.sampling) == ("client", "fixed")

    @functools.cache  # many clients have the same numbers
    def epsilon(s, q, n, rate, met):
        if drawn and accountant == "pld":
            return exact.gaussian(s, *exact.drawn(int(n), float(q)), delta)
        return sampled.epsilon(s, rate, met, delta, accountant)

    of_all = np.vectorize(epsilon, otypes=[float])
    return of_all(multiplier, rate, count, *as_poisson(noise, count, rounds))


def as_poisson(
    noise: NoiseSpec, steps: Array | int, rounds: Array | int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rate and number of Poisson sums that promise no more than these sums.

    A row is in one of the disjoint batches of a pass, and nothing is gained by that. A
    client that is drawn and may be seen counts as if it always were.

    Args:
      noise: its unit, sampling and sampling rate.
      steps: as in `guarantee`.
      rounds: as in `guarantee`.

    Returns:
      `[C]` or [], the rate in (0, 1] and the number.

    Raises:
      ValueError: for steps below 0, or a unit or sampling that is not known.
    """
    kind = noise.unit, noise.sampling
    if kind not in _HOW:
        raise ValueError(f"no accounting for the unit and sampling {kind}")
    exact.check_steps(steps)
    rate, count = np.broadcast_arrays(noise.sampling_rate, steps)
    if noise.sampling == "poisson":
        return rate, count
    if kind == ("record", "fixed"):
        spread = np.maximum(1 if rounds is None else rounds, 1)
        passes = np.ceil(-(-count // spread) * rate * (1 - 1e-9))
        count = spread * passes.astype(int)
    return np.ones(count.shape), count


# How a unit comes into the sums; `{q}` is its rate.
_HOW = {
    ("record", "poisson"): (
        "every row is in each of its batches independently with probability q = {q} "
        "(Poisson)"
    ),
    ("client", "poisson"): (
        "every client is in each round independently with probability q = {q} (Poisson), "
        "and who is in it is not seen"
    ),
    ("record", "all"): "every row is in every sum",
    ("client", "all"): "every client may be in every round, and be seen in it",
    ("record", "fixed"): (
        "batches are disjoint and hold a share q = {q} of its rows: a row is in one sum "
        "of each pass, and nothing is gained by sampling"
    ),
    ("client", "fixed"): (
        "a fixed share q = {q} of the clients is drawn anew for each round, and may be "
        "seen: delta is a mean over the rounds that it is drawn for, exactly so in "
        "epsilon_pld, while epsilon_rdp counts it in all of them"
    ),
}


def _numbers(noise: NoiseSpec, steps) -> tuple[np.ndarray, ...]:
    """Multiplier, rate and steps, `[C]` each."""
    told = noise.noise_multiplier, noise.sampling_rate, steps
    return np.broadcast_arrays(*map(np.atleast_1d, told))


def _say(noise: NoiseSpec, steps, delta: float, rounds) -> str:
    multiplier, rate, count = _numbers(noise, steps)
    _, met = as_poisson(noise, count, rounds)
    how = _HOW[noise.unit, noise.sampling].format(q=_span(rate))
    whose, one, public = {
        "record": ("(one row) of one client", "row", "rows it has"),
        "client": ("(all that it has)", "client", "clients there are"),
    }[noise.unit]
    some = ""
    if (noise.unit, noise.sampling) == ("record", "fixed"):
        some = f", of which a row is in {_span(met)}"
    return (
        f"neighbours: {noise.adjacency} {whose}; {how}; one {one} changes a sum by at "
        f"most {float(np.max(noise.sensitivity)):g} and the noise has a deviation of "
        f"{_span(multiplier)} times that; {_span(count)} such sums are composed{some}, "
        f"whatever the server sends; how many {public} is public; delta = {delta:g}"
    )


def _span(values: np.ndarray) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
