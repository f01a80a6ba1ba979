"""Membership from the losses of one model, beside models of one's own.

* `threshold`: rows of small loss were there (Yeom et al. 2018);
* `lira`: the likelihood ratio of a row's confidence among shadow models that had the row
  and among those that had not, both Gaussian (Carlini et al. 2022, online), of one
  variance for all rows where there are fewer than 64 shadow models, as they advise;
* `rmia`: how often the row's likelihood, relative to that under shadow models, exceeds
  that of rows of the population (Zarifzadeh et al. 2024, gamma = 1).

Divergence: of numbers the confidence is minus the absolute error, and the likelihood
Gaussian, for the papers have classes only; that of `rmia` breaks its ties by
the row's own ratio. All scores are larger for members.
"""

from typing import NamedTuple

import numpy as np
from scipy import special, stats

_TINY = 1e-8  # of a loss, whose logarithm is taken
_LEAST = 1e-3  # deviation of confidences, where all shadows agree
_MANY = 64  # shadows, from which each row has a variance of its own


class Shadows(NamedTuple):
    """Trainings of the adversary's own.

    Attributes:
      losses: `[S, n]` of the candidates under each of its models.
      there: `[S, n]` bool, whether the candidate was in that training.
      population: `[S, m]` losses of rows that were in none.
    """

    losses: np.ndarray
    there: np.ndarray
    population: np.ndarray


def threshold(losses: np.ndarray) -> np.ndarray:
    """Scores `[n]` from losses `[n]` alone."""
    return -np.asarray(losses, float)


def lira(losses: np.ndarray, shadows: Shadows, *, classes: bool) -> np.ndarray:
    """Scores `[n]`: log likelihood ratios.

    Args:
      losses: `[n]` under the attacked model.
      shadows: two at least with each candidate, and two without it.
      classes: whether the loss is a cross-entropy, else a squared error.

    Raises:
      ValueError: for too few shadows.
    """
    there = np.asarray(shadows.there, bool)
    fewest = min(there.sum(axis=0).min(), (~there).sum(axis=0).min())
    if fewest < 2:
        raise ValueError(
            f"shadows: expected 2 with and 2 without each candidate, got {fewest}"
        )
    own, others = (_confidence(each, classes) for each in (losses, shadows.losses))
    each = []
    for kept in (there, ~there):
        values = np.where(kept, others, np.nan)
        variance = np.nanvar(values, axis=0, ddof=1)
        if len(there) < _MANY:
            variance = np.mean(variance)
        spread = np.maximum(np.sqrt(variance), _LEAST)
        each.append(stats.norm.logpdf(own, np.nanmean(values, axis=0), spread))
    return each[0] - each[1]


def rmia(
    losses: np.ndarray, population: np.ndarray, shadows: Shadows, *, classes: bool
) -> np.ndarray:
    """Scores `[n]`: share of the population below the row, and its ratio within.

    Args:
      losses: `[n]` under the attacked model.
      population: `[m]` likewise, of rows that are in no training.
      shadows: at least one.
      classes: as in `lira`.
    """
    unit = 1.0 if classes else 2 * float(np.mean(shadows.population))
    ratio, base = (
        -np.asarray(own) / unit - _log_mean(-np.asarray(others) / unit)
        for own, others in (
            (losses, shadows.losses),
            (population, shadows.population),
        )
    )
    below = np.searchsorted(np.sort(base), ratio, side="right") / len(base)
    return below + 1e-6 * special.expit(ratio)


def _confidence(losses: np.ndarray, classes: bool) -> np.ndarray:
    """Log odds of the right class; of a number minus the absolute error."""
    if not classes:
        return -np.sqrt(np.asarray(losses, float))
    loss = np.maximum(np.asarray(losses, float), _TINY)
    return -loss - np.log(-np.expm1(-loss))


def _log_mean(values: np.ndarray) -> np.ndarray:
    return special.logsumexp(values, axis=0) - np.log(len(values))
