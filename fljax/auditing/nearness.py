"""Verdicts on distances of label distributions: how many times as near as a reference.

What there is to gain is another number for every client: hardly anything of one whose
labels are everybody's. Of a few clients an interval over gains covers 0 whatever was read,
for it holds how unlike the clients are. So gains are ratios of distances,

    log((reference + 0.01) / (attack + 0.01)),

whose spread is the attack's own. A leak is nearer on average, too.
"""

from collections.abc import Sequence

import numpy as np

from fljax import verdicts
from fljax.verdicts import DISTANCE, Reference, Verdict

_LEAST = 0.01  # distance that is as good as none
_MEASURE = DISTANCE._replace(margin=0.05)
_ALIKE = 0.1  # that equal ratios of clients are still apart


def judge(
    distances: np.ndarray, references: Sequence[Reference], attacks: int = 1
) -> Verdict:
    """The verdict on one attack, whose gains are logarithms of ratios.

    Args:
      distances: `[C]` total variation from each client's distribution.
      references: of the same clients.
      attacks: how many are judged beside each other.
    """
    ratios = [each._replace(values=_log(each.values)) for each in references]
    found = verdicts.judge(
        _log(distances), ratios, _MEASURE, None, attacks, resolution=_ALIKE
    )
    nearer = all(np.mean(distances) < np.mean(each.values) for each in references)
    if found.kind == verdicts.LEAKS and not nearer:
        return found._replace(kind=verdicts.NOT_SHOWN)
    return found


def said(gain: verdicts.Gain, has_interval: bool) -> str:
    """A gain in words."""
    sign, word = (1, "near") if gain.mean >= 0 else (-1, "far")
    times, *ends = np.exp(sign * np.array([gain.mean, gain.low, gain.high]))
    low, high = sorted(ends)
    interval = f" [{low:.3g}, {high:.3g}]" if has_interval else ""
    return f"{times:.3g}{interval} times as {word} as {gain.name.replace('_', ' ')}"


def _log(distances) -> np.ndarray:
    return np.log(np.asarray(distances, np.float64) + _LEAST)
