"""An audit of any private step, from outputs alone: anybody's code, in any framework.

    found = audit_step(step, delta=0.1, stated=1.5)   # step: (key, present) -> arrays
    found.crossed                                     # more is proven than was stated

The step is run many times with the canary and without. From a first part of the runs it
is learned how the two differ: in the mean along one direction, which the covariance
whitens, and in the size of what is left. A second part chooses a threshold, the rest
counts. `check_dp` is the quick form: it tests noise, sensitivity and keys of a step that
can be traced, and proves no epsilon.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax.privacy.audits import counts, statistics
from fljax.privacy.audits.statistics import Audited
from fljax.types import PyTree

Step = Callable[[Any, Any], PyTree]
# (key, or number where it is not traced; whether the canary is there) -> what is seen
_LEARNED, _CHOSEN = 0.25, 0.15  # shares of the runs
_FEWEST = 200
_WIDE = 4  # times as many numbers as runs that are learned from
_TINY = 1e-12


class StepAudit(NamedTuple):
    """A lower bound beside what was stated.

    Attributes:
      audited: the lower bound.
      stated: epsilon at the same delta, or None.
      rounds: steps that it covers.
      most: that as many runs can prove, of a step that shows the canary every time.
    """

    audited: Audited
    stated: float | None
    rounds: int
    most: float

    @property
    def crossed(self) -> bool:
        """Whether more is proven than was stated."""
        return self.stated is not None and self.audited.epsilon > self.stated

    def __str__(self) -> str:
        a = self.audited
        beside = "" if self.stated is None else f", stated {self.stated:.3g}"
        verdict = " - CROSSED" if self.crossed else ""
        return (
            f"epsilon >= {a.epsilon:.3g}{beside}{verdict} (delta = {a.delta:g}, "
            f"confidence {a.confidence:g}, {a.counts[0]} + {a.counts[1]} runs of "
            f"{self.rounds} steps, which prove {self.most:.3g} at most)"
        )


def audit_step(
    step: Step,
    *,
    delta: float,
    stated: float | None = None,
    draws: int = 2000,
    rounds: int = 1,
    confidence: float = 0.95,
    seed: int = 0,
    traced: bool = True,
) -> StepAudit:
    """Lower bound of epsilon of a step, or of several in a row.

    Args:
      step: `(key, present) -> arrays`, all that an observer sees of one step, with the
        canary where `present`; draws all its randomness from the key.
      delta: in [0, 1), of the bound.
      stated: epsilon that was promised, for all the rounds.
      draws: runs, half of them with the canary.
      rounds: independent steps of each run.
      confidence: of the bound.
      seed: of all runs.
      traced: whether JAX can trace the step; else it gets a number in place of the key,
        another one in each step, and is called in a loop.

    Raises:
      ValueError: for numbers out of range, or outputs that are not finite.

    Warns:
      UserWarning: outputs are so large that runs hardly teach how they differ, and little
        is proven: show fewer numbers, those that the canary moves most, or run it more
        often. Or so many runs can prove no more than was stated, whatever the step does.
    """
    if draws < _FEWEST or rounds < 1:
        raise ValueError(
            f"expected draws >= {_FEWEST} and rounds >= 1, got {draws=}, {rounds=}"
        )
    if stated is not None and not stated >= 0:
        raise ValueError(f"stated: expected an epsilon of 0 or more, got {stated}")
    statistics.check_numbers(delta, confidence)
    present = np.arange(draws) % 2 > 0
    outputs = _run(step, np.repeat(present, rounds), seed, traced)
    if not outputs.shape[1]:
        raise ValueError("step: expected outputs, got no number")
    if not np.isfinite(outputs).all():
        raise ValueError("step: expected finite outputs")
    learned = np.arange(draws) < _LEARNED * draws
    tuning = np.arange(draws) < (_LEARNED + _CHOSEN) * draws
    if outputs.shape[1] > _WIDE * learned.sum() * rounds:
        warnings.warn(
            f"step: {learned.sum() * rounds} runs hardly teach how {outputs.shape[1]:,} "
            "numbers differ, so that a bound near 0 says nothing: expected fewer numbers, "
            "or more draws",
            stacklevel=2,
        )
    steps = np.repeat(learned, rounds), np.repeat(present, rounds)
    scores = _ratios(outputs, *steps).reshape(draws, rounds).sum(axis=1)
    audited = statistics.audited(
        scores[~learned],
        present[~learned],
        delta=delta,
        confidence=confidence,
        tuning=tuning[~learned],
    )
    runs, told = audited.counts, {"delta": delta, "confidence": confidence}
    most = counts.epsilon(runs[0], 0, runs, **told)
    if stated is not None and stated >= most:
        warnings.warn(
            f"step: {sum(runs)} runs prove an epsilon of {most:.3g} at most, stated is "
            f"{stated:.3g}: expected more draws, or a larger delta",
            stacklevel=2,
        )
    return StepAudit(audited, stated, rounds, most)


def _run(step: Step, present: np.ndarray, seed: int, traced: bool) -> np.ndarray:
    """`[runs, D]` float64."""
    if traced:
        keys = jax.random.split(jax.random.key(seed), len(present))
        seen = jax.jit(jax.vmap(step))(keys, jnp.asarray(present))
        leaves = [_real(leaf) for leaf in jax.tree.leaves(seen)]
        flat = [leaf.reshape(len(present), -1) for leaf in leaves if leaf.size]
        return np.concatenate([np.zeros((len(present), 0)), *flat], axis=1)
    numbers = np.random.SeedSequence(seed).generate_state(len(present), np.uint64)
    each = [
        np.concatenate(
            [np.zeros(0)]
            + [_real(leaf).ravel() for leaf in jax.tree.leaves(step(int(n), bool(p)))]
        )
        for n, p in zip(numbers, present, strict=True)
    ]
    return np.asarray(each, float)


def _real(leaf) -> np.ndarray:
    """In float64, a complex number as two."""
    leaf = np.asarray(leaf)
    parts = [np.real(leaf), np.imag(leaf)] if np.iscomplexobj(leaf) else [leaf]
    return np.stack([part.astype(float) for part in parts], axis=-1)


def _ratios(outputs: np.ndarray, learned: np.ndarray, present: np.ndarray):
    """Log-likelihood ratio `[runs]`, of normal laws that the learned runs have."""
    with_, without = outputs[learned & present], outputs[learned & ~present]
    centre = without.mean(axis=0)
    spread = _covariance(with_ - with_.mean(axis=0), without - centre)
    difference = with_.mean(axis=0) - centre
    if spread.ndim == 1:
        apart = difference / spread
    else:
        apart = np.linalg.solve(spread, difference)
    size = np.linalg.norm(outputs - centre, axis=1)
    seen = np.stack([(outputs - centre) @ apart, np.log(size + _TINY)], axis=1)
    seen = (seen - seen[learned].mean(axis=0)) / (seen[learned].std(axis=0) + _TINY)
    laws = [_normal(seen, learned & side) for side in (present, ~present)]
    return laws[0] - laws[1]


def _covariance(*groups: np.ndarray) -> np.ndarray:
    """`[D, D]`, shrunk to its diagonal as far as there are too few runs; then that, `[D]`."""
    rows = np.concatenate(groups)
    diagonal = np.square(rows).mean(axis=0)
    # Coordinates that do not vary keep a little, relative to the others.
    least = 1e-9 * diagonal.mean() + _TINY
    count, width = rows.shape
    if width >= count:
        return diagonal + least
    shrink = (width / count) ** 2
    found = rows.T @ rows / count
    return (1 - shrink) * found + np.diag(shrink * diagonal + least)


def _normal(seen: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Log-density `[runs]` of the normal law that some of the rows have."""
    rows = seen[of]
    centred = rows - rows.mean(axis=0)
    spread = centred.T @ centred / len(rows) + 1e-6 * np.eye(rows.shape[1])
    gap = seen - rows.mean(axis=0)
    inner = np.sum(gap * np.linalg.solve(spread, gap.T).T, axis=1)
    return -0.5 * (inner + np.linalg.slogdet(spread)[1])
