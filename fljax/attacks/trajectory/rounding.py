"""What rounding leaves of messages that hold no other noise."""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks.trajectory.imagined import Imagined, Seen
from fljax.attacks.trajectory.matching import Settings
from fljax.attacks.trajectory.message_facts import MessageFacts
from fljax.types import Transcript

_HALVES = jnp.bfloat16, np.float16  # the coarser one first


def of_models(seen: Transcript) -> float:
    """Spacing at 1 of half precision, where most numbers of the models that clients returned
    last have no more of it; else 0."""
    there = np.asarray(seen.client[-1]) >= 0
    sent, moved = (
        [np.asarray(leaf[-1], np.float32) for leaf in jax.tree.leaves(tree)]
        for tree in (seen.params, seen.delta)
    )
    each = [(s[None] - m[there]).ravel() for s, m in zip(sent, moved, strict=True)]
    returned = np.concatenate(each)
    returned = returned[returned != 0]
    exact = 8 * np.finfo(np.float32).eps * np.abs(returned)  # but for the difference
    for half in _HALVES if len(returned) else ():
        with np.errstate(over="ignore"):
            rounded = returned.astype(half).astype(np.float32)
        if np.mean(np.abs(rounded - returned) <= exact) > 0.5:
            return float(jnp.finfo(half).eps)
    return 0.0


def bound(client: Imagined, seen: Seen, settings: Settings) -> jax.Array | None:
    """`[R, P]` bounds on the rounding of messages that hold no other noise; or None."""
    fixed = client.precision and client.practice.optimiser == "sgd"
    if not fixed or settings.first_order or settings.estimate_scale:
        return None
    return _spacing(seen, settings, client.precision, client.half)


def least_noise(
    client: Imagined, seen: Seen, facts: MessageFacts, settings: Settings
) -> jax.Array:
    """Variance `[R]` of rounding, of messages in which it may be all that differs; or 0.

    Numbers of two of them may be equal to the last digit.
    """
    found, wanted = bound(client, seen, settings), facts.path
    if found is None and client.cuts:
        single = float(jnp.finfo(jnp.float32).eps)
        found, wanted = _spacing(seen, settings, single), jnp.ones_like(facts.path)
    if found is None:
        return jnp.zeros(())
    return jnp.where(wanted, jnp.mean(jnp.square(found), axis=1), 0)


def _spacing(
    seen: Seen, settings: Settings, precision: float, half: float = 0.0
) -> jax.Array:
    """Each step rounds a model to float32, a message is rounded by `precision`, and the
    model of which it is by `half`."""
    single = jnp.finfo(jnp.float32)
    of_steps = single.eps * settings.path_steps * jnp.abs(seen.sent)
    of_message = precision * jnp.abs(seen.sent - seen.returned)
    of_models = half * jnp.abs(seen.returned)
    return of_steps + of_message + of_models + single.tiny
