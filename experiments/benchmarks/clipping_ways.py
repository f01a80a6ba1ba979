"""Networks of the clipping benchmark, and every way in which a step can be made."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from fljax import losses, models, per_example
from fljax.defenses import clipping, fed_cdp, noise
from fljax.types import Batch, Features, GradientFn, Rows

CLIP, SIGMA = 4.0, 6.0
Name = Literal["mnist", "cifar10", "lfw", "table", "adult", "breast_cancer"]
_IMAGES = {  # shape, B, classes
    "mnist": ((28, 28, 1), 5, 10),
    "cifar10": ((32, 32, 3), 4, 10),
    "lfw": ((32, 32, 3), 3, 62),
}
_TABLES = {"table": (105, 3), "adult": (105, 3), "breast_cancer": (30, 4)}  # columns, B


class Problem(NamedTuple):
    """A network with its data.

    Attributes:
      name: of the network.
      loss_fn: of one example.
      params: initial.
      rows: of all clients, S B each.
      batch_size: B.
    """

    name: Name
    loss_fn: losses.ExampleLoss
    params: Any
    rows: Rows
    batch_size: int


def build(name: Name, clients: int, steps: int) -> Problem:
    """Draws the rows and the model."""
    rng = np.random.default_rng(0)
    if name in _TABLES:
        columns, batch = _TABLES[name]
        shape, classes = (columns,), 2
    else:
        shape, batch, classes = _IMAGES[name]
    count = clients * steps * batch
    x: Any = rng.random((count, *shape), np.float32)
    y = rng.integers(0, classes, count).astype(np.int32)
    if name in _TABLES:
        model = models.mlp(
            columns, hidden=models.TWO_HIDDEN, outputs=2, initialisation="glorot",
            use_bias=False,
        )  # fmt: skip
        x = Features(x, np.zeros((count, 0), np.int32))
    else:
        model = models.cnn(shape, classes)
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    params = jax.jit(model.init)(jax.random.key(0))
    return Problem(name, loss_fn, params, Rows(x, y), batch)


def ways(problem: Problem, scale: float = SIGMA) -> dict[str, GradientFn]:
    """Every way to make a step; `scale` is the sigma of those that draw noise."""
    loss_fn, batch_size = problem.loss_fn, problem.batch_size
    layers = clipping.num_layers(problem.params)
    defense = fed_cdp.fed_cdp(
        loss_fn, clip=CLIP, noise_scale=scale, sampling_rate=1.0,
        batch_size=batch_size, num_layers=layers, mode="per_batch", sampling="fixed",
    )  # fmt: skip
    assert defense.gradient is not None

    def autodiff(key, params, batch):
        del key
        loss, grads = jax.value_and_grad(losses.batch_loss, 1)(loss_fn, params, batch)
        return grads, loss

    def by_layers(key, params, batch):
        del key
        each = per_example.gradients(loss_fn, params, batch.x, batch.y)
        share = jax.tree.map(lambda s: jnp.full_like(s, 1 / batch_size), each.squares)
        return each.weighted_sum(share), jnp.mean(each.values)

    def clip(key, params, batch):
        del key
        to_layers = clipping.per_layer(CLIP)
        found = clipping.clipped_sum(loss_fn, params, batch, to_layers)
        return _over(found.total, batch_size), found.loss

    def one_by_one(key, params, batch):
        del key
        values, grads = _each(loss_fn, params, batch)
        clipped = jax.tree.map(_clipped, grads)
        return _over(jax.tree.map(lambda g: g.sum(0), clipped), batch_size), (
            jnp.mean(values)
        )

    def dp_aggregate(key, params, batch):
        values, grads = _each(loss_fn, params, batch)
        transform = optax.contrib.differentially_private_aggregate(CLIP, scale, key)
        update, _ = transform.update(grads, transform.init(params))
        return update, jnp.mean(values)

    return {
        "sgd, autodiff": autodiff,
        "sgd, by layers": by_layers,
        "clip": clip,
        "clip, one draw": defense.gradient,
        "clip, a draw per example": _noisy(clip, batch_size, scale, batch_size),
        "clip, vmap(grad)": one_by_one,
        "clip, vmap(grad), one draw": _noisy(one_by_one, batch_size, scale, 1),
        "optax aggregate, vmap(grad)": dp_aggregate,
        "sgd, by layers, one draw": _noisy(by_layers, batch_size, scale, 1),
        "sgd, autodiff, one draw": _noisy(autodiff, batch_size, scale, 1),
    }


def kernels(problem: Problem, params: Any = None) -> list[jax.Array]:
    """Of the layers, from the input to the output."""
    params = problem.params if params is None else params
    order = ("PatchConv_0", "PatchConv_1", "TabularDense_0", "Dense_0", "Dense_1")
    return [params[name]["kernel"] for name in order if name in params]


def batches(problem: Problem, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs `[steps, B, ...]` and classes of the first client."""
    x, y = problem.rows
    x = x.numeric if isinstance(x, Features) else x
    count, batch = steps * problem.batch_size, problem.batch_size
    return (
        x[:count].reshape(steps, batch, *x.shape[1:]),
        np.asarray(y[:count]).reshape(steps, batch),
    )


def _noisy(gradient: GradientFn, batch_size: int, scale: float, draws: int):
    """`draws` draws of the noise on the sum of a batch."""

    def noisy(key, params, batch):
        grads, loss = gradient(key, params, batch)
        if draws == 1:
            drawn = noise.like(key, params, scale * CLIP)
        else:
            each = jax.vmap(lambda i: noise.like(_at(key, i), params, scale * CLIP))
            drawn = jax.tree.map(lambda n: n.sum(0), each(jnp.arange(draws)))
        return jax.tree.map(lambda g, n: g + n / batch_size, grads, drawn), loss

    return noisy


def _at(key, index):
    return jax.random.fold_in(key, index)


def _each(loss_fn, params, batch: Batch):
    each = jax.vmap(jax.value_and_grad(loss_fn), (None, 0, 0))
    return each(params, batch.x, batch.y)


def _clipped(grads):
    norms = jnp.sqrt(per_example.squared_norms(grads))
    return jax.vmap(jnp.multiply)(grads, jnp.minimum(1, CLIP / norms))


def _over(total, count: int):
    return jax.tree.map(lambda leaf: leaf / count, total)
