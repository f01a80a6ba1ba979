"""What an adversary of one training gets: its view, its shadows, and no more.

Every training is attacked once; the others are the adversary's shadows, whose members it
knows, but for the one with the other half of every pool: every candidate is then in half
of the shadows, and their number tells nothing. From here on nothing leads back to who was
in the attacked one.
"""

from collections.abc import Iterator

import jax
import numpy as np

from experiments.membership.coins import Pool
from experiments.membership.settings import Settings
from experiments.membership.trainings import Trained, row_losses, row_weights
from experiments.membership.views import Guessed, Observed
from fljax.attacks.membership import Shadows, Sums
from fljax.attacks.trajectory import imagined, message_facts
from fljax.defenses import clipping
from fljax.defenses.specs import Spec
from fljax.transcript import sums
from fljax.transcript.sums import Server
from fljax.types import Transcript

_MOST = 500  # rows of the population whose gradients are computed


def observed(
    observer: str, settings: Settings, spec: Spec, trained: Trained, pool: Pool
) -> Iterator[Observed]:
    """One for each client, or one of all together.

    Args:
      observer: 'messages', 'sum' or 'models'.
      settings: of the run.
      spec: the defense, which the adversary knows.
      trained: all trainings.
      pool: candidates.
    """
    weights, seen = row_weights(settings, trained, pool), trained.seen
    server = Server(
        np.arange(len(pool.sizes)),
        pool.sizes if settings.train.weights == "rows" else np.ones(len(pool.sizes)),
        trained.problem.rates.server,
    )
    if observer == "messages":
        for client, weight in enumerate(weights):
            at = pool.of_client(client)
            # Everybody is in every round, so that slots are clients.
            told = _spread(settings, seen, client)
            yield _observed(
                settings, spec, pool, at, told, np.full(at.stop - at.start, weight)
            )
        return
    view = sums.add_up if observer == "sum" else sums.models
    each = [
        view(jax.tree.map(lambda leaf, at=t: leaf[at], seen), server)
        for t in range(len(seen.round))
    ]
    together = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    shares = server.weights / server.weights.sum()
    weight = np.repeat(weights * shares, pool.sizes)
    told = _spread(settings, together, 0)
    yield _observed(settings, spec, pool, slice(0, len(weight)), told, weight)


def guesses(
    observer: str, trained: Trained, pool: Pool, there: np.ndarray
) -> Iterator[tuple[slice, list[Guessed]]]:
    """Places of candidates, and what is had of each training, client by client.

    Args:
      observer: 'messages', who has the last model of each client, or 'final'.
      trained: all trainings.
      pool: candidates.
      there: `[T, N]` who was in which training, of which each adversary knows that of
        its shadows.
    """
    if observer == "final":
        yield slice(0, len(pool.rows.y)), _guesses(trained, trained.last, pool, there)
        return
    for client in range(len(pool.sizes)):
        last = jax.tree.map(
            lambda sent, delta, c=client: sent[:, -1] - delta[:, -1, c],
            trained.seen.params,
            trained.seen.delta,
        )
        at = pool.of_client(client)
        own = pool._replace(rows=jax.tree.map(lambda leaf, at=at: leaf[at], pool.rows))
        yield at, _guesses(trained, last, own, there[:, at])


def _guesses(trained, models, pool: Pool, there: np.ndarray) -> list[Guessed]:
    own, others = (row_losses(trained, models, r) for r in (pool.rows, pool.population))
    found = []
    for target in range(len(there)):
        rest = np.arange(len(there)) // 2 != target // 2
        shadows = Shadows(own[rest], there[rest], others[rest])
        found.append(Guessed(own[target], others[target], shadows))
    return found


def _observed(settings, spec, pool, at: slice, told, weight) -> Observed:
    rounds, seen = told
    layers = clipping.num_layers(seen.params)
    clips = message_facts.clips(spec, rounds, settings.train.num_rounds, layers)
    clipped = imagined.defended(imagined.PLAIN, spec).examples
    rows = jax.tree.map(lambda leaf: leaf[at], pool.rows)
    some = jax.tree.map(lambda leaf: leaf[:_MOST], pool.population)
    return Observed(rows, some, at, seen, np.float32(weight), clips[..., 0], clipped)


def _spread(settings: Settings, seen: Transcript, slot: int):
    """Numbers of some rounds, and what was seen in them, `[T, R, ...]`."""
    count = np.shape(seen.round)[1]
    used = min(settings.run.rounds_used or count, count)
    chosen = np.unique(np.linspace(0, count - 1, used).round().astype(int))
    params = jax.tree.map(lambda leaf: leaf[:, chosen], seen.params)
    delta = jax.tree.map(lambda leaf: leaf[:, chosen, slot], seen.delta)
    return np.asarray(seen.round)[0, chosen], Sums(params, delta)
