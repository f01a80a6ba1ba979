"""Closed forms: label distributions from one message and class gradients of the model.

The gradient of the cross-entropy with respect to the last layer's bias is the softmax
minus the one-hot label. So, as long as the model hardly moves,

    delta of the bias / (learning rate * steps) = mean softmax - label distribution,

which `last_layer` solves for the distribution, with the softmax of the sent model on
proxy rows of equally many of each label. It needs plain SGD, a bias, labels in the loss,
and the rate and number of steps of the clients.

`class_gradients` is a rule of fljax, not of the paper: to the first order the whole
delta is a multiple of the sum over labels of (share * mean gradient of the label's rows),
with the gradients of proxy rows at the sent model; least squares give the shares. It
needs no shadow client, no rate, no bias and no labels in the loss, averages noise over
all parameters, and takes an unknown scale (clipping) in its stride.

Both put what comes out negative to zero and divide by the sum.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.flatten_util import ravel_pytree

from fljax import losses, precision
from fljax.attacks.label_distribution.shadow_clients import Pool
from fljax.types import Array, Batch, Params


@precision.full
def mean_gradients(
    loss_fn: losses.LossFn, sent: Params, rows: Pool, per_label: int = 200
) -> jax.Array:
    """Mean gradient `[K, P]` of rows of each label, at the sent model.

    Args:
      loss_fn: of one example, on rows as the pool holds them.
      sent: the model.
      rows: the pool; of each label the first rows are taken.
      per_label: so many, fewer where there are not.
    """
    within = jnp.arange(per_label)
    first, count = jnp.asarray(rows.first), jnp.asarray(rows.count)

    def one(label):
        real = within < count[label]
        at = first[label] + jnp.where(real, within, 0)
        x = jax.tree.map(lambda leaf: jnp.asarray(leaf)[at], rows.x)
        batch = Batch(x, jnp.asarray(rows.y)[at], real)
        return ravel_pytree(jax.grad(losses.batch_loss, 1)(loss_fn, sent, batch))[0]

    return lax.map(one, jnp.arange(len(count)))


def span(params: Params, *path: str) -> slice:
    """Where an array of parameters lies in a raveled message.

    Args:
      params: the model, nested dicts.
      *path: names that lead to the array.

    Raises:
      ValueError: nothing lies there.
    """
    begin = 0
    for where, leaf in jax.tree_util.tree_leaves_with_path(params):
        names = tuple(jax.tree_util.keystr((name,), simple=True) for name in where)
        if names == path:
            return slice(begin, begin + leaf.size)
        begin += leaf.size
    raise ValueError(f"path: expected an array of parameters, got {'/'.join(path)}")


def last_layer(bias: Array, gradients: Array, distance: float | Array) -> jax.Array:
    """Distributions `[n, K]` from deltas of the last layer's bias.

    Args:
      bias: `[n, K]` deltas.
      gradients: `[K, K]` of each label, with respect to that bias.
      distance: [] learning rate times local steps.
    """
    softmax = jnp.mean(gradients, axis=0) + 1 / gradients.shape[1]
    return to_simplex(softmax[None] - jnp.asarray(bias) / distance)


def class_gradients(messages: Array, gradients: Array) -> jax.Array:
    """Distributions `[n, K]` from messages `[n, P]` and `mean_gradients` `[K, P]`.

    Any subset of the parameters does that tells the labels apart.
    """
    gram = jnp.matmul(gradients, gradients.T, precision="highest")
    right = jnp.matmul(gradients, jnp.asarray(messages).T, precision="highest")
    inverse = jnp.linalg.pinv(gram, rtol=1e-5, hermitian=True)
    return to_simplex(jnp.matmul(inverse, right, precision="highest").T)


def to_simplex(values: Array) -> jax.Array:
    """Negative entries to 0, then rows `[n, K]` of sum 1; uniform where nothing is left."""
    kept = jnp.where(jnp.isfinite(values), jnp.maximum(values, 0), 0)
    total = jnp.sum(kept, axis=-1, keepdims=True)
    uniform = jnp.full_like(kept, 1 / kept.shape[-1])
    return jnp.where(total > 0, kept / jnp.where(total > 0, total, 1), uniform)
