"""What is done otherwise where there is a GPU or TPU."""

import jax


def used() -> bool:
    """Whether JAX computes on an accelerator, unless it is told otherwise."""
    return jax.default_backend() != "cpu"
