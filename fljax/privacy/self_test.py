"""A statistical test of a private step: does it do what its accountant is told?

The step is run many times, and judged by what comes out alone, so that it may be
anybody's. Each kind of finding is tested at a level of `significance` over all that it
looks at; there are four kinds, so that a sound step fails something in at most four times
that share of runs. What it cannot see: noise that is
right in law and known to the adversary, a batch that is not sampled as stated, a
bound that only some other batch breaks.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from fljax.types import Batch, GradientFn, Key, Params

_OUTLIER = 1e4  # times which an example's input is scaled to reach the clip
_ROUNDING = 1e-3  # of the sensitivity, for differences of float32 sums
_NOTHING = 1e-6  # of the sensitivity: a step so deaf to its examples heeds no mask
_CLIENTS = 2


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


def check_dp(
    step_fn: GradientFn,
    params: Params,
    batch: Batch,
    *,
    noise: float,
    sensitivity: float,
    batch_size: float,
    key: Key | None = None,
    draws: int = 200,
    significance: float = 1e-3,
) -> list[Finding]:
    """Tests noise scale, clip bound, key reuse and independence of a private step.

    Args:
      step_fn: `(key, params, batch) -> (gradient, loss)`: the sum over the batch of
        clipped gradients, plus Gaussian noise, over `batch_size`. It must be traceable
        and leave out examples that the mask leaves out: one that does not changes by
        no example, and fails.
      params: a model.
      batch: examples; some of them should have gradients that are clipped. They are also
        tried scaled up.
      noise: standard deviation of the noise on the sum, what an accountant is told:
        noise multiplier times sensitivity.
      sensitivity: norm by which one example changes the sum, at most.
      batch_size: divisor of the sum.
      key: of the tests.
      draws: runs with different keys.
      significance: share of sound steps that fail a kind of finding.

    Returns:
      Findings: noise scale of every array, sensitivity to one example, same key same
      outcome, other key other noise, and correlations between successive draws, between
      arrays, and between clients side by side.

    Raises:
      ValueError: for numbers out of range, or a batch whose mask leaves out all.
    """
    if not noise > 0 or not sensitivity > 0 or not batch_size > 0:
        raise ValueError(
            "noise, sensitivity and batch_size must be > 0, "
            f"got {noise=}, {sensitivity=}, {batch_size=}"
        )
    if draws < 10 or not 0 < significance < 1:
        raise ValueError(f"expected draws >= 10, 0 < significance < 1, got {draws=}")
    if not np.any(batch.mask):
        raise ValueError("batch must have an example, its mask leaves out all")
    key = jax.random.key(0) if key is None else key

    def total(number, batch, client=0) -> list[jax.Array]:
        mine = jax.random.fold_in(jax.random.fold_in(key, number), client)
        leaves = jax.tree.leaves(step_fn(mine, params, batch)[0])
        return [leaf.ravel() * jnp.asarray(batch_size, leaf.dtype) for leaf in leaves]

    numbers = jnp.arange(draws)
    draw = jax.jit(jax.vmap(total, (0, None)))
    drawn, again = (draw(numbers, batch) for _ in range(2))
    residuals = [_standard(leaf, noise) for leaf in drawn]
    names = [jax.tree_util.keystr(p) for p, _ in jax.tree.leaves_with_path(params)]
    changed = _largest_change(total, batch)
    return [
        *_scales(names, residuals, significance),
        _finding(
            "change by one example",
            changed,
            _NOTHING * sensitivity,
            sensitivity * (1 + _ROUNDING),
        ),
        *_repeats(drawn, again),
        *_correlations(names, residuals, significance),
        _between_clients(total, numbers, batch, noise, significance),
    ]


def _standard(leaf: jax.Array, noise: float) -> np.ndarray:
    """`[draws, P]` float64: deviations from the mean over draws, of variance 1."""
    values = np.asarray(leaf, np.float64)
    spread = noise * np.sqrt(1 - 1 / len(values))
    return (values - values.mean(axis=0)) / spread


def _scales(names, residuals, significance) -> Iterator[Finding]:
    """Measured over stated deviation, array by array."""
    tail = significance / len(residuals) / 2
    for name, leaf in zip(names, residuals, strict=True):
        freedom = _freedom(leaf)
        ends = stats.chi2.ppf([tail, 1 - tail], freedom) / freedom
        ratio = np.sqrt(np.sum(leaf**2) / leaf.size)
        yield _finding(f"noise scale of {name}", ratio, *np.sqrt(ends))


def _largest_change(total, batch: Batch) -> float:
    """By one example, beside all others and alone, as they are and scaled up.

    With the same key the noise is the same and drops out of the difference.
    """
    mask = np.asarray(batch.mask)
    one = np.eye(len(mask), dtype=bool)[mask]
    having = np.concatenate([np.broadcast_to(mask, one.shape), one])
    pairs = np.stack([having, having & ~np.tile(one, (2, 1))], axis=1)

    @jax.jit
    def changes(x):
        def change(pair):
            sums = jax.vmap(lambda m: total(0, batch._replace(x=x, mask=m)))(pair)
            return jnp.sqrt(sum(jnp.sum(jnp.square(a - b)) for a, b in sums))

        return jax.lax.map(change, pairs)

    return float(np.max([changes(_scaled(batch.x, s)) for s in (1.0, _OUTLIER)]))


def _scaled(x, scale: float):
    def leaf(value):
        real = jnp.issubdtype(jnp.asarray(value).dtype, jnp.floating)
        return value * scale if real else value

    return jax.tree.map(leaf, x)


def _repeats(drawn, again) -> Iterator[Finding]:
    rows, same = (np.concatenate(each, axis=1) for each in (drawn, again))
    gap = np.max(np.abs(rows - same))
    yield _finding("difference of two runs with one key", gap, 0, 0)
    different = len(np.unique(rows, axis=0)) / len(rows)
    yield _finding("share of keys with noise of their own", different, 1, 1)


def _correlations(names, residuals, significance) -> Iterator[Finding]:
    """Between successive draws, and between arrays over what both have."""
    yield _serial(np.concatenate(residuals, axis=1), significance)
    pairs = [(i, j) for j in range(len(residuals)) for i in range(j)]
    for i, j in pairs:
        width = min(residuals[i].shape[1], residuals[j].shape[1])
        first, second = (leaf[:, :width] for leaf in (residuals[i], residuals[j]))
        name = f"{names[i]} and {names[j]}"
        yield _uncorrelated(name, first, second, significance / len(pairs))


def _between_clients(total, numbers, batch, noise, significance) -> Finding:
    """Two clients with keys of their own, side by side in one program."""

    def client(which, number):
        return jnp.concatenate(total(number, batch, which))

    both = jax.vmap(jax.vmap(client, (None, 0)), (0, None))
    found = jax.jit(both)(jnp.arange(_CLIENTS), numbers)
    first, second = (_standard(each, noise) for each in found)
    return _uncorrelated("two clients", first, second, significance)


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
    return _finding(name, value, centre - limit, centre + limit)


def _uncorrelated(name, first, second, significance) -> Finding:
    """Their correlation, whose square has a beta distribution under independence."""
    size = np.sqrt(np.sum(first**2) * np.sum(second**2))
    value = np.sum(first * second) / size if size > 0 else 1.0
    tail = stats.beta.isf(significance, 0.5, (_freedom(first) - 1) / 2)
    return _finding(f"correlation of {name}", value, -np.sqrt(tail), np.sqrt(tail))


def _freedom(residuals: np.ndarray) -> int:
    """Of deviations `[draws, P]` from their mean over draws."""
    return (len(residuals) - 1) * residuals.shape[1]


def _finding(name: str, value, low, high) -> Finding:
    value, low, high = float(value), float(low), float(high)
    return Finding(name, low <= value <= high, value, low, high)
