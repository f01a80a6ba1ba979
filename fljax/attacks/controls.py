"""Views of rows, or messages, that do not belong together: controls of an attack.

What an attack names rightly there it does not owe to the messages.
"""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks import others, streams
from fljax.attacks.adversary import AdversaryView
from fljax.types import Array, Known


def strangers(view: AdversaryView, known: Known) -> AdversaryView:
    """The same messages with rows that never met them, leaves `[C, n, ...]`."""
    return view._replace(known=known, num_rows=view.sizes)


def permuted(view: AdversaryView) -> AdversaryView:
    """The same with every client's targets in random order."""
    y = _mixed(np.uint32(view.seed), view.clients, view.known)
    return view._replace(known=view.known._replace(y=np.asarray(y)))


def with_messages_of_others(view: AdversaryView) -> AdversaryView | None:
    """The same rows with the mean message of the others in the place of each.

    Where strangers differ from the clients, this tells what the population's model does
    to clients' rows. None of sums, and where only one client was recorded.
    """
    if view.sees != "messages":
        return None
    seen = others.messages(view)
    return None if seen is None else view._replace(transcript=seen)


@jax.jit
def _mixed(seed: Array, clients: Array, known: Known) -> Array:
    """Targets `[C, n]` of the real rows in random order; padding stays at the end."""

    def one(client, y, mask):
        key = streams.key(seed, streams.PERMUTATION, client)
        order = jax.random.uniform(key, y.shape)
        return y[jnp.argsort(jnp.where(mask, order, jnp.inf))]

    return jax.vmap(one)(jnp.asarray(clients), jnp.asarray(known.y), known.mask)
