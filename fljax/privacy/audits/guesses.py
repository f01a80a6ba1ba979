"""What guesses of the coins of one training with many canaries prove.

Bounds are those of `jax_privacy.auditing`.
"""

import functools
import importlib
import warnings
from typing import Any

import numpy as np

from fljax.privacy.audits import statistics
from fljax.privacy.audits.statistics import Audited
from fljax.types import Array

_FEWEST_GUESSES = 4  # of the highest scores


def one_run(
    scores: Array, present: Array, *, delta: float, confidence: float = 0.95
) -> Audited:
    """Lower bound of epsilon from one training with many canaries, each in by a fair coin.

    Steinke, Nasr and Jagielski (2023, arXiv:2305.08846): guesses are made of the highest
    scores alone. How many are made is one of a few numbers that do not depend on the
    coins, and the error is shared between these; the library's own correction is by the
    thresholds that are left after looking at the coins, which are too few.

    Args:
      scores: `[M]` of the canaries.
      present: `[M]` bool, how the coins fell.
      delta: in (0, 1), of the bound.
      confidence: in (0.5, 1), of the bound.

    Raises:
      ValueError: for numbers out of range, or fewer than 8 on some side.
      ModuleNotFoundError: jax-privacy is not there.

    Warns:
      UserWarning: all scores are alike, or nothing would be proven if all guesses were
        right.
    """
    values, there = np.asarray(scores, float), np.asarray(present, bool)
    statistics.check(values, there, None, delta, confidence)
    if not delta > 0:
        raise ValueError(f"delta must be in (0, 1), got {delta}")
    found = bound(values, there, delta, confidence)
    if not found.epsilon and not _most(*found.counts, delta, confidence):
        warnings.warn(
            f"delta: at {delta:g} one training with {len(there)} canaries proves nothing, "
            "however right all guesses are, so that a bound of 0 says nothing; expected a "
            f"smaller delta, e.g. {0.01 / len(there):.1g}",
            stacklevel=2,
        )
    return found


@functools.lru_cache(maxsize=256)
def _most(within: int, without: int, delta: float, confidence: float) -> float:
    """Epsilon of guesses that are all right."""
    there = np.repeat([True, False], [within, without])
    return bound(there.astype(float), there, delta, confidence).epsilon


def bound(values, there, delta: float, confidence: float) -> Audited:
    """The same of checked scores, without a word."""
    auditor, thresholds = (
        _auditor(values, there),
        _thresholds(statistics.finite(values)),
    )
    significance = (1 - confidence) / len(thresholds)

    def best(method) -> float:
        found = (
            method(significance, delta, threshold_strategy=library().Explicit(each))
            for each in thresholds
        )
        return max(0.0, *map(float, found))

    return Audited(
        best(auditor.epsilon_one_run),
        delta,
        confidence,
        (int(there.sum()), int((~there).sum())),
        (0, 0),
        best(auditor.epsilon_one_run_fdp),
        statistics.area(values, there),
    )


def _thresholds(scores: np.ndarray) -> list[float]:
    """Scores from which on a canary is guessed to be in: all, half, a quarter, ..."""
    falling, guesses = np.sort(scores)[::-1], len(scores)
    found = []
    while guesses >= _FEWEST_GUESSES:
        found.append(float(falling[guesses - 1]))
        guesses = -(-guesses // 2) if guesses > _FEWEST_GUESSES else 0
    return found


def library() -> Any:
    """`jax_privacy.auditing`, imported when it is needed.

    Raises:
      ModuleNotFoundError: it is not there; says what to install.
    """
    try:
        return importlib.import_module("jax_privacy.auditing")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "auditing an epsilon needs jax-privacy: pip install -e '.[epsilon]'",
            name=error.name,
        ) from error


def _auditor(values, there) -> Any:
    """Of the library, which would leave out infinite scores."""
    values = statistics.finite(values)
    return library().CanaryScoreAuditor(values[there], values[~there])
