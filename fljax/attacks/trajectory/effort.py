"""How hard trajectory matching looks: steps of a path, messages, iterations."""

import math
from typing import NamedTuple

import numpy as np

from fljax.attacks.adversary import LocalTraining
from fljax.attacks.trajectory import matching, rules
from fljax.types import Array

_DEFAULT = matching.Settings()
_MOST_MORE = 3.0  # iterations, times those for whole messages


class Settings(NamedTuple):
    """How hard to look.

    Attributes:
      epoch_steps: simulated steps of a local epoch; where they are too long for a path, up
        to six times as many.
      messages: of each client, evenly from its first to its last; None for all. Where it
        sends a share of its changes only, as many more as make up for that, or as there
        are, and as many more iterations; where there are no more messages up to three
        times as many.
      search: everything else; steps of a path and `first_order` are set here.
    """

    epoch_steps: int = 10
    messages: int | None = None
    search: matching.Settings = _DEFAULT


def simulated(training: LocalTraining, steps: np.ndarray, epoch_steps: int) -> int:
    """Simulated steps of a message, the most of clients who take so many."""
    own, merged = int(np.max(steps)), epoch_steps * (training.epochs or 1)
    return min(own, merged) if rules.practice(training).merges else own


def for_a_share(settings: Settings, share: float, sent: Array) -> Settings:
    """The same effort for each message, of as many as tell as much as whole ones.

    Args:
      settings: for clients that send all of their changes.
      share: that is sent, in (0, 1].
      sent: `[C]` messages of each client.
    """
    asked, sent = settings.messages, np.asarray(sent)
    if share == 1 or not sent.any():
        return settings
    messages, more = asked, min(1 / share, _MOST_MORE)
    if asked is not None:
        messages = max(min(math.ceil(asked / share), int(sent[sent > 0].min())), asked)
        more = max(messages / asked, more)
    search = settings.search
    search = search._replace(
        iterations=round(search.iterations * more),
        rough_iterations=round(search.rough_iterations * more),
    )
    return settings._replace(messages=messages, search=search)
