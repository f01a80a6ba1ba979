"""How much noise the messages of one client hold, told by the messages alone."""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks.reconstruction.decoding import messages as messages_lib
from fljax.attacks.reconstruction.decoding.messages import Messages
from fljax.attacks.reconstruction.least_squares import matmul

_FEW = 0.3  # noise that is assumed of one or two messages, over their size
_POWERS = 4  # of the leading direction, in what is no noise


def deviation(messages: Messages) -> jax.Array:
    """Standard deviation [] of the noise of a client's deltas.

    What remains of them after a regression on the sent models: on powers of the direction
    in which these vary most, on the others, and on products of both; at most half as many
    as messages. Curves that these miss count as noise, so that of updates without any it is
    far too high; of mini-batches it is a little too low, for later models hold the noise of
    earlier ones. At least the rounding of float32; where nothing can remain of so few
    messages, a share of their size.
    """
    sent, delta, mask = messages_lib.observed(messages)
    weight = mask.astype(sent.dtype)
    inside = messages_lib.moments(sent, weight).mean
    u = jnp.linalg.svd(weight[:, None] * (sent - inside), full_matrices=False)[0]
    u = u * jnp.sqrt(jnp.maximum(weight.sum(), 1))
    first, others = u[:, :1], u[:, 1:]
    pairs = jnp.stack([others, first * others], axis=2).reshape(len(u), -1)
    powers = first ** np.arange(_POWERS + 1)[None]
    terms = jnp.concatenate([powers, pairs], axis=1)[:, : max(1, len(u) // 2)]
    kept = jnp.arange(terms.shape[1]) < jnp.maximum(1, mask.sum() // 2)
    q, s, _ = jnp.linalg.svd(weight[:, None] * kept[None] * terms, full_matrices=False)
    counts = s > len(u) * jnp.finfo(s.dtype).eps * s[0]
    q = jnp.where(counts[None], q, 0)
    rest = delta - matmul(q, matmul(q.T, delta))
    left, width = weight.sum() - counts.sum(), delta.shape[1]
    found = jnp.sqrt(jnp.sum(jnp.square(rest)) / (jnp.maximum(left, 1) * width))
    whole = jnp.sqrt(
        jnp.sum(jnp.square(delta)) / (jnp.maximum(weight.sum(), 1) * width)
    )
    return jnp.maximum(jnp.where(left < 1, _FEW * whole, found), rounding(messages))


def rounding(messages: Messages) -> jax.Array:
    """Standard deviation [] of deltas whose only noise is that of float32."""
    return float(np.finfo(np.float32).eps) / 4 * jnp.max(jnp.abs(messages.sent))
