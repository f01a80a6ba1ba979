"""Whether messages have the noise that their clients' defense is said to add.

Differences of a client's consecutive messages hold that noise, whatever else changes: of a
coordinate, their mean square over twice the noise's variance is at least as large as a
chi-squared number over its degrees. So that few coordinates may lie far below its median;
where most do, and more than chance allows, there is less noise than declared. The same is
asked of each array, for a defense may leave some out; and of the difference of two clients'
messages of a round, which holds the noise of both unless they draw it from the same seed.
Nothing is simulated for that, and the truth is not needed.

What is not seen so: half of the numbers of an array without noise; a seed that clients
share who are not neighbours in the audit; noise of a third of the declared deviation or
more. Of noise in several local steps only that of the last is counted, for what comes after
a draw may take it back: curvature, momentum, decay.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from fljax.attacks.adversary import AdversaryView
from fljax.attacks.trajectory import added
from fljax.auditing import normalisation
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Transcript

_FAR = 0.1  # of the median that declared noise would have: a third of its deviation
_ERROR = 1e-4  # of a client, by chance
_PEAKED = 1.5  # times as often as a Gaussian is Laplace noise that small, of one pair
_ROUNDING = 4.0  # of the precision of a model, below which noise is rounded away


class _Messages(NamedTuple):
    """Of one client.

    Attributes:
      round: `[Q]` their numbers.
      delta: `[Q, P]`.
      variance: `[Q]` of the declared noise.
    """

    round: np.ndarray
    delta: np.ndarray
    variance: np.ndarray


class _Differences(NamedTuple):
    """Independent ones of messages.

    Attributes:
      values: `[N, P]`.
      variance: `[N]` that declared noise alone would give them.
      moves: `[P]` bool, which numbers are not the same in all messages.
    """

    values: np.ndarray
    variance: np.ndarray
    moves: np.ndarray


def lacking(view: AdversaryView) -> str:
    """Where less than a tenth of the declared noise is seen, in words.

    Args:
      view: what attacks have.

    Returns:
      Empty where all have it, or where it is not known how much there should be: of sums,
      of what is cut down after noise was added, of a part of the defense that does not say
      what it does, of a single message.
    """
    spec, seen = view.defense, view.transcript
    if spec is None or not spec or view.sees != "messages" or specs.may_prune(spec):
        return ""
    assert seen is not None
    each, rounding = _of_clients(view, spec, seen)
    tenth = f"by less than a tenth of the noise's variance that {spec} adds"
    own = [_in_time(client) for client in each]
    less = sum(_is_less(differences, rounding) for differences in own)
    if less:
        who = f"messages of {less} of {len(each)} clients"
        return f"{who} differ from round to round {tenth}"
    bare = _without(own, seen, rounding)
    if bare:
        return f"messages differ from round to round in {bare} {tenth}"
    for at, two in enumerate(itertools.pairwise(each)):
        if _is_less(_between(*two), rounding):
            one, other = view.clients[at], view.clients[at + 1]
            return (
                f"messages of clients {one} and {other} differ from each other {tenth}, "
                "as if both drew it from the same seed"
            )
    return ""


def _of_clients(view: AdversaryView, spec: specs.Spec, seen: Transcript):
    """Their messages, and the deviation below which noise is rounded away."""
    messages = view.messages
    assert messages is not None
    rounds = np.asarray(seen.round)[messages.row]
    last = view.training._replace(steps=1, epochs=None)
    declared = added.variance(spec, last, view.sizes, rounds, view.num_rounds)
    sent, delta = views.flat(seen, messages)
    every = zip(rounds, delta, declared, np.asarray(messages.count), strict=True)
    each = [
        _Messages(*(part[: int(count)] for part in parts)) for *parts, count in every
    ]
    leaves = jax.tree.leaves((seen.params, seen.delta))
    precision = max(float(jnp.finfo(leaf.dtype).eps) for leaf in leaves)
    return each, _ROUNDING * precision * np.abs(sent).max()


def _in_time(client: _Messages) -> _Differences:
    """Of pairs that are disjoint, so that they are independent."""
    stop = 2 * (len(client.round) // 2)
    return _Differences(
        client.delta[:stop:2] - client.delta[1:stop:2],
        client.variance[:stop:2] + client.variance[1:stop:2],
        np.ptp(client.delta, axis=0) > 0,
    )


def _between(one: _Messages, other: _Messages) -> _Differences:
    """Of the rounds in which both took part."""
    _, a, b = np.intersect1d(one.round, other.round, return_indices=True)
    both = np.concatenate([one.delta, other.delta])
    return _Differences(
        one.delta[a] - other.delta[b],
        one.variance[a] + other.variance[b],
        np.ptp(both, axis=0) > 0,
    )


def _without(own: list[_Differences], seen: Transcript, rounding: float) -> str:
    """Names of the arrays that lack noise in the messages of most clients, as a list."""
    leaves = jax.tree_util.tree_leaves_with_path(seen.params)
    sizes = [int(np.prod(np.shape(leaf)[1:])) for _, leaf in leaves]
    found = []
    for (path, _), size, end in zip(leaves, sizes, np.cumsum(sizes), strict=True):
        at = np.s_[end - size : end]
        part = [_Differences(v[:, at], each, moves[at]) for v, each, moves in own]
        less = sum(_is_less(each, rounding, _ERROR / len(leaves)) for each in part)
        found += [normalisation.name_of(path)] * (2 * less > len(own))
    return ", ".join(found)


def _is_less(differences: _Differences, rounding: float, error: float = _ERROR) -> bool:
    """Whether they are less than declared noise would make them, but for an error."""
    values, expected, moves = differences
    number = len(values)
    if not number or not moves.any() or not (np.sqrt(expected) > rounding).all():
        return False
    squares = np.square(values[:, moves]) / expected[:, None]
    median = stats.chi2.median(number)
    below = int((squares.sum(axis=0) < _FAR * median).sum())
    chance = _PEAKED * stats.chi2.cdf(_FAR * median, number)
    most = 2 * below > moves.sum()
    return bool(most and stats.binom.sf(below - 1, moves.sum(), chance) < error)
