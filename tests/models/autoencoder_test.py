"""The autoencoder: its shapes, its code, and that it learns."""

import jax
import numpy as np
import pytest

from fljax import models


def test_the_output_has_the_shape_of_the_image():
    model = models.autoencoder((4, 5, 3), hidden=(16, 6))
    params = jax.eval_shape(model.init, jax.random.key(0))
    image = jax.ShapeDtypeStruct((4, 5, 3), np.float32)
    assert jax.eval_shape(model.apply, params, image).shape == (4, 5, 3)
    kernels = [params[f"Dense_{i}"]["kernel"].shape for i in range(4)]
    assert kernels == [(60, 16), (16, 6), (6, 16), (16, 60)]


def test_images_go_through_the_code():
    """A code of one unit: outputs lie on lines, at most two of them, bent by ReLU."""
    model = models.autoencoder((2, 3, 1), hidden=(1,))

    @jax.jit
    def outputs(key, other):
        x = jax.random.normal(other, (20, 2, 3, 1))
        return jax.vmap(model.apply, (None, 0))(model.init(key), x)

    out = np.asarray(outputs(jax.random.key(1), jax.random.key(2))).reshape(20, 6)
    assert np.linalg.matrix_rank(out - out.mean(0), tol=1e-4) == 1


@pytest.mark.parametrize(
    ("shape", "hidden"), [((2, 2, 1), ()), ((0, 2, 1), (3,))], ids=["code", "pixels"]
)
def test_nothing_to_code_is_refused(shape, hidden):
    with pytest.raises(ValueError, match="expected sizes"):
        models.autoencoder(shape, hidden=hidden)
