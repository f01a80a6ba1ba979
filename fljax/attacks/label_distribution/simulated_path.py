"""`simulated_path`: label distributions from simulated local trainings (fljax).

Closed forms (`rules`) take a message for one step. Here the client's expected path over
all its local steps is simulated by the engine of `trajectory`: row i of label k is
unknown, proxy rows of that label stand for it, and the loss is

    sum_k z_k * mean loss of the proxy rows of label k,

so that the label distribution `z` is the one thing that is looked for. Of a message
only K numbers are compared, those that a linear model would need,

    (G' C^-1 G)^-1/2 G' C^-1 delta,

with the mean gradients `G` of the labels at the model sent and the covariance `C` of
gradients of single rows within their labels, shrunk to a multiple of the identity: what
depends on which rows of a label a client has counts little. Several messages are
matched together.

No shadow client is trained, and no defense is simulated: a message that was shortened is
read as one of a shorter training. Not from a paper.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from fljax import losses, precision
from fljax.attacks import others, streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.estimates import Estimates, LabelEstimate
from fljax.attacks.label_distribution import rules
from fljax.attacks.label_distribution.first_message import pool_of
from fljax.attacks.label_distribution.last_layer import without_messages
from fljax.attacks.label_distribution.shadow_clients import Pool
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import fallbacks, matching, simulation
from fljax.attacks.trajectory.matching import Point, Problem
from fljax.attacks.trajectory.simulation import Simulator
from fljax.transcript import views
from fljax.types import Array, Key, Params, PyTree

_SHRINK = 0.05  # share of the identity in C
_DOUBT = 0.1  # share of the uniform distribution in the start


class Settings(NamedTuple):
    """How hard to look; all static.

    Attributes:
      path_steps: M, simulated steps of a round; a client that takes fewer has its own.
      iterations: of Adam on the logits of `z`.
      per_label: proxy rows of each label, fewer where there are not.
      messages: of a client, evenly from its first to its last.
    """

    path_steps: int = 16
    iterations: int = 40
    per_label: int = 50
    messages: int = 5


class Prepared(NamedTuple):
    """For messages of clients who were sent these models `[R, P]`.

    Attributes:
      sent: the models.
      scores: `[R, K, P]` what is read of a message.
      gradients: `[R, K, P]` mean gradients of the labels.
      rows: proxy rows `[K, m, ...]`, their labels, and which of them are real.
    """

    sent: jax.Array
    scores: jax.Array
    gradients: jax.Array
    rows: tuple[PyTree, jax.Array, jax.Array]


@precision.full
def prepare(
    loss_fn: losses.LossFn, sent: Params, rows: Pool, settings: Settings
) -> Prepared:
    """What all clients who were sent the same models share; traceable.

    Args:
      loss_fn: of one example, on rows as the pool holds them.
      sent: models, leaves `[R, ...]`.
      rows: proxy rows.
      settings: how many of them.
    """
    models = jax.vmap(lambda tree: ravel_pytree(tree)[0])(sent)
    unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], sent))[1]
    chosen = _of_each_label(rows, settings.per_label)

    def at(model):
        def gradient(x, y):
            return jax.grad(lambda p: loss_fn(unravel(p), x, y))(model)

        x, y, real = chosen
        each = jax.vmap(jax.vmap(gradient))(x, y)
        return _scores(jnp.where(real[..., None], each, 0), real)

    scores, gradients = lax.map(at, models)
    return Prepared(models, scores, gradients, chosen)


@precision.full
def infer(
    key: Key,
    loss_fn: losses.LossFn,
    prepared: Prepared,
    deltas: Array,
    scale: Array,
    unravel: Callable[[jax.Array], Params],
    settings: Settings,
) -> jax.Array:
    """ONE client's label distribution `[K]`; traceable.

    Args:
      key: consumed.
      loss_fn: of one example.
      prepared: for the models that it was sent.
      deltas: `[R, P]` its messages, sent minus returned.
      scale: [] its learning rate times its local steps.
      unravel: from `[P]` to the model.
      settings: how hard to look.
    """
    x, y, real = prepared.rows

    def mean_loss(params, shares):
        each = jax.vmap(jax.vmap(loss_fn, (None, 0, 0)), (None, 0, 0))
        by_label = jax.vmap(losses.masked_mean)(each(unravel(params), x, y), real)
        return jnp.dot(shares, by_label)

    def relax(logits):
        return jax.nn.softmax(jnp.pad(logits, (1, 0)))

    field, sent = simulation.of_loss(mean_loss), prepared.sent
    path = simulation.paths(field, simulation.SGD, sent, settings.path_steps)
    chord = simulation.chords(field, sent, sent - deltas)
    steady, _ = fallbacks.steadied(path, chord, sent, sent - deltas)
    search = matching.Settings(
        path_steps=settings.path_steps, iterations=settings.iterations,
        batch_rounds=settings.messages, rate=0.3, stages=1,
    )  # fmt: skip
    changed = jnp.einsum("rkp,rp->rk", prepared.scores, deltas)
    problem = Problem(
        changed, changed, _read(steady, prepared), relax,
        jnp.asarray(scale, jnp.float32), search,
    )  # fmt: skip
    first = rules.class_gradients(deltas[:1], prepared.gradients[0])[0]
    start = jnp.log((1 - _DOUBT) * first + _DOUBT / len(first))
    point = Point(start[1:] - start[0], jnp.zeros(()))
    return relax(matching.search(key, problem, point)[0].logits)


@functools.partial(jax.jit, static_argnames=("loss_fn", "settings"))
def infer_all(
    key: Key,
    sent: Params,
    messages: Array,
    rows: Pool,
    scale: Array,
    *,
    loss_fn: losses.LossFn,
    settings: Settings,
) -> jax.Array:
    """Label distributions `[n, K]` of clients who were all sent one model.

    Args:
      key: consumed.
      sent: the model.
      messages: `[n, P]`, one of each client.
      rows: proxy rows.
      scale: [] learning rate times local steps.
      loss_fn: of one example.
      settings: how hard to look.
    """
    prepared = prepare(
        loss_fn, jax.tree.map(lambda leaf: leaf[None], sent), rows, settings
    )
    unravel = ravel_pytree(sent)[1]
    return lax.map(
        lambda delta: infer(
            key, loss_fn, prepared, delta[None], scale, unravel, settings
        ),
        messages,
    )


def _read(simulator: Simulator, prepared: Prepared) -> Simulator:
    """Scores `[K]` of the message in place of the returned model."""

    def end(round_, values, scale):
        returned, stored = simulator.end(round_, values, scale)
        moved = prepared.sent[round_] - returned
        return prepared.scores[round_] @ moved, (stored, round_)

    def back(stored, cotangent, values, scale):
        inner, round_ = stored
        along = -cotangent @ prepared.scores[round_]
        return simulator.back(inner, along, values, scale)

    return Simulator(end, back)


def _scores(each: jax.Array, real: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Scores and mean gradients, both `[K, P]`, from those of rows `[K, m, P]`."""
    count = jnp.maximum(real.sum(axis=1), 1)
    mean = each.sum(axis=1) / count[:, None]  # [K, P]
    left = jnp.where(real[..., None], each - mean[:, None], 0)
    left = left.reshape(-1, each.shape[-1])  # [m K, P]
    left = left / jnp.sqrt(jnp.maximum(real.sum() - len(real), 1))
    tiny = jnp.finfo(left.dtype).tiny
    ridge = _SHRINK * jnp.sum(left**2) / left.shape[1] + tiny
    # C = (1 - shrink) left' left + ridge I; Woodbury's identity for C^-1 G.
    inner = left @ left.T + ridge / (1 - _SHRINK) * jnp.eye(len(left))
    solved = jnp.linalg.solve(inner, left @ mean.T)
    reads = (mean - solved.T @ left) / ridge
    # The span of the labels' gradients, each direction of it in units of its noise.
    values, vectors = jnp.linalg.eigh(reads @ mean.T)
    least = 1e-6 * values[-1]
    inverse = jnp.where(values > least, 1 / jnp.sqrt(jnp.maximum(values, least)), 0)
    return (vectors * inverse[None]) @ vectors.T @ reads, mean


