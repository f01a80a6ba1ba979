"""What solves for rows multiplies in full precision, whatever an accelerator's default."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend import core

from fljax import losses, models, precision
from fljax.attacks import attribute
from fljax.attacks.rows import annealing, forward, layers, network, polish
from fljax.types import Features, Known

_X, _Y = np.ones((4, 3), np.float32), np.zeros(4, np.float32)
_MODEL = models.mlp(3, hidden=(5, 4))
_LOSS = losses.example_loss(_MODEL.apply, losses.squared)
_PARAMS = jax.eval_shape(_MODEL.init, jax.random.key(0))
_KNOWN = Known(Features(_X[:, :2], np.zeros((4, 0), np.int32)), _Y, np.ones(4, bool))
_SEEN = (
    [layers.Layer(jnp.ones((1, 3, 5)), jnp.ones((1, 5))),
     layers.Layer(jnp.ones((1, 5, 1)), jnp.ones((1, 1)))],
    [jnp.ones((1, 4, 5)), jnp.ones((1, 6, 1))],
)  # fmt: skip


@pytest.fixture(autouse=True)
def of_an_accelerator():
    """Nothing is said from outside."""
    with jax.default_matmul_precision(None):
        yield


def _products(fun, *args) -> list:
    """Precisions of all products, those of inner functions too."""
    found = []

    def look(jaxpr):
        for equation in jaxpr.eqns:
            if equation.primitive is lax.dot_general_p:
                found.append(equation.params["precision"])
            for inner in jax.tree.leaves(
                equation.params, is_leaf=lambda leaf: isinstance(leaf, core.ClosedJaxpr)
            ):
                if isinstance(inner, core.ClosedJaxpr):
                    look(inner.jaxpr)

    look(jax.make_jaxpr(fun)(*args).jaxpr)
    assert found
    return found


def _all_full(found) -> bool:
    return all(each == (lax.Precision.HIGHEST,) * 2 for each in found)


@pytest.mark.parametrize(
    "fun",
    [
        lambda p: network.gradient(_LOSS, p, _X, _Y, np.ones(4)),
        lambda p: network._deltas(_LOSS, "TabularDense_0", p, _X, _Y),
        lambda p: polish.slopes(
            _LOSS, p, p, _X, _Y, np.arange(2), free_targets=True
        ),
        lambda p: layers._sharp(losses.squared, _SEEN, np.ones((4, 4), np.float32)),
        lambda p: forward._steps(
            _MODEL.apply.module.first_units, p, p["TabularDense_0"], _X, np.eye(3),
            np.ones((6, 2), np.float32), 2,
        ),
        lambda p: forward._units(
            lambda params, out: out @ params["Dense_0"]["kernel"], p, _X @ np.ones((3, 5))
        ),
        lambda p: annealing.annealed(
            losses.squared, _SEEN, np.ones((4, 4), np.float32),
            annealing.Bounds(-np.ones(4), np.ones(4)), np.int32(0),
        ),
        lambda p: attribute.model_based(_LOSS, p, _KNOWN, jnp.ones((2, 1))),
    ],
    ids=["gradient", "deltas", "polish", "layers", "forward", "units", "annealed",
         "last model"],
)  # fmt: skip
def test_exact_rows_are_sought_in_full_precision(fun):
    assert _all_full(_products(fun, _PARAMS))


def test_a_function_that_does_not_ask_is_told_apart():
    assert not _all_full(_products(jnp.matmul, np.eye(2), np.eye(2)))
    assert _all_full(_products(precision.full(jnp.matmul), np.eye(2), np.eye(2)))


def test_what_a_user_chose_stays(monkeypatch):
    chosen = {}
    monkeypatch.setattr(jax.config, "update", chosen.__setitem__)
    precision.use_full()
    assert chosen == {"jax_default_matmul_precision": "highest"}
    chosen.clear()
    with jax.default_matmul_precision("tensorfloat32"):
        precision.use_full()
        mild = _products(precision.by_default(jnp.matmul), np.eye(2), np.eye(2))
    assert chosen == {"jax_default_matmul_precision": "tensorfloat32"}
    assert not _all_full(mild)
    assert _all_full(_products(precision.by_default(jnp.matmul), np.eye(2), np.eye(2)))
