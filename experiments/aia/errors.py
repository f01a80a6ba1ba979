"""Errors of guesses of a continuous attribute, as an audit judges them.

With imputation they are those after shrinkage (`fljax.shrinkage`). Beside them stand
half widths of 95 % intervals over each client's rows: of the error, and of how much
smaller it is than imputation's, row by row.
"""

from typing import NamedTuple

import numpy as np

from experiments.aia import result_rows
from experiments.tabular.targets import Targets
from fljax import metrics, shrinkage, verdicts
from fljax.results import HALF_WIDTH, PAIRED_HALF_WIDTH, Labels, Row

ERROR = verdicts.ERROR.metric


class Imputed(NamedTuple):
    """What the other columns tell of a number.

    Attributes:
      value: `[seeds, C, n]` encoded, as the targets have it.
      left: `[seeds]` variance that imputation leaves.
    """

    value: np.ndarray
    left: np.ndarray


def rows(
    labels: Labels,
    attack: str,
    setting: str,
    guess: np.ndarray,
    targets: Targets,
    imputed: Imputed | None = None,
) -> list[Row]:
    """Errors of `guess [seeds, C, n]` in units of the data set, and what they tell."""
    about = labels, attack, setting
    found: dict[str, np.ndarray] = {}
    for at in zip(*np.nonzero(targets.weights > 0), strict=True):
        for metric, value in _of_client(guess, targets, imputed, *at).items():
            found.setdefault(metric, np.full(targets.weights.shape, np.nan))[at] = value
    made = []
    for metric, values in found.items():
        is_half = metric.endswith(HALF_WIDTH)
        make = result_rows.half_widths if is_half else result_rows.by_client
        made += make(*about, metric, values, targets)
    return made


def _of_client(
    guess: np.ndarray, targets: Targets, imputed: Imputed | None, seed: int, client: int
) -> dict[str, float]:
    mask, unit = targets.mask[seed, client], float(targets.unit[seed])
    guessed, real = guess[seed, client][mask], targets.value[seed, client][mask]
    base, left = None, 0.0
    if imputed is not None:
        base, left = imputed.value[seed, client][mask], float(imputed.left[seed])
    judged = shrinkage.judge(guessed, real, base, left, unit)
    found = {ERROR: float(judged.error.mean()), ERROR + HALF_WIDTH: _half(judged.error)}
    if judged.imputed is not None:
        gain = judged.imputed - judged.error
        found[ERROR + PAIRED_HALF_WIDTH] = _half(gain)
    return found | judged.numbers


def _half(errors: np.ndarray) -> float:
    found = metrics.interval(errors)
    return found.high - found.mean