def _of_each_label(rows: Pool, most: int):
    """Rows `[K, m, ...]`, their labels, and which are real `[K, m]`."""
    within = jnp.arange(most)[None]
    real = within < jnp.asarray(rows.count)[:, None]
    at = jnp.asarray(rows.first)[:, None] + jnp.where(real, within, 0)
    x = jax.tree.map(lambda leaf: jnp.asarray(leaf)[at], rows.x)
    return x, jnp.asarray(rows.y)[at], real


def run(view: AdversaryView, settings: Settings) -> Estimates:
    """Simulates every client of a view."""
    assert view.transcript is not None and view.messages is not None
    rows = pool_of(view)
    rate = view.training.learning_rate or 0.0
    taken = view.training.local_steps(view.sizes)
    found, beside = [], []
    for client, steps in enumerate(taken.tolist()):
        own_settings = settings._replace(path_steps=min(settings.path_steps, steps))
        own = view.messages.of(client)
        places = views.spread(own, min(settings.messages, int(own.count)))
        exchange = jax.tree.map(
            lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)),
            views.messages(view.transcript, places),
        )
        key = streams.key(view.seed, streams.LABELS, int(view.clients[client]))
        told = rows, rate * steps
        found.append(_one(view.mean_loss, own_settings, key, exchange, *told))
        if (strange := others.of_messages(view, places)) is not None:
            exchange = exchange._replace(delta=jax.tree.map(jnp.asarray, strange))
            beside.append(_one(view.mean_loss, own_settings, key, exchange, *told))
    value, strange = (
        np.stack(e) if e else None for e in jax.device_get((found, beside))
    )
    assert value is not None
    baseline = without_messages(view)
    return {"simulated_path": LabelEstimate(value, baseline, others=strange)}


@functools.partial(jax.jit, static_argnums=(0, 1))
def _one(loss_fn, settings: Settings, key, exchange, rows: Pool, scale):
    prepared = prepare(loss_fn, exchange.params, rows, settings)
    unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], exchange.params))[1]
    deltas = jax.vmap(lambda tree: ravel_pytree(tree)[0])(exchange.delta)
    return infer(key, loss_fn, prepared, deltas, scale, unravel, settings)


SPEC = AttackSpec(
    "simulated_path",
    Needs(
        task="multiclass",
        proxy=True,
        training=True,
        optimisers=("sgd",),
        algorithms_not=("fed_prox",),
    ),
    run,
    Settings(),
    gives=LabelEstimate,
    group="label_distribution",
)
