"""A guessed number beside the truth: its error, and what it tells beyond imputation.

A guess that is noise around the truth is a leak although its error may exceed that of
the median. So it is judged after shrinkage towards the imputed value. If the noise is
independent of the truth, the error is least with the weight

    (variance that imputation leaves) / (mean square of guess minus imputed value),

which needs none of the true values that it is judged by: the first comes from
cross-validation over the population (`fljax.imputation.residual`). One wild row would
take the weight from all others: a guess further from the imputed value than five standard
deviations of what imputation leaves, or of the guesses (by their median distance), is
moved there first. Right values that are so far off are moved with them, so that of a
column with a long tail the share that is explained is told too low.

Where errors depend on the truth that weight is too large, and the error says less than
is known. So the partial correlation of guess and truth, given the imputed value, stands
beside it: its square is the share that the best weights would explain. (Of the two less
the imputed value it would not be: an imputation that is off correlates with itself, and a
constant guess would seem to know something.) Wild guesses are moved for it, too.
"""

from typing import Any, NamedTuple

import numpy as np

CORRELATION = "correlation"
BEFORE = "error_before_shrinkage"
BEYOND = "variance_beyond_imputation_percent"
PARTIAL = "correlation_beyond_imputation"
_WILD = 5  # standard deviations


class Judged(NamedTuple):
    """Of one client.

    Attributes:
      error: `[n]` absolute error of each row, after shrinkage where values are imputed.
      imputed: `[n]` that of the imputed values; None where there are none.
      numbers: by name, as above, those that can be said.
    """

    error: np.ndarray
    imputed: np.ndarray | None
    numbers: dict[str, float]


class Interval(NamedTuple):
    """A correlation with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def judge(
    guess: np.ndarray,
    real: np.ndarray,
    imputed: np.ndarray | None = None,
    left: float = 0.0,
    unit: float = 1.0,
) -> Judged:
    """Errors of a client's guesses, and what they tell.

    Args:
      guess: `[n]`; what is not finite is no guess.
      real: `[n]` true values.
      imputed: `[n]` what the other columns tell; None where nothing is imputed.
      left: variance that imputation leaves.
      unit: of the errors, in units of the values.
    """
    guess, real = (np.asarray(each, np.float64) for each in (guess, real))
    error = unit * np.abs(guess - real)
    numbers = {CORRELATION: correlation(guess, real)}
    if imputed is None:
        return Judged(error, None, numbers)
    moved = shrunk(guess, imputed, left)
    apart, base = moved - real, np.asarray(imputed, np.float64) - real
    share = 1 - np.square(apart).sum() / max(np.square(base).sum(), 1e-30)
    beside = np.stack([np.ones(len(real)), np.asarray(imputed, np.float64)], axis=1)
    told = imputed + _limited(guess, imputed, left)
    partial = correlation(*(_without(each, beside) for each in (told, real)))
    numbers |= {BEFORE: float(error.mean()), BEYOND: float(100 * share)}
    numbers[PARTIAL] = partial
    return Judged(unit * np.abs(apart), unit * np.abs(base), numbers)


def _without(values: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """What is left of `values [n]` by least squares on columns `[n, 2]`."""
    if not np.isfinite(values).all():
        return values
    left = values - beside @ np.linalg.lstsq(beside, values)[0]
    return left if left.std() > 1e-9 * max(np.abs(values).max(), 1e-300) else 0 * left


def shrunk(guess: np.ndarray, imputed: np.ndarray, left: float) -> np.ndarray:
    """Guesses `[n]` moved towards imputed values; what is not finite becomes those."""
    apart = np.nan_to_num(_limited(guess, imputed, left), nan=0.0)
    spread = np.square(apart).mean() if len(apart) else 0.0
    return imputed + apart * (min(1.0, left / spread) if spread > 0 else 0.0)


def _limited(guess: np.ndarray, imputed: np.ndarray, left: float) -> np.ndarray:
    """Guesses `[n]` less imputed values, wild ones moved; NaN where not finite."""
    apart = np.where(np.isfinite(guess), guess - imputed, np.nan)
    some = np.abs(apart[np.isfinite(apart)])
    usual = 1.4826 * np.median(some) if len(some) else 0.0  # of a normal distribution
    most = _WILD * max(np.sqrt(left), usual)
    return np.clip(apart, -most, most)


def correlation(guess: np.ndarray, real: np.ndarray) -> float:
    """Pearson's; NaN for fewer than two rows or guesses that are not finite."""
    if len(real) < 2 or not np.isfinite(guess).all():
        return np.nan
    if guess.std() == 0 or real.std() == 0:
        return 0.0
    return float(np.corrcoef(guess, real)[0, 1])


def mean_correlation(each: Any, counts: Any) -> Interval | None:
    """Of all clients, with Fisher's interval (1915); None where one has none.

    A client of three rows or fewer counts for nothing.

    Args:
      each: `[C]` correlation within a client.
      counts: `[C]` its rows.
    """
    weights = np.maximum(np.asarray(counts, np.float64) - 3, 0)
    counted, weights = np.asarray(each, np.float64)[weights > 0], weights[weights > 0]
    if not len(counted) or not np.isfinite(counted).all():
        return None
    r = np.arctanh(np.clip(counted, -0.999999, 0.999999))
    mean, half = np.average(r, weights=weights), 1.96 / np.sqrt(weights.sum())
    low, middle, high = np.tanh([mean - half, mean, mean + half])
    return Interval(float(middle), float(low), float(high))


def said(
    r: Interval | None, beyond: float | None = None, partial: Interval | None = None
) -> str:
    """Correlations and the share of variance in words, empty without the first.

    Args:
      r: with the truth.
      beyond: percent of the variance that imputation leaves.
      partial: correlation beyond imputation.
    """
    if r is None:
        return ""
    parts = [f"correlation {r}"]
    if partial is not None:
        parts.append(f"beyond imputation {partial}")
    if beyond is not None and np.isfinite(beyond):
        parts.append(f"{max(beyond, 0):.0f} % of the variance that imputation leaves")
    return ", ".join(parts)
