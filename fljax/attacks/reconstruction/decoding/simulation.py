"""A mapping that is itself a client: rows that are learned from the messages.

Not from a paper. Algorithm 3 of Xu & Neglia (2021) lets the adversary know the model,
the loss and how clients train, and its multilayer perceptron uses none of it. Here
`G(w, theta)` is the local update of a client whose rows `w` are unknown: so many steps of
gradient descent on the mean loss over `K` rows. Such a mapping saturates where the loss
does, and has one zero where the loss is strictly convex; a prior of the rows stands in for
what the messages do not tell, where a regression has nothing.

1. Rows share an offset and, input by input, a width; their targets are those of a plane
   through the inputs, for what a client's labels are of is most often nearly a function of
   her inputs. How large these are by the prior the caller assumes.
2. The noise of a client's deltas is what smooth trends leave of them (`noise.deviation`).
3. An ensemble of clients is learned, each the most probable client given a draw of the prior
   as its mean and a draw of the noise on the messages (randomise then optimise), by
   Levenberg-Marquardt steps, from a start of its own. Where messages say much, they agree;
   elsewhere they spread like the prior.
4. Some searches end in a local minimum, which the messages show: members count that
   leave at most `EXPLAINS` times the noise of them, or the one that leaves least.
5. The decoded model solves `mean over these members of their gradient + damping (theta - last
   sent) = 0` by Newton steps of bounded length: the least expected loss, which is finite
   where members disagree on what separates the classes. `members` has the same of each
   member alone, and of all others that count.

Local steps on all rows are simulated exactly, those on mini-batches as if on all rows, too.

Means of `Settings.average` consecutive deltas are fitted, each to the mean of what clients
make of every model that was sent meanwhile. The cost of a step grows with
`(Q P)^2 (Q P + K D)` for `Q` such means: meant for models of tens of parameters. Give it
float64: noise-free messages span many orders.
"""

import numbers
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from fljax import precision
from fljax.attacks.reconstruction.decoding import ensemble as ensemble_lib
from fljax.attacks.reconstruction.decoding import messages as messages_lib
from fljax.attacks.reconstruction.decoding import noise as noise_lib
from fljax.attacks.reconstruction.decoding.ensemble import Simulation
from fljax.attacks.reconstruction.decoding.messages import Decoded, Members, Messages
from fljax.losses import LossFn
from fljax.types import Array, Key, Params

EXPLAINS = 2.0  # misfit of who may have sent messages: one, but noise is estimated
_LONGEST = 2.0  # Newton step in the space of parameters
_NEWTON = 80


class Settings(NamedTuple):
    """How a simulation is learned and decoded.

    Attributes:
      iterations: Levenberg-Marquardt steps of each member.
      ensemble_size: simulated clients whose mean is decoded.
      average: consecutive messages whose mean is fitted.
      floor: least noise that is assumed, over the size of the deltas.
      damping: pull towards the last model that the client was sent; it adds to the
        curvature of the loss.
    """

    iterations: int = 150
    ensemble_size: int = 8
    average: int = 1
    floor: float = 3e-5
    damping: float = 1e-4


def simulated_client(
    loss_fn: LossFn,
    unravel: Callable[[jax.Array], Params],
    num_inputs: int,
    *,
    rate: float,
    steps: Array | int = 1,
    most_steps: int | None = None,
    num_rows: int = 30,
    target: Callable[[jax.Array], jax.Array] = jax.nn.sigmoid,
    spread: float = 1.0,
    shared_spread: float = 1.0,
    slope: float = 2.0,
) -> Simulation:
    """A client of `num_rows` learned rows.

    Args:
      loss_fn: `(params, x [num_inputs], y []) -> []`, the loss of the training.
      unravel: `[P] -> params`.
      num_inputs: inputs of a row.
      rate: learning rate of a local step.
      steps: local steps of a message; may be traced where `most_steps` is given.
      most_steps: at most as many; None for `steps`.
      num_rows: `K`.
      target: what makes a target of the height of a row above the plane; the identity for
        regression.
      spread: standard deviation of the inputs' prior around the offset; each input's is
        learned, within about a third.
      shared_spread: standard deviation of an offset that the inputs of all rows share:
        rows of one client are alike.
      slope: standard deviation of the plane's coefficients.

    Returns:
      A `Simulation`.

    Raises:
      ValueError: for more steps than at most.
    """
    if most_steps is None:
        most_steps = int(steps)
    elif isinstance(steps, numbers.Integral) and steps > most_steps:
        raise ValueError(f"steps must be at most most_steps {most_steps}, got {steps}")

    def gradient(theta, x, y):
        return jax.grad(lambda at: loss_fn(unravel(at), x, y))(theta)

    return Simulation(
        gradient,
        target,
        rate,
        steps,
        most_steps,
        num_rows,
        num_inputs,
        spread,
        shared_spread,
        slope,
    )


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
      A `Decoded`; where it is not determined the prior of the rows decides, too. NaN
      where no simulated client is finite.
    """
    how = settings or Settings()
    if rcond is None:
        rcond = messages_lib.default_rcond(messages)
    rank, singular_values = messages_lib.directions(messages, rcond)
    runs = messages_lib.averaged(messages, how.average)
    noise = noise_lib.deviation(messages) / jnp.sqrt(jnp.maximum(runs.count, 1))
    noise = jnp.maximum(noise, how.floor * ensemble_lib.size(runs))
    members = ensemble_lib.learn(
        key,
        runs,
        simulation,
        noise,
        iterations=how.iterations,
        count=how.ensemble_size,
    )
    misfit = ensemble_lib.misfits(simulation, members, runs, noise)
    finite = jnp.isfinite(misfit)
    least = jnp.min(jnp.where(finite, misfit, jnp.inf))
    counts = finite & (misfit <= jnp.maximum(EXPLAINS, least))
    anchor = messages_lib.last_sent(messages)

    def decoded(which):
        shares = which.astype(misfit.dtype)
        found = _zero(simulation, members, shares, anchor, how.damping)
        return jnp.where(which.any(), found, jnp.nan)

    def alone_and_others(number):
        own = jnp.arange(how.ensemble_size) == number
        return decoded(own & finite), decoded(counts & ~own)

    shares = counts.astype(misfit.dtype)
    estimate = decoded(counts)
    optimum, others = lax.map(alone_and_others, jnp.arange(how.ensemble_size))
    left = ensemble_lib.mean_update(simulation, members, shares, estimate)
    return Decoded(
        estimate=estimate,
        loss=ensemble_lib.loss(simulation, members, shares, messages),
        left=jnp.linalg.norm(left),
        rank=rank,
        singular_values=singular_values,
        determined=rank == estimate.shape[0],
        members=Members(optimum, others, jnp.where(runs.mask.any(), misfit, jnp.nan)),
    )


def _zero(simulation: Simulation, members, shares, anchor, damping: float) -> jax.Array:
    """Where the simulated clients, pulled to the anchor, would stay on average."""

    def field(theta):
        pull = damping * (theta - anchor)
        return ensemble_lib.mean_gradient(simulation, members, shares, theta) + pull

    def step(_, theta):
        move = jnp.linalg.solve(jax.jacfwd(field)(theta), field(theta))
        length = jnp.linalg.norm(move)
        move = move * jnp.minimum(1, _LONGEST / jnp.maximum(length, _LONGEST))
        return theta - jnp.where(jnp.isfinite(move), move, 0)

    return lax.fori_loop(0, _NEWTON, step, anchor)
