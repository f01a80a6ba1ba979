"""Whether messages have the noise that their clients' defense is said to add.

Differences of a client's consecutive messages hold that noise, whatever else changes: of a
coordinate, their mean square over twice the noise's variance is at least as large as a
chi-squared number over its degrees. So that few coordinates may lie far below its median;
where most do, and more than chance allows, there is less noise than declared. The same is
asked of each array, for a defense may leave out some; and of the difference of two clients'
messages of a round, each in units of its own noise, which holds the noise of both unless
they draw it from the same seed. Nothing is simulated for that, and the truth is not needed.

What is not seen so: half of the numbers of an array without noise, or an array of a few
numbers without it in a dozen messages; a seed that clients share who are not neighbours in
the audit, or for some arrays alone; noise of a third of the declared deviation or more. Of
noise in several local steps only that of the last is counted, for what comes after a draw
may take it back: curvature, momentum, decay. Of a momentum that is kept it is half of that:
the draw is in the next message, too.
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
_PEAKED = 1.55  # times as often as a Gaussian is Laplace noise that small, of each pair
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
      variance: `[N]` that declared noise alone would give them; 0 where nobody knows.
      moves: `[P]` bool, which numbers are not the same in all messages.
    """

    values: np.ndarray
    variance: np.ndarray
    moves: np.ndarray


class Lacking(NamedTuple):
    """Where less than a tenth of the declared noise is seen.

    Attributes:
      said: in words; empty where nothing lacks.
      wholly: whether it is all of the noise of some clients.
    """

    said: str = ""
    wholly: bool = False


def lacking(view: AdversaryView) -> Lacking:
    """Where less than a tenth of the declared noise is seen.

    Args:
      view: what attacks have.

    Returns:
      Nothing where all have it, or where it is not known how much there should be: of
      sums, of what is cut down after noise was added, of a part of the defense that does
      not say what it does, of a single message.
    """
    spec, seen = view.defense, view.transcript
    if spec is None or not spec or view.sees != "messages" or specs.may_prune(spec):
        return Lacking()
    assert seen is not None
    each, rounding = _of_clients(view, spec, seen)
    tenth = f"by less than a tenth of the noise's variance that {spec} adds"
    known = 0.5 if view.training.remembers else 1.0
    own = [_in_time(client, rounding, known) for client in each]
    less = sum(map(_is_less, own))
    if less:
        who = f"messages of {less} of {len(each)} clients"
        return Lacking(f"{who} differ from round to round {tenth}", wholly=True)
    bare = _without(own, seen)
    if bare:
        return Lacking(
            f"messages of most clients differ from round to round in {bare} {tenth}"
        )
    for at, two in enumerate(itertools.pairwise(each)):
        if _is_less(_between(*two, rounding)):
            one, other = view.clients[at], view.clients[at + 1]
            return Lacking(
                f"messages of clients {one} and {other} differ from each other {tenth}, "
                "as if both drew it from the same seed"
            )
    return Lacking()


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


def _in_time(client: _Messages, rounding: float, known: float) -> _Differences:
    """Of pairs that are disjoint, so that they are independent.

    Args:
      client: its messages.
      rounding: deviation below which noise is rounded away.
      known: share of the declared variance that a difference is known to have.
    """
    stop = 2 * (len(client.round) // 2)
    variance = client.variance[:stop:2] + client.variance[1:stop:2]
    return _Differences(
        client.delta[:stop:2] - client.delta[1:stop:2],
        np.where(np.sqrt(variance) > rounding, known * variance, 0),
        np.ptp(client.delta, axis=0) > 0,
    )


def _between(one: _Messages, other: _Messages, rounding: float) -> _Differences:
    """Of the rounds in which both took part, in units of each one's own noise."""
    _, a, b = np.intersect1d(one.round, other.round, return_indices=True)
    sizes = np.sqrt(one.variance[a]), np.sqrt(other.variance[b])
    known = np.minimum(*sizes) > rounding
    units = [np.where(known, size, 1)[:, None] for size in sizes]
    both = np.concatenate([one.delta, other.delta])
    return _Differences(
        one.delta[a] / units[0] - other.delta[b] / units[1],
        np.where(known, 2.0, 0),
        np.ptp(both, axis=0) > 0,
    )


def _without(own: list[_Differences], seen: Transcript) -> str:
    """Names of the arrays that lack noise in the messages of most clients that tell."""
    leaves = jax.tree_util.tree_leaves_with_path(seen.params)
    sizes = [int(np.prod(np.shape(leaf)[1:])) for _, leaf in leaves]
    error, found = _ERROR / len(leaves), []
    for (path, _), size, end in zip(leaves, sizes, np.cumsum(sizes), strict=True):
        at = np.s_[end - size : end]
        part = [_Differences(v[:, at], each, moves[at]) for v, each, moves in own]
        tell = [each for each in part if _tells(each, error)]
        less = sum(_is_less(each, error) for each in tell)
        found += [normalisation.name_of(path)] * (2 * less > len(tell))
    return ", ".join(found)


def _chance(number: int) -> float:
    """Of a coordinate that has the declared noise to lie far below its median."""
    below = stats.chi2.cdf(_FAR * stats.chi2.median(number), number)
    return min(1.0, float(_PEAKED**number * below))


def _tells(differences: _Differences, error: float = _ERROR) -> bool:
    """Whether noise that is not there at all would be told."""
    values, expected, moves = differences
    known = len(values) > 0 and bool((expected > 0).all())
    return known and bool(moves.any()) and _chance(len(values)) ** moves.sum() < error


def _is_less(differences: _Differences, error: float = _ERROR) -> bool:
    """Whether they are less than declared noise would make them, but for an error."""
    if not _tells(differences, error):
        return False
    values, expected, moves = differences
    squares = np.square(values[:, moves]) / expected[:, None]
    below = squares.sum(axis=0) < _FAR * stats.chi2.median(len(values))
    most = 2 * below.sum() > moves.sum()
    chance = stats.binom.sf(below.sum() - 1, moves.sum(), _chance(len(values)))
    return bool(most and chance < error)
