"""Soft attributes: the expected loss of rows that are only softly known."""

import functools

import jax
import numpy as np
import pytest

from fljax import losses, models
from fljax.attacks.trajectory import relaxation
from fljax.types import Features, Known


def _loss(params, x, y):
    return (x.numeric @ params - y) ** 2


@pytest.mark.parametrize("count", [3, relaxation._FEW + 1], ids=["few", "many"])
def test_the_loss_is_mixed_over_all_candidates(count):
    rng = np.random.default_rng(0)
    public, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    candidates, params = rng.normal(size=(count, 1)), rng.normal(size=3)
    mask = np.arange(5) < 4
    features = Features(np.float32(public), np.zeros((5, 0), np.int32))
    known = Known(features, np.float32(y), mask)
    values = rng.dirichlet(np.ones(count), size=5)

    soft = relaxation.categorical(_loss, known, np.float32(candidates))
    each = (public @ params[:2])[:, None] + params[2] * candidates[:, 0] - y[:, None]
    expected = (values * each**2).sum(axis=1)[mask].mean()
    found = soft.mean_loss(np.float32(params), np.float32(values))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, 2, 0)], ids=str)
def test_a_start_does_not_depend_on_which_candidate_is_the_first(order):
    losses_of = np.float32([[9, 1, 3], [1, 9, 3], [0.1, 0.2, 0.1], [2, 2, 2]])
    features = Features(losses_of, np.zeros((4, 0), np.int32))
    known = Known(features, np.zeros(4, np.float32), np.arange(4) < 3)

    def start(order):
        soft = relaxation.categorical(
            lambda params, x, y: x.numeric[:3] @ x.numeric[3:],
            known,
            np.eye(3, dtype=np.float32)[list(order)],
        )
        return np.asarray(soft.relax(soft.start(None)))

    usual = start((0, 1, 2))
    np.testing.assert_allclose(start(order), usual[:, list(order)], rtol=1e-5)
    assert (usual[:2].argmin(axis=1) == losses_of[:2].argmax(axis=1)).all()
    assert usual[0, 1] > 2 * usual[0, 2]  # not a tie of all that beat the first


@pytest.mark.slow
@pytest.mark.parametrize("use_bias", [True, False], ids=["bias", "no_bias"])
def test_what_candidates_share_is_computed_as_if_it_were_not(use_bias):
    rng = np.random.default_rng(1)
    codes = np.array([[0, 3], [2, 5], [1, 4], [0, 3]], np.int32)  # 5: no one at all
    public = Features(np.float32(rng.normal(size=(4, 2))), codes)
    known = Known(public, np.float32(rng.normal(size=4)), np.arange(4) < 3)
    candidates = np.float32(np.eye(3)[:, 1:])
    model = models.mlp(4, 2, hidden=(5,), num_onehot=5, use_bias=use_bias)
    loss_fn = losses.example_loss(model.apply, losses.squared)
    args = model.init(jax.random.key(0)), np.float32(rng.dirichlet(np.ones(3), 4))

    def derivatives(loss_fn):
        soft = relaxation.categorical(loss_fn, known, candidates)
        return jax.value_and_grad(soft.mean_loss, (0, 1))(*args)

    assert (
        loss_fn.begin(args[0], jax.tree.map(lambda leaf: leaf[0], public)) is not None
    )
    shared, apart = derivatives(loss_fn), derivatives(lambda *each: loss_fn(*each))
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
        shared,
        apart,
    )
