"""Numbers of a defense are checked when it is made, unless they are traced."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from fljax.types import Array


def check(name: str, value, holds: Callable, expected: str) -> None:
    """Raises ValueError unless all of `value` is as expected or it is traced.

    Args:
      name: of the argument.
      value: number or array.
      holds: `(NumPy array) -> array of bool`; NaN must not hold.
      expected: what should hold, in words.
    """
    if isinstance(value, Tracer):
        return
    if not np.all(holds(np.asarray(value))):
        raise ValueError(f"{name} must be {expected}, got {value}")


LEAST_CLIP = 1e-12  # squares of what is clipped below it may vanish in float32


def check_clip(clip) -> None:
    """A norm: ValueError unless it is at least `LEAST_CLIP` and finite."""
    said = f">= {LEAST_CLIP:g} and finite"
    check("clip", clip, lambda c: (c >= LEAST_CLIP) & (c < np.inf), said)


def check_noise(name: str, value) -> None:
    """A deviation: ValueError unless it is >= 0 and finite."""
    check(name, value, lambda s: (s >= 0) & (s < np.inf), ">= 0 and finite")


def check_rate(name: str, value) -> None:
    """A rate: ValueError unless it is in (0, 1]."""
    check(name, value, lambda q: (q > 0) & (q <= 1), "in (0, 1]")


def check_positive(name: str, value) -> None:
    """ValueError unless it is > 0 and finite."""
    check(name, value, lambda b: (b > 0) & (b < np.inf), "> 0 and finite")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """A word: ValueError unless it is among the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_sampling(sampling: str, rate) -> None:
    """How units are drawn into sums, and how often."""
    check_choice("sampling", sampling, ("poisson", "fixed", "all"))
    check_rate("sampling_rate", rate)
    if sampling == "all":
        check("sampling_rate", rate, lambda q: q == 1, "1 where sampling is 'all'")


def of_client(value: Array | float, client: Array | None) -> jax.Array:
    """A client's entry `[]` of `[C]` numbers; a single number is everyone's.

    It is NaN of a client beyond them, so that what is trained with too few is no number.

    Raises:
      ValueError: for `[C]` numbers and a batch that does not say whose rows it holds.
    """
    value = jnp.asarray(value)
    if value.ndim == 0:
        return value
    if client is None:
        raise ValueError("batch.client: expected a client's number, got None")
    value = value.astype(jnp.result_type(value, jnp.float32))
    return value.at[client].get(mode="fill", fill_value=jnp.nan)
