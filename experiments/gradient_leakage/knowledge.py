"""What the adversary knows of a defense, and so simulates of a message.

It knows the network, the learning rate, the number of steps, and, if it is aware, how
gradients and messages are clipped and that small entries are zeroed. It then compares
clipped gradients with clipped ones, in each of several steps as well, and, where entries
are pruned or not sent, only those that are not zero. Of noise it can be told how much
there is, so that what public images look like counts as much as it should.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from experiments.gradient_leakage.settings import Config
from experiments.gradient_leakage.views import View, clips, observe
from fljax import losses, tree
from fljax.attacks.inversion import points
from fljax.defenses import bounding
from fljax.defenses.effects import Effects
from fljax.defenses.parts import Part
from fljax.defenses.specs import Spec
from fljax.types import Array, Key, Params

_TINY = 1e-20  # of a squared norm, whose root has no slope at zero


class Bounds(NamedTuple):
    """What one defense does to a message; infinite where it does not.

    Attributes:
      clip: [] of every layer.
      norm: [] of the whole.
      limit: [] of every entry.
    """

    clip: Array = np.float32(np.inf)
    norm: Array = np.float32(np.inf)
    limit: Array = np.float32(np.inf)


class Known(NamedTuple):
    """What the adversary knows of a method.

    Attributes:
      clip: [] of every layer of every example's gradient, infinite without.
      total_clip: [] of every example's gradient as a whole, likewise.
      median: [] bool, whether layers of examples are clipped to the median of a batch.
      pruned: [] bool, whether zeros may be pruned entries.
      messages: of the message, in the order in which they act, one at least.
      noise: [] variance of an entry's noise, which a prior is weighed with.
    """

    clip: Array
    total_clip: Array
    median: Array
    pruned: Array
    messages: tuple[Bounds, ...]
    noise: Array = np.float32(0)


def known(run: Config, view: View, layers: int, pruned: float) -> Known:
    """What the adversary may simulate."""
    clip = total_clip = jnp.inf
    aware, median, zeroed = run.attacker == "aware", False, pruned > 0
    leaving, arriving = [], []
    for does in filter(None, (part.effects for part in view.spec.parts)):
        own = float(does.clip_at(np.asarray(run.round), run.num_rounds, layers))
        match does.examples:
            case "per_layer":
                clip = own
            case "total":
                total_clip = own
            case "median":
                median = not view.example
        if not _meets_message(does, view):
            continue
        bounds = Bounds()
        match does.messages:
            case "per_layer":
                bounds = Bounds(clip=np.float32(own / run.rate))
            case "total":
                bounds = Bounds(norm=np.float32(own / run.rate))
        if does.limit is not None:
            bounds = bounds._replace(limit=np.float32(does.limit / run.rate))
        if bounds != Bounds():
            (arriving if does.arrival else leaving).append(bounds)
        zeroed = zeroed or does.share < 1
    messages = (*leaving, *arriving) or (Bounds(),)
    if not aware:
        clip, total_clip, messages = jnp.inf, jnp.inf, (Bounds(),)
    return Known(
        jnp.float32(clip),
        jnp.float32(total_clip),
        jnp.bool(aware and median),
        jnp.bool(aware and zeroed),
        messages,
    )


def simulation(
    run: Config, *, example: bool
) -> Callable[[losses.LossFn, Known, Params], points.Simulate]:
    """`(loss_fn, known, observed) -> simulate`, the same for every method."""
    whole = whole_message(run, example=example)

    def build(loss_fn, known, observed):
        # All is compared where nothing was pruned.
        marks = jax.tree.map(lambda leaf: jnp.where(known.pruned, leaf, 1.0), observed)
        return points.where_sent(whole(loss_fn, known), marks)

    return build


def whole_message(
    run: Config, *, example: bool
) -> Callable[[losses.LossFn, Known], points.Simulate]:
    """`(loss_fn, known) -> simulate`, with the entries that pruning would zero."""

    def build(loss_fn, known):
        simulate = _clipped_mean(loss_fn, known)
        if not example and run.steps > 1:
            update = points.steps_of(simulate, run.rate, run.steps, run.batch_size)
            simulate = _scaled(update, 1 / run.rate)

        def message(params, x, y):
            found = simulate(params, x, y)
            if example:
                return found
            for bounds in known.messages:
                found = _to_norm(found, bounds.clip)
                squared = tree.dot(found, found) / jnp.square(bounds.norm)
                factor = lax.rsqrt(jnp.maximum(squared, 1))
                found = bounding.cut(_times(factor, found), bounds.limit)
            return found

        return message

    return build


def noise_variance(
    run: Config,
    view: View,
    loss_fn: losses.LossFn,
    params: Params,
    shape: tuple[int, ...],
) -> Callable[[Key], jax.Array]:
    """How much noise the adversary expects in an entry, from a rehearsal.

    Twice the same grey images of class 0 pass the defense, but for what it would zero.
    Half the mean squared difference is the variance. Noise of one step that turns the
    gradients of the next ones counts with it.

    Returns:
      `(key) -> []`; consumes the key.
    """
    parts = (part for part in view.spec.parts if _keeps_all(part))
    view = view._replace(spec=Spec(tuple(parts)))
    see = observe(run, view, loss_fn, len(jax.tree.leaves(params)))
    grey, labels = jnp.full(shape, 0.5), jnp.zeros(shape[0], jnp.int32)

    def variance(key):
        def shown(key):
            message = see(key, params, grey, labels, clips(run, view.shown), 0.0)
            return ravel_pytree(message)[0]

        first, second = jax.vmap(shown)(jax.random.split(key))
        return jnp.mean(jnp.square(first - second)) / 2

    return variance


def _keeps_all(part: Part) -> bool:
    return part.effects is None or part.effects.share == 1


def _meets_message(does: Effects, view: View) -> bool:
    """Whether what a defense does to messages was done where this view is."""
    return not view.example and (not does.arrival or 0 in view.types)


def _clipped_mean(loss_fn: losses.LossFn, known: Known) -> points.Simulate:
    """Mean of clipped gradients, differentiable also where a layer is zero."""
    one = jax.grad(loss_fn)

    def simulate(params, x, y):
        each = jax.vmap(one, (None, 0, 0))(params, x, y)
        squares = jax.tree.map(
            lambda leaf: jnp.sum(jnp.square(leaf), axis=range(1, leaf.ndim)), each
        )
        whole = jax.tree.reduce(jnp.add, squares) / jnp.square(known.total_clip)

        def mean(leaf, squared):
            middle = jnp.median(jnp.sqrt(jnp.maximum(squared, _TINY)))
            # An infinite clip would have no tangent; one over it has.
            inverse = jnp.where(known.median, 1 / middle, 1 / known.clip)
            excess = jnp.maximum(squared * jnp.square(inverse), whole)
            factors = lax.rsqrt(jnp.maximum(excess, 1))
            return jnp.tensordot(factors, leaf, 1) / len(factors)

        return jax.tree.map(mean, each, squares)

    return simulate


def _to_norm(found: Params, clip: Array) -> Params:
    """Every layer to a norm, differentiable likewise."""

    def to(leaf):
        excess = jnp.sum(jnp.square(leaf)) / jnp.square(clip)
        return leaf * lax.rsqrt(jnp.maximum(excess, 1))

    return jax.tree.map(to, found)


def _scaled(simulate: points.Simulate, factor: float) -> points.Simulate:
    return lambda params, x, y: _times(factor, simulate(params, x, y))


def _times(factor: Array | float, found: Params) -> Params:
    return jax.tree.map(lambda leaf: factor * leaf, found)
