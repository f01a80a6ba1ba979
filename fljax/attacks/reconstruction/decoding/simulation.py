"""A mapping that is itself a client: a few rows, learned from the messages.

Not from a paper. Algorithm 3 of Xu & Neglia (2021) lets the adversary know the model,
the loss and how clients train, and its multilayer perceptron uses none of it. Here
`G(w, theta)` is the local update of a client whose rows `w` are unknown: a rate times
the gradient of the mean loss over `K` inputs with soft targets. Such a mapping is the
gradient of a function, saturates where the loss does, and has one zero where the loss
is strictly convex; a Gaussian prior of the rows stands in for what the messages do not
tell, where a regression has nothing.

1. The noise of a client's deltas is estimated from what smooth trends leave, at least
   the rounding of the messages and `floor` times their size: mini-batches are noisy.
2. The floor and the width of the prior are those that predict the last third of its
   messages best when learned from the others (`choose`). That rows of one client share an
   offset, and how large one is beside their own spread, the caller assumes.
3. An ensemble of clients is learned, each the most probable client given a draw of the prior
   as its mean and a draw of the noise on the messages (randomise then optimise), by
   Levenberg-Marquardt steps; the assumed noise falls to the estimated one on the way.
   Where messages say much, they agree; elsewhere they spread like the prior.
4. The decoded model solves `mean over the ensemble of G(w, theta) / rate + damping (theta -
   last sent) = 0` by Newton steps of bounded length: the least expected loss, which is
   finite where its members disagree on what separates the classes. `members` has the same of
   each member alone, and of all others.

Local steps are not unrolled: several act like one of their summed rate from the middle
of their path (`messages.centred`), as long as a round moves little.

The cost grows with `R P M^2` for `M = K (inputs + 1) + 1` weights: meant for models of
up to about a hundred parameters. Give it float64: noise-free messages span many orders.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fljax import precision
from fljax.attacks.reconstruction.decoding import ensemble as ensemble_lib
from fljax.attacks.reconstruction.decoding import messages as messages_lib
from fljax.attacks.reconstruction.decoding.ensemble import Choice, Simulation
from fljax.attacks.reconstruction.decoding.messages import Decoded, Members, Messages
from fljax.losses import LossFn
from fljax.types import Key, Params

_LONGEST = 2.0  # Newton step in the space of parameters
_NEWTON = 80
_EARLIER = 2 / 3  # share of its messages that a choice is learned from
_TRIAL, _LEARN = range(2)
_TARGETS = 3.0  # deviation of the free numbers behind the targets


class Settings(NamedTuple):
    """How a simulation is learned and decoded.

    Attributes:
      iterations: Levenberg-Marquardt steps of each of them.
      ensemble_size: simulated clients whose mean is decoded.
      trials: simulated clients of every choice.
      floors: to choose from, least noise that is assumed, over the size of the deltas.
      widths: to choose from, factors of the prior's deviations.
      damping: pull towards the last model that was sent, in units of the curvature.
    """

    iterations: int = 30
    ensemble_size: int = 8
    trials: int = 2
    floors: tuple[float, ...] = (1e-4, 1e-2)
    widths: tuple[float, ...] = (0.5, 1.0)
    damping: float = 1e-4


def simulated_client(
    loss_fn: LossFn,
    unravel: Callable[[jax.Array], Params],
    num_inputs: int,
    *,
    rate: float,
    num_rows: int = 10,
    target: Callable[[jax.Array], jax.Array] = jax.nn.sigmoid,
    spread: float = 1.5,
    shared_spread: float = 0.0,
) -> Simulation:
    """A client of `num_rows` learned rows.

    Args:
      loss_fn: `(params, x [num_inputs], y []) -> []`, the loss of the training.
      unravel: `[P] -> params`.
      num_inputs: inputs of a row.
      rate: learning rate times local steps; a guess, which is refined.
      num_rows: `K`.
      target: what makes a target of a free number; the identity for regression.
      spread: standard deviation of the inputs' prior, whose mean is zero, around the
        offset.
      shared_spread: standard deviation of an offset that the inputs of all rows share:
        rows of one client are alike.

    Returns:
      A `Simulation`.
    """

    def loss(theta, row):
        return loss_fn(unravel(theta), row[:-1], target(row[-1]))

    def gradient(row, theta):
        return jax.grad(loss)(theta, row)

    def table(inputs, last):
        return np.tile(np.append(np.full(num_inputs, inputs), last), (num_rows, 1))

    shared = np.append(np.full(num_inputs, shared_spread), 0.0)
    return Simulation(gradient, rate, table(0.0, 0.0), table(spread, _TARGETS), shared)


@precision.full
def simulated(
    key: Key,
    messages: Messages,
    simulation: Simulation,
    *,
    settings: Settings | None = None,
    rcond: float | None = None,
) -> Decoded:
    """Learns the rows of ONE client and decodes its local optimum.

    Args:
      key: consumed.
      messages: of the client.
      simulation: from `simulated_client`.
      settings: None for the default ones.
      rcond: cut-off of the directions that are counted, as in `affine`.

    Returns:
      A `Decoded`; where it is not determined the prior of the rows decides, too.
    """
    how = settings or Settings()
    if rcond is None:
        rcond = messages_lib.default_rcond(messages)
    rank, singular_values = messages_lib.directions(messages, rcond)
    seen = messages_lib.observed(messages)
    choice = choose(jax.random.fold_in(key, _TRIAL), seen, simulation, how)
    ensemble = ensemble_lib.learn(
        jax.random.fold_in(key, _LEARN),
        seen,
        simulation,
        choice,
        iterations=how.iterations,
        count=how.ensemble_size,
    )
    last = jnp.max(jnp.where(seen.mask, jnp.arange(seen.mask.shape[0]), 0))
    anchor = seen.sent[last]
    estimate = _zero(simulation, ensemble, anchor, how.damping)
    alone, others = _one_by_one(simulation, ensemble, anchor, how.damping)
    misfit = ensemble_lib.misfits(simulation, ensemble, seen, choice)
    return Decoded(
        estimate=estimate,
        loss=ensemble_lib.loss(simulation, ensemble, seen),
        left=jnp.linalg.norm(ensemble_lib.mean_update(simulation, ensemble, estimate)),
        rank=rank,
        singular_values=singular_values,
        determined=rank == seen.sent.shape[1],
        members=Members(alone, others, misfit),
    )


@precision.full
def choose(
    key: Key, messages: Messages, simulation: Simulation, settings: Settings
) -> Choice:
    """The floor and width that predict a client's last messages best from the others.

    Args:
      key: consumed.
      messages: of the client.
      simulation: from `simulated_client`.
      settings: what there is to choose from.

    Returns:
      A `Choice`; the first of each where there is nothing to predict.
    """
    floors, widths = np.meshgrid(settings.floors, settings.widths, indexing="ij")
    dtype = messages.sent.dtype
    every = Choice(*(jnp.asarray(each.ravel(), dtype) for each in (floors, widths)))
    if len(every.floor) == 1:
        return jax.tree.map(lambda leaf: leaf[0], every)
    seen = messages_lib.observed(messages)
    number = jnp.cumsum(seen.mask)
    earlier = seen.mask & (number <= _EARLIER * number[-1])
    known = seen._replace(mask=earlier)
    later = seen._replace(mask=seen.mask & ~earlier)

    def misfit(choice):
        ensemble = ensemble_lib.learn(
            key,
            known,
            simulation,
            choice,
            iterations=settings.iterations,
            count=settings.trials,
        )
        return ensemble_lib.loss(simulation, ensemble, later)

    best = jnp.argmin(lax.map(misfit, every))
    return jax.tree.map(lambda leaf: leaf[best], every)


def _one_by_one(simulation, ensemble, anchor, damping) -> tuple[jax.Array, jax.Array]:
    """What each member `[S, P]` is decoded to alone, and what all others are."""

    def split(number):
        first = jnp.roll(ensemble, -number, axis=0)
        others = first[1:] if len(ensemble) > 1 else first
        parts = first[:1], others
        return tuple(_zero(simulation, each, anchor, damping) for each in parts)

    return lax.map(split, jnp.arange(len(ensemble)))


def _zero(simulation, ensemble, anchor, damping: float) -> jax.Array:
    """Where the simulated clients, pulled to the anchor, would stay on average."""
    rate = jnp.mean(jnp.exp(ensemble[:, -1]))

    def field(theta):
        pull = damping * (theta - anchor)
        return ensemble_lib.mean_update(simulation, ensemble, theta) / rate + pull

    def step(_, theta):
        move = jnp.linalg.solve(jax.jacfwd(field)(theta), field(theta))
        length = jnp.linalg.norm(move)
        move = move * jnp.minimum(1, _LONGEST / jnp.maximum(length, _LONGEST))
        return theta - jnp.where(jnp.isfinite(move), move, 0)

    return lax.fori_loop(0, _NEWTON, step, anchor)
