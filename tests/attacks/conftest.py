"""Double precision, for attacks that are exact in it."""

import jax
import pytest


@pytest.fixture
def float64():
    """JAX has it while a test runs."""
    with jax.enable_x64(True):
        yield
