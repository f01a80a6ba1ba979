"""What is measured of a Fed-CDP federation's model: accuracy and gradient norms."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from experiments.fed_cdp import clients
from experiments.fed_cdp.clients import Task
from experiments.fed_cdp.setup import Setup, of_seed
from fljax import per_example, tree
from fljax.types import Array, Rows

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


def evaluate(setup: Setup, item_state, shared_rows) -> Evaluation:
    """Measures ONE model.

    Args:
      setup: the variant.
      item_state: the `Item` and its `Run`.
      shared_rows: the `Shared`, and positions of the rows to classify.
    """
    (item, state), (shared, positions) = item_state, shared_rows
    params, dropped = state.server.params
    task, labels = setup.task, jnp.asarray(setup.task.labels)

    def right(position):
        x = clients.look_up(shared.pool, task.white, position)
        outputs = task.model.apply(params, x)
        finite = jnp.isfinite(outputs).all()
        return finite & (jnp.argmax(outputs) == labels[position])

    accuracy = jnp.mean(jax.lax.map(right, positions, batch_size=_BATCH))
    norms = jax.lax.map(
        functools.partial(_norms, task, params, shared.pool),
        jax.tree.map(
            lambda leaf: leaf[shared.probe[item.index]],
            of_seed(shared.rows, item.index),
        ),
    )
    return Evaluation(accuracy, *(jnp.mean(norm) for norm in norms), dropped)


def _norms(task: Task, params, pool, rows: Rows):
    """Norm of a batch's gradient, and mean norm of its examples'."""
    x = clients.look_up(pool, task.white, rows.x)
    each = per_example.gradients(task.loss_fn, params, x, rows.y)
    share = 1 / len(rows.y)
    mean = each.weighted_sum(
        jax.tree.map(lambda leaf: jnp.full_like(leaf, share), each.squares)
    )
    squares = jax.tree.reduce(jnp.add, each.squares)
    return tree.norm(mean), jnp.mean(jnp.sqrt(squares))
