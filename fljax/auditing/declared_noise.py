"""Whether messages have the noise that their clients' defense is said to add.

Differences of a client's consecutive messages hold that noise, whatever else changes: of a
coordinate, their mean square over twice the noise's variance is at least as large as a
chi-squared number over its degrees. So that few coordinates may lie far below its median;
where most do, and more than chance allows, there is less noise than declared. Nothing is
simulated for that, and the truth is not needed. What is not seen so: half of the numbers
without noise, as of layers that a defense leaves out; one draw for all clients; noise of a
third of the declared deviation or more. Of noise in several local steps only that of the last
is counted, for what comes after a draw may take it back: curvature, momentum, decay.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from fljax.attacks.adversary import AdversaryView
from fljax.attacks.trajectory import added
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Transcript

_FAR = 0.1  # of the median that declared noise would have: a third of its deviation
_ERROR = 1e-4  # of a client, by chance
_PEAKED = 1.5  # times as often as a Gaussian is Laplace noise that small, of one pair
_ROUNDING = 4.0  # of the precision of a model, below which noise is rounded away


def lacking(view: AdversaryView) -> str:
    """How many clients' messages have less than a tenth of the declared noise, in words.

    Args:
      view: what attacks have.

    Returns:
      Empty where all have it, or where it is not known how much there should be: of sums,
      of what is cut down after noise was added, of a part of the defense that does not say
      what it does, of a single message.
    """
    spec, seen, messages = view.defense, view.transcript, view.messages
    if spec is None or not spec or view.sees != "messages":
        return ""
    assert seen is not None and messages is not None
    if specs.may_prune(spec):
        return ""
    own = np.asarray(seen.round)[messages.row]
    last = view.training._replace(steps=1, epochs=None)
    declared = added.variance(spec, last, view.sizes, own, view.num_rounds)
    sent, delta = views.flat(seen, messages)
    rounding = _ROUNDING * _precision(seen) * np.abs(sent).max()
    each = zip(delta, declared, np.asarray(messages.count), strict=True)
    less = [_is_less(*of, rounding) for of in each]
    if not any(less):
        return ""
    who = f"{sum(less)} of {len(less)} clients"
    return f"messages of {who} have less than a tenth of the noise's variance that {spec} adds"


def _precision(seen: Transcript) -> float:
    """Of the least precise array that travelled."""
    leaves = jax.tree.leaves((seen.params, seen.delta))
    return max(float(jnp.finfo(leaf.dtype).eps) for leaf in leaves)


def _is_less(
    delta: np.ndarray, variance: np.ndarray, count: int, rounding: float
) -> bool:
    """Of messages `[Q, P]` of one client, the first `count` of which are its own.

    Pairs are disjoint, so that they are independent.
    """
    pairs = int(count) // 2
    moves = np.ptp(delta[:count], axis=0) > 0
    if not pairs or not moves.any():
        return False
    first, second = (slice(start, 2 * pairs, 2) for start in (0, 1))
    expected = variance[first] + variance[second]
    if not (np.sqrt(expected) > rounding).all():
        return False
    squares = np.square(delta[first] - delta[second])[:, moves] / expected[:, None]
    median = stats.chi2.median(pairs)
    below = int((squares.sum(axis=0) < _FAR * median).sum())
    chance = _PEAKED * stats.chi2.cdf(_FAR * median, pairs)
    most = 2 * below > moves.sum()
    return bool(most and stats.binom.sf(below - 1, moves.sum(), chance) < _ERROR)
