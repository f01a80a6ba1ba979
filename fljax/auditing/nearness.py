"""Verdicts on distances of label distributions: how many times as near as a reference.

What there is to gain is another number for every client: hardly anything of one whose
labels are everybody's. Of a few clients an interval over gains covers 0 whatever was read,
for it holds how unlike the clients are. So gains are ratios of distances,

    log((reference + 0.01) / (attack + 0.01)),

whose spread is the attack's own. A leak is nearer on average, too. What strangers are
compared by is their `typical` distance, of the mean logarithm: a blind guess that is either
right or far off gains on logarithms of means.
"""

from collections.abc import Sequence

import numpy as np

from fljax import verdicts
from fljax.verdicts import DISTANCE, Reference, Verdict

_FEWEST = 3  # clients: two with a class each a coin names in one of four cases
_ROUNDING = 1e-6
_LEAST = 0.01  # distance that is as good as none
_MEASURE = DISTANCE._replace(margin=0.05)
_ALIKE = 0.1  # that logarithms of clients are apart at least


def judge(
    distances: np.ndarray, references: Sequence[Reference], attacks: int = 1
) -> Verdict:
    """The verdict on one attack, whose gains are logarithms of ratios.

    Of two clients nothing is shown.

    Args:
      distances: `[C]` total variation from each client's distribution.
      references: of the same clients.
      attacks: how many are judged beside each other.
    """
    own = _log(distances)
    ratios = [
        each._replace(values=_spread(own, _log(each.values))) for each in references
    ]
    found = verdicts.judge(own, ratios, _MEASURE, None, attacks)
    least = min(np.mean(each.values) for each in references)
    nearer = np.mean(distances) < least - _ROUNDING
    shown = nearer and len(own) >= _FEWEST
    if found.kind == verdicts.LEAKS and not shown:
        return found._replace(kind=verdicts.NOT_SHOWN)
    return found


def typical(distances: np.ndarray) -> np.ndarray:
    """Of `[C, J]` the distance `[C]` whose logarithm is the mean."""
    return np.exp(_log(distances).mean(axis=1)) - _LEAST


def said(gain: verdicts.Gain, has_interval: bool) -> str:
    """A gain in words."""
    sign, word = (1, "near") if gain.mean >= 0 else (-1, "far")
    times, *ends = np.exp(sign * np.array([gain.mean, gain.low, gain.high]))
    low, high = sorted(ends)
    interval = f" [{low:.3g}, {high:.3g}]" if has_interval else ""
    return f"{times:.3g}{interval} times as {word} as {gain.name.replace('_', ' ')}"


def _spread(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The other ones, so that gains of clients are not equal by luck; their mean stays."""
    if len(own) < 2 or np.ptp(other - own) >= _ALIKE:
        return other
    return other + _ALIKE * np.linspace(-1, 1, len(other))


def _log(distances) -> np.ndarray:
    return np.log(np.asarray(distances, np.float64) + _LEAST)
