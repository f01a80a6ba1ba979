"""How well what was simulated fits what was observed: 1 where all that is left is noise."""

import jax
import jax.numpy as jnp

from fljax.attacks.trajectory import noise as noise_lib

_NEXT_TO_NOTHING = 1e-2  # of what was changed


def powers(noise, rounds, residuals: jax.Array) -> jax.Array:
    """Squared whitened residual of each round, of what was observed."""
    rounds = jnp.asarray(rounds)
    if noise.partial is not None:
        residuals = residuals * noise.partial.there[rounds]
    return jax.vmap(lambda t, r: jnp.dot(r, noise_lib.whiten(noise, t, r)))(
        rounds, residuals
    )


def pace(
    noise: noise_lib.Noise, residuals: jax.Array, changed: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """How far messages moved along what was simulated, of that, and its standard error.

    The generalised least-squares factor of the simulated changes that meets the messages.
    It is 1 if all is right, twice the learning rate that was declared about 2: what a misfit
    takes for noise, since with the rate a residual changes from round to round.
    """
    simulated = residuals + changed
    if noise.partial is not None:
        residuals, simulated = (
            each * noise.partial.there for each in (residuals, simulated)
        )
    rounds = jnp.arange(len(residuals))
    weighed = jax.vmap(lambda t, s: noise_lib.whiten(noise, t, s))(rounds, simulated)
    along, whole = ((weighed * each).sum(axis=1) for each in (residuals, simulated))
    size = jnp.maximum(whole.sum(), noise_lib.LEAST)
    short = along.sum() / size
    left = jnp.square(along - short * whole).sum()
    return 1 - short, jnp.sqrt(left) / size


def misfit(noise: noise_lib.Noise, residuals: jax.Array) -> jax.Array:
    """Mean squared whitened residual over that of the differences, which is noise."""
    rounds, partial = jnp.arange(residuals.shape[0]), noise.partial
    if len(rounds) < 3:
        return jnp.ones(())
    steps, both = noise_lib.differences(residuals, partial)
    each = jnp.concatenate([rounds, rounds[:-1]])
    power = powers(noise, each, jnp.concatenate([residuals, steps]))
    left, alone = power[: len(rounds)].sum(), power[len(rounds) :].sum()
    if partial is None:
        left, alone = left / len(rounds), alone / len(steps)
        return left / jnp.maximum(alone, noise_lib.LEAST)
    assert both is not None
    alone = alone / jnp.maximum(jnp.sum(both), 1)
    return left / jnp.sum(partial.there) / alone


def reported(
    misfit: jax.Array, noise: noise_lib.Noise, residuals: jax.Array, changed: jax.Array
) -> jax.Array:
    """The misfit that is reported: of what is left as a share of the changes at most.

    Messages of clients that step on all of their rows, or hardly at all, are much alike:
    what a search leaves is many times their differences, and may be next to nothing still.
    With the rows of others, or another rate, it is half of the changes, or all.
    """
    if noise.partial is not None:
        residuals, changed = (r * noise.partial.there for r in (residuals, changed))
    share = of_changes(residuals, changed)
    changes = jnp.any(changed != 0)
    return jnp.where(changes, jnp.minimum(misfit, share), misfit)


def of_changes(
    residuals: jax.Array, changed: jax.Array, rounding: jax.Array | None = None
) -> jax.Array:
    """What is left as a share of the changes, in units of next to nothing, or of rounding.

    The misfit of rows whose messages hold no noise: there any difference is one of models.
    """
    left, whole = (jnp.square(each).sum() for each in (residuals, changed))
    least = jnp.maximum(_NEXT_TO_NOTHING**2 * whole, jnp.finfo(left.dtype).tiny)
    if rounding is not None:  # evenly spread between two numbers
        least = jnp.maximum(least, jnp.square(rounding).sum() / 12)
    return left / least
