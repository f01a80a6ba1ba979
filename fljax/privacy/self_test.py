"""A statistical test of a private step: does it do what its accountant is told?

The step is run many times, and judged by what comes out alone, so that it may be
anybody's. Each kind of finding is tested at a level of `significance` over all that it
looks at; there are six kinds (`noise_findings`), so that a sound step fails something in
at most six times that share of runs. What it cannot see: noise that is right in law and
known to the adversary, two of many thousand numbers that share theirs, a batch that is
not sampled as stated, a bound that only some other batch breaks. Half precision hides
changes as small as its numbers are apart.
"""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.privacy import noise_findings
from fljax.privacy.noise_findings import Finding, finding, standard
from fljax.types import Batch, GradientFn, Key, Params

_OUTLIER = 1e4  # times which an example's input is scaled to reach the clip
_ROUNDING = 1e-3  # of the sensitivity, for differences of sums
_NEIGHBOURS = 2  # numbers of the output's precision by which both sums may be off
_NOTHING = 1e-6  # of the sensitivity: a step so deaf to its examples heeds no mask
_CLIENTS = 2


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
        tried scaled up, all of them and the one that is left out.
      noise: standard deviation of the noise on the sum, what an accountant is told:
        noise multiplier times sensitivity.
      sensitivity: norm by which one example changes the sum, at most.
      batch_size: divisor of the sum.
      key: of the tests.
      draws: runs with different keys.
      significance: share of sound steps that fail a kind of finding.

    Returns:
      Findings: noise scale of every array and of single numbers, sensitivity to one
      example, same key same outcome, other key other noise, and correlations between
      successive draws, between arrays, between numbers, and between clients side by side.

    Raises:
      ValueError: for numbers out of range, or a batch whose mask leaves out all.
    """
    if not noise > 0 or not sensitivity > 0 or not batch_size > 0:
        raise ValueError(
            "noise, sensitivity and batch_size must be > 0, "
            f"got {noise=}, {sensitivity=}, {batch_size=}"
        )
    if draws < 10 or not 0 < significance < 1:
        raise ValueError(
            f"expected draws >= 10, 0 < significance < 1, got {draws=}, {significance=}"
        )
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
    residuals = [standard(leaf, noise) for leaf in drawn]
    names = [jax.tree_util.keystr(p) for p, _ in jax.tree.leaves_with_path(params)]
    changed, rounding = _largest_change(total, batch)
    first, second = _side_by_side(total, numbers, batch)
    most = sensitivity * (1 + _ROUNDING) + rounding
    return [
        *noise_findings.scales(names, residuals, significance),
        finding("change by one example", changed, _NOTHING * sensitivity, most),
        *noise_findings.repeats(drawn, again, noise, significance),
        *noise_findings.correlations(names, residuals, significance),
        noise_findings.between_clients(first, second, noise, significance),
    ]


def _side_by_side(total, numbers, batch):
    """`[draws, P]` of two clients in one program."""

    def client(which, number):
        return jnp.concatenate(total(number, batch, which))

    both = jax.vmap(jax.vmap(client, (None, 0)), (0, None))
    return jax.jit(both)(jnp.arange(_CLIENTS), numbers)


def _largest_change(total, batch: Batch) -> tuple[float, float]:
    """By one example, beside all others and alone, as they are and scaled up.

    Beside others that are as they were, it is also scaled up by itself, whichever way.
    With the same key the noise is the same and drops out of the difference, but for what
    both sums are rounded by, which stands beside it.
    """
    mask = np.asarray(batch.mask)
    one = np.eye(len(mask), dtype=bool)[mask]
    beside = np.broadcast_to(mask, one.shape)

    @jax.jit
    def change(case):
        scale, having, left = case
        x = _scaled(batch.x, scale)
        sums = jax.vmap(lambda m: total(0, batch._replace(x=x, mask=m)))(
            jnp.stack([having, having & ~left])
        )
        squares = [_squares(*both) for both in sums]
        return jnp.sqrt(jnp.stack(squares).sum(axis=0))

    cases = [
        *((np.full(one.shape, s), h) for s in (1.0, _OUTLIER) for h in (beside, one)),
        *((np.where(one, s, 1.0), beside) for s in (_OUTLIER, -_OUTLIER)),
    ]
    scales, having = (np.concatenate(each) for each in zip(*cases, strict=True))
    left = np.tile(one, (len(cases), 1))
    found = jax.lax.map(change, (jnp.float32(scales), having, left))
    gaps, rounding = np.asarray(found, float).T
    worst = int(np.argmax(gaps - rounding))
    return float(gaps[worst]), float(rounding[worst])


def _squares(a, b) -> jax.Array:
    """Of two sums' difference, and of how far their precision leaves it open: [2]."""
    wide = jnp.promote_types(a.dtype, jnp.float32)
    open_ = _NEIGHBOURS * noise_findings.precision(a)
    a, b = a.astype(wide), b.astype(wide)
    size = jnp.maximum(jnp.sum(jnp.square(a)), jnp.sum(jnp.square(b)))
    return jnp.stack([jnp.sum(jnp.square(a - b)), open_**2 * size])


def _scaled(x, scale):
    """Inputs of every example times its number of `scale`, `[B]`."""

    def leaf(value):
        value = jnp.asarray(value)
        if not jnp.issubdtype(value.dtype, jnp.floating):
            return value
        return value * scale.reshape(-1, *[1] * (value.ndim - 1)).astype(value.dtype)

    return jax.tree.map(leaf, x)
