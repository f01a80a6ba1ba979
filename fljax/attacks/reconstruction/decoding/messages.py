"""A client's messages as flat vectors, and how many directions they tell apart."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from fljax.types import Array, Exchange, Params, Transcript


class Messages(NamedTuple):
    """What one client was sent and what came back.

    Attributes:
      sent: `[R, P]` flat parameters.
      delta: `[R, P]` sent minus returned; anything where `mask` is False.
      mask: `[R]` bool, the rounds in which it took part.
    """

    sent: jax.Array
    delta: jax.Array
    mask: jax.Array


class Runs(NamedTuple):
    """Means of consecutive messages: less noise, and less to learn from.

    Attributes:
      sent: `[Q, L, P]` the models of the `L` rounds of a run.
      share: `[Q, L]` of a round in the mean of its run; zero without the client.
      delta: `[Q, P]` the mean of its deltas; zeros without any.
      count: `[Q]` messages that a mean is of, in the type of the messages.
    """

    sent: jax.Array
    share: jax.Array
    delta: jax.Array
    count: jax.Array

    @property
    def mask(self) -> jax.Array:
        """`[Q]` bool, runs with a message."""
        return self.count > 0

    @property
    def centre(self) -> jax.Array:
        """`[Q, P]` mean of the models that the client was sent in a run."""
        return jnp.sum(self.share[..., None] * self.sent, axis=1)


class Members(NamedTuple):
    """Each member of an ensemble alone.

    Attributes:
      optimum: `[S, P]` its local optimum, decoded from it alone.
      others: `[S, P]` decoded from all members that count but it; NaN where there is none.
      misfit: `[S]` root mean square of what it leaves of the messages, over the noise
        that was assumed of them; about one of a member that explains them, NaN without
        any message.
    """

    optimum: jax.Array
    others: jax.Array
    misfit: jax.Array


class Decoded(NamedTuple):
    """An estimate of the local optimum, and what it rests on.

    Attributes:
      estimate: `[P]` flat parameters.
      loss: [] mean over the messages of `|G(sent) - delta|^2`, eq. (6).
      left: [] `|G(estimate)|`, which eq. (7) wants to be nothing; a simulated client's
        gradient is zero there, its update nearly.
      rank: [] int32, directions in which the deltas vary beyond the cut-off.
      singular_values: `[min(R, P)]` of the centred and scaled deltas, decreasing.
      determined: [] bool, `rank == P`. Otherwise even an affine mapping is not
        determined by the messages, and the estimate rests on the kind of mapping.
      members: of the ensemble; None of a mapping that has none.
    """

    estimate: jax.Array
    loss: jax.Array
    left: jax.Array
    rank: jax.Array
    singular_values: jax.Array
    determined: jax.Array
    members: Members | None = None


def of_exchange(exchange: Exchange, mask: Array | None = None) -> Messages:
    """Flat messages of an exchange.

    Args:
      exchange: leaves `[R, ...]`.
      mask: `[R]` rounds in which it took part; None for all.
    """
    sent, delta = (jax.vmap(lambda t: ravel_pytree(t)[0])(t) for t in exchange)
    mask = jnp.ones(len(sent), bool) if mask is None else jnp.asarray(mask, bool)
    return Messages(sent, delta, mask)


def of_client(transcript: Transcript, client: Array | int) -> Messages:
    """One client's messages in a transcript; both may be traced.

    Args:
      transcript: rounds `[R]`, slots `[R, K]`.
      client: [] its id; one that never took part has an empty mask.
    """
    own = jnp.asarray(transcript.client) == client  # [R, K]

    def pick(leaf):
        chosen = own.reshape(own.shape + (1,) * (jnp.ndim(leaf) - 2))
        return jnp.sum(jnp.where(chosen, leaf, 0), axis=1)

    delta: Params = jax.tree.map(pick, transcript.delta)
    return of_exchange(Exchange(transcript.params, delta), own.any(axis=1))


def last_returned(messages: Messages) -> jax.Array:
    """The model `[P]` that the client returned last: the paper's baseline.

    Without any message, the model that the server sent last.
    """
    count = messages.mask.shape[0]
    last = jnp.max(jnp.where(messages.mask, jnp.arange(count), -1))
    delta = jnp.where(last >= 0, messages.delta[last], 0)
    return messages.sent[last] - delta


def last_sent(messages: Messages) -> jax.Array:
    """The model `[P]` that the client was sent last; the first one without any message."""
    rounds = jnp.arange(len(messages.mask))
    return messages.sent[jnp.max(jnp.where(messages.mask, rounds, 0))]


def averaged(messages: Messages, run: int) -> Runs:
    """Means of `run` consecutive rounds each; rounds before the first full run are left out.

    Args:
      messages: `R` rounds.
      run: rounds of a mean, 1 to `R`; those without the client do not count.

    Raises:
      ValueError: for a run that is not that long.
    """
    count = len(messages.mask)
    if not 1 <= run <= count:
        raise ValueError(f"run must be 1 to {count}, got {run}")
    seen = observed(messages)

    def split(leaf):
        kept = leaf[count % run :]
        return kept.reshape(-1, run, *leaf.shape[1:])

    sent, delta, mask = (split(leaf) for leaf in seen)
    taken = mask.astype(sent.dtype)
    total = taken.sum(axis=1)
    share = taken / jnp.maximum(total, 1)[:, None]
    return Runs(sent, share, jnp.sum(share[..., None] * delta, axis=1), total)


class Moments(NamedTuple):
    """Weighted mean and standard deviation `[1, P]`; 1 for what never varies."""

    mean: jax.Array
    deviation: jax.Array


def moments(values: jax.Array, weights: jax.Array) -> Moments:
    """Of `values [R, P]` under `weights [R]`, which may all be zero."""
    share = weights / jnp.maximum(weights.sum(), jnp.finfo(weights.dtype).tiny)
    share = share[:, None]
    mean = jnp.sum(share * values, axis=0, keepdims=True)
    square = jnp.sum(share * jnp.square(values - mean), axis=0, keepdims=True)
    deviation = jnp.sqrt(square)
    return Moments(mean, jnp.where(deviation > rounding(mean), deviation, 1))


def rounding(mean: jax.Array) -> jax.Array:
    """What a deviation from a mean may come to where nothing varies."""
    return 8 * jnp.finfo(mean.dtype).eps * jnp.abs(mean)


def observed(messages: Messages) -> Messages:
    """The same with zeros where the client took no part."""
    where = messages.mask[:, None]
    return messages._replace(delta=jnp.where(where, messages.delta, 0))


def default_rcond(messages: Messages) -> float:
    """Precision of the messages times the larger of R and P."""
    sent = messages.sent
    return float(jnp.finfo(sent.dtype).eps) * max(sent.shape)


def directions(messages: Messages, rcond: float) -> tuple[jax.Array, jax.Array]:
    """Rank and singular values of the deltas, centred and scaled by column."""
    weights = messages.mask.astype(messages.sent.dtype)
    delta = observed(messages).delta
    mean, deviation = moments(delta, weights)
    scaled = weights[:, None] * (delta - mean) / deviation
    s = jnp.linalg.svd(scaled, compute_uv=False)
    return jnp.sum(s > rcond * s[0]).astype(jnp.int32), s
