"""Tree arithmetic against flat vectors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import tree

A = {"w": jnp.array([[1.0, 2.0], [3.0, 4.0]]), "b": (jnp.array(5.0),)}
B = {"w": jnp.array([[1.0, -1.0], [2.0, 0.5]]), "b": (jnp.array(-2.0),)}


def test_dot_is_the_inner_product_of_the_flat_vectors():
    assert tree.dot(A, B) == 1 - 2 + 6 + 2 - 10


def test_it_vmaps():
    stack = jax.tree.map(lambda a, b: jnp.stack([a, b]), A, B)
    np.testing.assert_allclose(jax.vmap(tree.dot, (0, None))(stack, A), [55.0, -3.0])


@pytest.mark.parametrize(
    "found, said",
    [
        (
            [jnp.ones(2), jnp.ones(())],
            r"\['b'\] \[\], \['w'\] \[2\], got \[0\]",
        ),
        ({"w": jnp.ones(3), "b": jnp.ones(())}, r"got \['b'\] \[\], \['w'\] \[3\]"),
        ({"w": jnp.ones(2, int), "b": jnp.ones(())}, r"floats, got int32 in \['w'\]"),
        (jnp.ones(2), r"got one array \[2\]"),
    ],
)
def test_a_tree_of_another_form_is_named(found, said):
    with pytest.raises(ValueError, match=f"^mine: .*{said}"):
        tree.of_form("mine", found, {"w": jnp.ones(2), "b": jnp.ones(())})
