"""The adversary of every seed: what it has, and what its attacks give back.

All that an attack is given is an `AdversaryView` of one seed. Nothing here, and nothing
that is imported here, has the truth: `wall` makes the views, `scoring` compares.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from experiments.aia.adversary_config import MESSAGES, Sight
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.estimates import Estimates, Prediction
from fljax.transcript import views
from fljax.transcript.views import ClientView
from fljax.types import Exchange, Params, Transcript


class Adversary(NamedTuple):
    """The adversary of every seed.

    Attributes:
      views: what it has, one of each seed.
      transcript: what it saw, leaves `[seeds, ...]`.
      messages: where clients' messages lie in it, `[seeds, C, Q]`.
      bars: to show progress.
      sight: what it sees.
    """

    views: list[AdversaryView]
    transcript: Transcript
    messages: ClientView
    bars: Progress
    sight: Sight = MESSAGES


class Attacked(NamedTuple):
    """What an attack gives back of all seeds.

    Attributes:
      name: of the attack.
      prediction: leaves `[seeds, C, ...]`; its value is None where there are only
        diagnostics to report. Scoring reads of its details `params`, the
        models that were used, `probability` `[seeds, C, n, K]` and `alternatives`
        `[seeds, C, S, n]`, values under other settings.
      clients: `[seeds, C]` bool, whom the attack can say something about.
    """

    name: str
    prediction: Prediction
    clients: np.ndarray


class Front(NamedTuple):
    """Where an active server begins.

    Attributes:
      first: number of the first attacked round.
      start: the model that each client returned last, leaves `[seeds, C, ...]`.
      honest: the model that it was sent last.
      before: the model that it was sent before that.
      has_messages: `[seeds, C]` whether it had returned any.
    """

    first: int
    start: Params
    honest: Params
    before: Params
    has_messages: np.ndarray


class Isolated(NamedTuple):
    """What clients send when each is only sent its own model.

    Attributes:
      front: where that begins.
      exchange: leaves `[seeds, C, R, ...]`.
    """

    front: Front
    exchange: Exchange


def front(adversary: Adversary, start: int | None) -> Front:
    """The clients' last messages before the first attacked round.

    Args:
      adversary: of every seed.
      start: number of that round; None for the one after the training.
    """
    seen = adversary.transcript
    first = int(seen.round[0, -1]) + 1 if start is None else start
    early = views.before(adversary.messages, np.asarray(seen.round), first)
    returned, honest = views.last_models(seen, early)
    before = views.sent_models(seen, early, behind=1)
    return Front(first, returned, honest, before, early.has_messages)


def each_seed(
    adversary: Adversary, title: str, attack: Callable, *more: Sequence
) -> list:
    """`attack(view, *more)` of one seed after another, shown in a progress bar.

    Args:
      adversary: of every seed.
      title: for the progress bar.
      attack: given the view of a seed and its item of each of `more`.
      more: `[seeds]`.
    """
    bar = adversary.bars.add_task(title, total=len(adversary.views))
    results = []
    for number, item in enumerate(zip(adversary.views, *more, strict=True)):
        results.append(attack(*item))
        adversary.bars.update(bar, completed=number + 1)
    return results


def of_seeds(tree: Any) -> list:
    """Leaves `[seeds, ...]` as one tree for each seed."""
    number = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda leaf, at=at: leaf[at], tree) for at in range(number)]


def stacked(estimates: list[Estimates]) -> dict[str, Prediction]:
    """Predictions of every seed as one, leaves `[seeds, C, ...]`."""
    found = {}
    for name in estimates[0]:
        each = [estimate[name] for estimate in estimates]
        assert all(isinstance(one, Prediction) for one in each)
        value, diagnostics, details = jax.tree.map(
            lambda *leaves: np.stack(leaves),
            *((one.value, dict(one.diagnostics), dict(one.details)) for one in each),
        )
        found[name] = Prediction(value, diagnostics, details, each[0].setting)
    return found
