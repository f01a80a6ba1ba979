"""What runs of a private step show of its noise: scale, repetition, correlation.

Of Gaussian noise that is independent from number to number and from run to run every test
has its level; residuals are deviations from the mean over the runs, over what is stated.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import stats

_COMPARED = 1000  # numbers that are compared two by two
_MANY = 20  # numbers, of which sums of squared correlations have the law that is taken
_SPACINGS = 2.0  # a sum that was multiplied may skip every other number


class Finding(NamedTuple):
    """Outcome of one test.

    Attributes:
      name: what was tested.
      passed: whether it is as it should be.
      measured: the number.
      low: smallest number that passes.
      high: largest number that passes.
    """

    name: str
    passed: bool
    measured: float
    low: float
    high: float

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        wanted = f"expected {self.low:.4g} to {self.high:.4g}"
        return f"{verdict} {self.name}: {self.measured:.4g}, {wanted}"


def finding(name: str, value, low, high) -> Finding:
    """Passed where the value is between both."""
    value, low, high = float(value), float(low), float(high)
    return Finding(name, low <= value <= high, value, low, high)


def standard(runs, noise: float) -> np.ndarray:
    """`[draws, P]` float64 residuals of runs: of variance 1 if the noise is as stated."""
    values = np.asarray(runs, np.float64)
    spread = noise * np.sqrt(1 - 1 / len(values))
    return (values - values.mean(axis=0)) / spread


def scales(
    names: Sequence[str], residuals: Sequence[np.ndarray], significance: float
) -> Iterator[Finding]:
    """Measured over stated deviation, of every array and of single numbers."""
    for name, leaf in _filled(names, residuals):
        low, high = _ends(_freedom(leaf), significance / len(residuals) / 2)
        ratio = np.sqrt(np.sum(leaf**2) / leaf.size)
        yield finding(f"noise scale of {name}", ratio, low, high)
    ratios = np.concatenate([np.sqrt(np.mean(r**2, axis=0)) for r in residuals])
    low, high = _ends(len(residuals[0]) - 1, significance / ratios.size / 2)
    yield finding("noise scale of the quietest number", ratios.min(), low, np.inf)
    yield finding("noise scale of the loudest number", ratios.max(), 0, high)


def _filled(names, residuals) -> list[tuple[str, np.ndarray]]:
    """Arrays that have a number, with their names."""
    both = zip(names, residuals, strict=True)
    return [(name, leaf) for name, leaf in both if leaf.size]


def _ends(freedom: int, level: float) -> np.ndarray:
    """Smallest and largest deviation that chance allows, each half of the level."""
    return np.sqrt(stats.chi2.ppf([level / 2, 1 - level / 2], freedom) / freedom)


def repeats(drawn, again, noise: float, significance: float) -> Iterator[Finding]:
    """Of one key the same, of others another: but for few numbers of little precision.

    Args:
      drawn: leaves `[draws, P]`, sums with noise of a key each.
      again: the same with the same keys.
      noise: stated deviation.
      significance: share of sound steps whose outcomes coincide more often.
    """
    rows, same = (
        np.concatenate([np.asarray(leaf, float) for leaf in each], axis=1)
        for each in (drawn, again)
    )
    gap = np.max(np.abs(rows - same))
    yield finding("difference of two runs with one key", gap, 0, 0)
    draws = len(rows)
    alike = np.sum([np.log(_chance_alike(leaf, noise)).sum() for leaf in drawn])
    expected = draws * (draws - 1) / 2 * np.exp(alike)
    most = min(stats.poisson.isf(significance, expected), draws - 1)
    different = len(np.unique(rows, axis=0)) / draws
    name = "share of keys with noise of their own"
    yield finding(name, different, 1 - most / draws, 1)


def _chance_alike(leaf, noise: float) -> np.ndarray:
    """`[P]` that two draws round to one number, by how far such numbers are apart."""
    apart = (
        _SPACINGS * precision(leaf) * np.max(np.abs(np.asarray(leaf, float)), axis=0)
    )
    return np.clip(apart / (2 * np.sqrt(np.pi) * noise), 1e-300, 1)


def precision(leaf) -> float:
    """Relative distance of neighbours among the numbers of an array's type."""
    return float(jnp.finfo(leaf.dtype).eps)


