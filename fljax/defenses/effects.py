"""What a defense does to its client's training, as data: for adversaries who know it.

A `Definition` says it beside how the defense is built, so that whoever simulates a client
(`fljax.attacks.trajectory`, `experiments.gradient_leakage`) needs no defense's name.
"""

from typing import Literal, NamedTuple, get_args

import numpy as np

from fljax.defenses import clipping
from fljax.types import Array


class Effects(NamedTuple):
    """Of a part with concrete numbers; the default is no effect.

    Attributes:
      examples: how the gradient of each example is clipped, empty if it is not.
      messages: how an update is clipped, likewise.
      clip: C of either.
      decay_to: C in the last round, linear from `clip` in the first; None: the same.
      split: whether each of M layers is clipped to C / sqrt(M), all together to C.
      limit: at which every number of an update is cut off, None if it is not.
      share: of its changes that an update keeps, the largest.
      noise: what a draw of it is added to: the sum of a batch's gradients, the mean
        gradient of a step, an update; empty without any.
      deviation: of a draw on each coordinate, over C where there is one; None where it is
        not known, as of a sigma that is left to a budget.
      each: whether every example of a batch has a draw of its own.
      expected: whether sums are divided by the rows that a Poisson sample is expected to
        have, not by those of the batch.
      arrival: whether the server does it to updates that arrived, so that no message is
        changed.
    """

    examples: Literal["", "total", "per_layer", "median"] = ""
    messages: Literal["", "total", "per_layer"] = ""
    clip: float | None = None
    decay_to: float | None = None
    split: bool = False
    limit: float | None = None
    share: float = 1.0
    noise: Literal["", "sums", "steps", "messages"] = ""
    deviation: float | None = 0.0
    each: bool = False
    expected: bool = False
    arrival: bool = False

    @property
    def changes_messages(self) -> bool:
        """Whether a message is another than that of the model that was trained."""
        noisy = self.noise == "messages" or self.share < 1
        return self.bounds_messages or (noisy and not self.arrival)

    @property
    def bounds_messages(self) -> bool:
        """Whether a message is clipped or cut before it leaves."""
        return bool(self.messages or self.limit is not None) and not self.arrival

    def clip_at(
        self, rounds: Array, num_rounds: int | None, num_layers: int = 1
    ) -> Array | float:
        """What a norm is clipped to in rounds `[...]` of a run, 1 where nothing is.

        Args:
          rounds: their numbers.
          num_rounds: of the run, over which C decays.
          num_layers: M.

        Raises:
          ValueError: for a decay over an unknown number of rounds.
        """
        if self.clip is None:
            return 1.0
        clip = clipping.decaying(self.clip, self.decay_to, num_rounds)
        found = np.asarray(clipping.at_round(clip, rounds))
        return found / np.sqrt(num_layers) if self.split else found

    def deviation_at(self, rounds: np.ndarray, num_rounds: int | None) -> np.ndarray:
        """Deviation `[...]` of one draw in rounds `[...]`, 0 where it is not known.

        Raises:
          ValueError: as `clip_at` does.
        """
        unit = self._replace(split=False).clip_at(rounds, num_rounds)
        return np.asarray((self.deviation or 0.0) * unit * np.ones(rounds.shape))


def checked(found: object) -> Effects:
    """What a definition says, if it can be simulated.

    Raises:
      TypeError: it is no `Effects`.
      ValueError: a word or number of it is none, or a norm is clipped to nothing.
    """
    if not isinstance(found, Effects):
        raise TypeError(f"expected Effects, got {type(found).__name__}")
    for name in ("examples", "messages", "noise"):
        words = get_args(Effects.__annotations__[name])
        if getattr(found, name) not in words:
            known = ", ".join(repr(word) for word in words)
            raise ValueError(
                f"{name}: expected one of {known}, got {getattr(found, name)!r}"
            )
    clips = found.messages or found.examples in ("total", "per_layer")
    if clips and found.clip is None:
        raise ValueError("clip: expected a number, for something is clipped to it")
    for name in ("clip", "decay_to", "limit", "share"):
        value, most = getattr(found, name), 1 if name == "share" else np.inf
        if value is not None and not 0 < value <= most:
            raise ValueError(f"{name}: expected above 0, at most {most}, got {value}")
    if found.deviation is not None and not 0 <= found.deviation < np.inf:
        raise ValueError(f"deviation: expected 0 or more, got {found.deviation}")
    if found.deviation and not found.noise:
        raise ValueError("noise: expected what a deviation is added to, got ''")
    return found
