"""One-run audits of a training that was recorded, in which canaries were planted.

    coins = plant_canaries(recorder, 200, seed=0)   # which of 200 canaries are trained on
    ...                                             # the training, recorded
    seen, about = transcript.load("runs/seen")
    audit_transcript(seen, 0, gradients, planted(about), delta=1e-5)

One training is enough, in any framework: each canary, e.g. a row with a wrong target, is
in by a coin of its own, and whoever sees the messages guesses which ones were (Steinke,
Nasr and Jagielski, 2023).
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from fljax.privacy.audits import guesses
from fljax.privacy.audits.statistics import Audited
from fljax.transcript import Recorder, exchange
from fljax.types import Array, Params, PyTree, Transcript

_KEY = "canaries"  # of a description
_TINY = 1e-30

Gradients = Callable[[Params], PyTree]
# model that was sent -> gradients of the canaries, as they are clipped, leaves [M, ...]


def plant_canaries(recorder: Recorder, count: int, *, seed: int) -> np.ndarray:
    """Tosses the coins, and says in the recording how they can be tossed again.

    Args:
      recorder: of the training that begins.
      count: of canaries, M.
      seed: of the coins.

    Returns:
      `[M]` bool, the canaries to train on.

    Raises:
      TranscriptError: the description cannot be written.
      ValueError: for a count or a seed that is no whole number, or no canary.
    """
    told = {"count": count, "seed": seed}
    _check(told)
    told = {"count": int(count), "seed": int(seed)}
    recorder.describe(**{_KEY: told})
    return _coins(**told)


def planted(about: Mapping[str, Any]) -> np.ndarray:
    """`[M]` bool, how the coins of a recording fell.

    Raises:
      ValueError: nothing was planted, or what is said of it is damaged.
    """
    if _KEY not in about:
        raise ValueError("about: expected canaries, planted with plant_canaries")
    told = about[_KEY]
    if not isinstance(told, Mapping) or set(told) != {"count", "seed"}:
        raise ValueError(
            f"about: expected count and seed of the canaries, got {told!r}"
        )
    _check(told)
    return _coins(**about[_KEY])


def audit_transcript(
    seen: Transcript,
    client: int,
    gradients: Gradients,
    present: Array,
    *,
    delta: float,
    confidence: float = 0.95,
) -> Audited:
    """Lower bound of epsilon, of what was recorded of one client.

    Args:
      seen: from `transcript.load`.
      client: whose rows the canaries are.
      gradients: of the canaries on a model that was sent, leaves `[M, ...]`.
      present: `[M]` bool, which ones were trained on.
      delta: in (0, 1), of the bound.
      confidence: of the bound.

    Raises:
      TranscriptError: the client is not in the recording.
      ValueError: for gradients or coins that do not fit, or are not finite, as messages.

    Warns:
      UserWarning: as `guesses.one_run` does.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1), got {delta}")
    scores = canary_scores(seen, client, gradients)
    if len(scores) != len(np.asarray(present)):
        raise ValueError(
            f"gradients: expected those of {len(np.asarray(present))} canaries, got "
            f"{len(scores)}"
        )
    return guesses.one_run(scores, present, delta=delta, confidence=confidence)


def canary_scores(seen: Transcript, client: int, gradients: Gradients) -> np.ndarray:
    """`[M]`: over all rounds, messages along each canary's gradient.

    What all canaries have in common is taken out: it tells of none of them.
    """
    messages, total = exchange(seen, client), 0.0
    for number in range(len(jax.tree.leaves(messages.delta)[0])):
        sent, delta = (
            jax.tree.map(lambda leaf, at=number: np.asarray(leaf[at], float), tree)
            for tree in messages
        )
        flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(delta)])
        own = _flat(gradients(sent), sent)
        for what, values in (("message", flat), ("gradients", own)):
            if not np.isfinite(values).all():
                raise ValueError(
                    f"{what} of client {client}, its number {number}: expected finite "
                    "numbers"
                )
        own = own - own.mean(axis=0)
        size = np.linalg.norm(own, axis=1)
        total = total + own @ flat / np.maximum(size, _TINY)
    return np.asarray(total)


def _flat(gradients: PyTree, model: Params) -> np.ndarray:
    """`[M, P]`, in the order of a model's leaves."""
    leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(gradients)]
    wanted = [np.shape(leaf) for leaf in jax.tree.leaves(model)]
    found = [leaf.shape for leaf in leaves]
    if [shape[1:] for shape in found] != wanted or len({s[:1] for s in found}) != 1:
        expected = ", ".join(f"[M{''.join(f', {n}' for n in s)}]" for s in wanted)
        raise ValueError(
            f"gradients: expected arrays {expected}, got shapes "
            f"{', '.join(map(str, found)) or 'of nothing'}"
        )
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _check(told: Mapping[str, Any]) -> None:
    for name, least in (("count", 1), ("seed", 0)):
        value = told[name]
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least:
            raise ValueError(
                f"{name}: expected a whole number from {least} on, got {value!r}"
            )


def _coins(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(count) < 0.5