def correlations(
    names: Sequence[str], residuals: Sequence[np.ndarray], significance: float
) -> Iterator[Finding]:
    """Between successive draws, between arrays over what both have, between numbers."""
    rows = np.concatenate(residuals, axis=1)
    yield _serial(rows, significance)
    pairs = list(itertools.combinations(_filled(names, residuals), 2))
    for (name, first), (other, second) in pairs:
        width = min(first.shape[1], second.shape[1])
        both = first[:, :width], second[:, :width]
        yield uncorrelated(f"{name} and {other}", *both, significance / len(pairs))
    if rows.shape[1] > 1:
        yield _two_numbers(rows, significance / 2)
    if rows.shape[1] >= _MANY:
        yield _directions(rows, significance / 2)


def _two_numbers(rows: np.ndarray, significance: float) -> Finding:
    """The largest correlation of two of some numbers, evenly chosen from all."""
    count = min(rows.shape[1], _COMPARED)
    some = rows[:, np.linspace(0, rows.shape[1] - 1, count).astype(int)]
    size = np.maximum(np.linalg.norm(some, axis=0), 1e-300)
    found = np.abs((some / size).T @ (some / size))
    np.fill_diagonal(found, 0)
    pairs = count * (count - 1) / 2
    tail = stats.beta.isf(significance / pairs, 0.5, (len(rows) - 2) / 2)
    return finding("correlation of two numbers", found.max(), 0, np.sqrt(tail))


def _directions(rows: np.ndarray, significance: float) -> Finding:
    """Sum of squared correlations of all numbers, over what independent ones have.

    Two where every number is there twice: noise in half of the directions. It is the mean
    of squared products of independent runs, here of differences of neighbours, which have
    no mean. Mean and variance are at most those that are taken, the law is taken to be a
    multiple of chi^2, as it is of many numbers.
    """
    half = len(rows) // 2
    own = rows[: 2 * half : 2] - rows[1 : 2 * half : 2]
    width = rows.shape[1]
    own *= np.sqrt(own.size / np.maximum(np.sum(own**2), 1e-300))
    products = (own @ own.T)[np.triu_indices(half, 1)] ** 2 / width
    shared = 2 * (half - 2) * 2 / width
    variance = (2 + 6 / width + shared) / len(products)
    high = stats.chi2.isf(significance, 2 / variance) * variance / 2
    return finding("correlation of all numbers, squared", products.mean(), 0, high)


def between_clients(first, second, noise: float, significance: float) -> Finding:
    """Two clients with keys of their own, `[draws, P]` each."""
    both = standard(first, noise), standard(second, noise)
    return uncorrelated("two clients", *both, significance)


def _serial(rows: np.ndarray, significance: float) -> Finding:
    """Between successive draws, the first after the last.

    Any two deviations from the mean of n independent draws correlate by -1 / (n - 1).
    Mean and variance are those of the circular serial correlation (Anderson 1942), with
    the freedom of all coordinates.
    """
    draws, freedom = len(rows), _freedom(rows)
    size = np.sum(rows**2)
    value = np.sum(rows * np.roll(rows, 1, axis=0)) / size if size > 0 else 1.0
    variance = draws * (draws - 3) / ((draws - 1) ** 2 * (freedom + 2))
    centre = -1 / (draws - 1)
    limit = stats.norm.isf(significance / 2) * np.sqrt(variance)
    name = "correlation of successive draws"
    return finding(name, value, centre - limit, centre + limit)


def uncorrelated(name, first, second, significance) -> Finding:
    """Their correlation, whose square has a beta distribution under independence."""
    size = np.sqrt(np.sum(first**2) * np.sum(second**2))
    value = np.sum(first * second) / size if size > 0 else 1.0
    tail = stats.beta.isf(significance, 0.5, (_freedom(first) - 1) / 2)
    return finding(f"correlation of {name}", value, -np.sqrt(tail), np.sqrt(tail))


def _freedom(residuals: np.ndarray) -> int:
    """Of deviations `[draws, P]` from their mean over draws."""
    return (len(residuals) - 1) * residuals.shape[1]
