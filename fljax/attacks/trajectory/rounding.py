"""What rounding leaves of messages that hold no other noise."""

import jax
import jax.numpy as jnp

from fljax.attacks.trajectory.imagined import Imagined, MessageFacts, Seen
from fljax.attacks.trajectory.matching import Settings


def bound(client: Imagined, seen: Seen, settings: Settings) -> jax.Array | None:
    """`[R, P]` bounds on the rounding of messages that hold no other noise; or None."""
    fixed = client.precision and client.practice.optimiser == "sgd"
    if not fixed or settings.first_order or settings.estimate_scale:
        return None
    return _spacing(seen, settings, client.precision)


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


def _spacing(seen: Seen, settings: Settings, precision: float) -> jax.Array:
    """Each step rounds a model to float32, and a message is rounded by `precision`."""
    single = jnp.finfo(jnp.float32)
    of_steps = single.eps * settings.path_steps * jnp.abs(seen.sent)
    of_message = precision * jnp.abs(seen.sent - seen.returned)
    return of_steps + of_message + single.tiny
