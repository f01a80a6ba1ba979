"""What is measured of a Fed-CDP federation's model: accuracy and gradient norms."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from experiments.fed_cdp import clients
from fljax import federation, losses, per_example
from fljax.federation import Tables, Training
from fljax.types import Array, Model, Rows

_BATCH = 100  # examples that are evaluated together: their patches fit a cache


class Evaluation(NamedTuple):
    """What is measured of ONE model; leaves `[]`.

    Attributes:
      accuracy: share of rows whose class is named rightly; a model that is not finite
        names none.
      gradient_norm: mean over probed clients of the norm of the gradient of their first
        batch, before any defense (Figure 3 of Wei et al. 2021).
      example_norm: the same of single examples.
      dropped: as in `Counted`.
    """

    accuracy: Array
    gradient_norm: Array
    example_norm: Array
    dropped: Array


class Measure(NamedTuple):
    """Measures ONE model, on validation rows."""

    model: Model
    loss_fn: losses.LossFn
    white: int | None

    def __call__(self, run, training: Training, tables: Tables) -> Evaluation:
        params, dropped = run.server.params
        rows, _ = federation.of(tables, training)
        pool = tables.pool
        norms = jax.lax.map(
            functools.partial(self._norms, params, pool.x),
            jax.tree.map(lambda leaf: leaf[pool.probe], rows),
        )
        right = _accuracy(self.model, self.white, params, pool, pool.validation)
        return Evaluation(right, *(jnp.mean(norm) for norm in norms), dropped)

    def _norms(self, params, pool, rows: Rows):
        """Norm of a batch's gradient, and mean norm of its examples'."""
        x = clients.look_up(pool, self.white, rows.x)
        each = per_example.gradients(self.loss_fn, params, x, rows.y)
        share = 1 / len(rows.y)
        mean = each.weighted_sum(
            jax.tree.map(lambda leaf: jnp.full_like(leaf, share), each.squares)
        )
        squares = jax.tree.reduce(jnp.add, each.squares)
        return optax.tree.norm(mean), jnp.mean(jnp.sqrt(squares))


class TestAccuracy(NamedTuple):
    """Accuracy of ONE model on test rows."""

    model: Model
    white: int | None

    def __call__(self, run, training: Training, tables: Tables) -> jax.Array:
        del training
        params, pool = run.server.params.params, tables.pool
        return _accuracy(self.model, self.white, params, pool, pool.test)


def _accuracy(model: Model, white, params, pool, positions) -> jax.Array:
    """Share of rows whose class is named rightly."""

    def right(position):
        outputs = model.apply(params, clients.look_up(pool.x, white, position))
        finite = jnp.isfinite(outputs).all()
        return finite & (jnp.argmax(outputs) == pool.labels[position])

    return jnp.mean(jax.lax.map(right, positions, batch_size=_BATCH))
