"""An inner product of trees of arrays, and whether somebody's trees are of one form."""

from typing import Any

import jax
import jax.numpy as jnp

from fljax.types import PyTree


def dot(a: PyTree, b: PyTree) -> jax.Array:
    """Inner product `[]` over all leaves."""
    products = jax.tree.map(lambda x, y: jnp.sum(x * y), a, b)
    return jax.tree.reduce(jnp.add, products, jnp.zeros(()))


def of_form(what: str, found: PyTree, like: PyTree) -> PyTree:
    """The same, if it has the names and shapes of another tree and holds floats.

    Args:
      what: made it, for the message.
      found: of somebody else's function.
      like: what it should look like.

    Raises:
      ValueError: in one line.
    """
    expected, got = _form(like), _form(found)
    if jax.tree.structure(found) != jax.tree.structure(like) or expected != got:
        raise ValueError(f"{what}: expected {_listed(expected)}, got {_listed(got)}")
    for path, leaf in jax.tree_util.tree_leaves_with_path(found):
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            where = jax.tree_util.keystr(path)
            raise ValueError(
                f"{what}: expected floats, got {jnp.result_type(leaf)} in {where}"
            )
    return found


def of_batch(found: Any, params: PyTree) -> tuple[PyTree, Any]:
    """The gradient of a batch, if it is in the form of the model, and the mean loss.

    Raises:
      ValueError: in one line, they are something else.
    """
    if not (isinstance(found, tuple) and len(found) == 2):
        raise ValueError(
            "gradient: expected (gradient, mean loss) of a batch, got "
            f"{type(found).__name__}"
        )
    gradient, loss = of_form("gradient", found[0], params), found[1]
    if (form := _form(loss)) != {"": ()}:
        said = "gradient: expected a mean loss [] of a batch"
        raise ValueError(f"{said}, got {_listed(form)}")
    return gradient, loss


def _form(tree: PyTree) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): jnp.shape(leaf) for path, leaf in leaves}


def _listed(form: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name or 'one array'} {list(form[name])}" for name in form)
