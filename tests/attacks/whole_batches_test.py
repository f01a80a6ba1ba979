"""Trajectory matching on clients some of whom take each step on all of their rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.adversary import LocalTraining
from fljax.attacks.trajectory import clients, matching, misfits, noise
from fljax.types import Features, Known, Transcript
from tests.attacks import regression

_SIZES, _BATCH, _RATE, _ROUNDS = (6, 40), 8, 0.1, 12
_QUICK = clients.Settings(search=matching.Settings(iterations=60))


def _trained(batch=_BATCH, epochs=1, number=False):
    """A small client beside one of several batches, and what is true of both."""
    rng = np.random.default_rng(0)
    most = max(_SIZES)
    public = rng.normal(size=(2, most, 2)).astype(np.float32)
    truth = rng.integers(0, 2, (2, most))
    if number:
        truth = rng.uniform(-1, 1, truth.shape).astype(np.float32)
    y = (public @ [1.0, -0.5] + 0.8 * truth + 0.3 * rng.normal(size=(2, most))).astype(
        np.float32
    )
    mask = np.arange(most) < np.array(_SIZES)[:, None]
    params = jax.vmap(regression.MODEL.init)(
        jax.random.split(jax.random.key(0), _ROUNDS)
    )
    whole = np.concatenate([public, truth[..., None]], axis=2).astype(np.float32)

    def mean_loss(model, x, y):
        rows = Features(x, jnp.zeros((len(x), 0), jnp.int32))
        return jax.vmap(regression.LOSS, (None, 0, 0))(model, rows, y).mean()

    slope = jax.jit(jax.grad(mean_loss))

    def message(round_, client):
        sent = jax.tree.map(lambda leaf: leaf[round_], params)
        model = sent
        for _ in range(epochs):
            order = rng.permutation(_SIZES[client])
            for rows in np.split(order, range(batch, len(order), batch)):
                step = slope(model, whole[client, rows], y[client, rows])
                model = jax.tree.map(lambda p, g: p - _RATE * g, model, step)
        return jax.tree.map(jnp.subtract, sent, model)

    every = [[message(t, c) for c in range(2)] for t in range(_ROUNDS)]
    delta = jax.tree.map(
        lambda *leaves: np.stack(leaves).reshape(_ROUNDS, 2, *leaves[0].shape),
        *(one for each in every for one in each),
    )
    ids = np.tile([5, 7], (_ROUNDS, 1))
    seen = Transcript(np.arange(_ROUNDS), ids, params, delta)
    x = Features(public, np.zeros((2, most, 0), np.int32))
    training = LocalTraining(batch, _RATE, epochs)
    return regression.view(seen, [5, 7], Known(x, y, mask), training=training), truth


@pytest.mark.slow
def test_a_client_of_one_batch_is_solved_for_beside_others():
    view, truth = _trained()
    found = clients.infer(view, _QUICK)
    assert found.misfit[0] < 3 and found.misfit[1] < 3
    np.testing.assert_array_equal(found.index[0, : _SIZES[0]], truth[0, : _SIZES[0]])
    alone = clients.infer(view.of(np.array([0])), _QUICK)
    np.testing.assert_array_equal(alone.probability[0], found.probability[0])


@pytest.mark.slow
def test_of_clients_that_take_one_step_the_first_order_is_all_there_is():
    view, truth = _trained(batch=max(_SIZES))
    first = clients.infer(view, _QUICK, first_order=True)
    hits = np.asarray(first.index == truth)[view.known.mask]
    assert hits.mean() > 0.92 and (first.misfit < 3).all()
    path = clients.infer(view, _QUICK)
    np.testing.assert_array_equal(first.probability, path.probability)


@pytest.mark.slow
def test_several_steps_on_all_rows_are_solved_for():
    view, truth = _trained(batch=max(_SIZES), epochs=5)
    found = clients.infer(view, _QUICK)
    hits = np.asarray(found.index == truth)[view.known.mask]
    assert hits.mean() > 0.92 and (found.misfit < 1).all()


@pytest.mark.slow
def test_numbers_of_clients_that_step_on_all_rows_are_read():
    view, truth = _trained(batch=max(_SIZES), number=True)
    ends = np.array([[-1.0], [1.0]], np.float32)
    found = clients.infer(view._replace(candidates=ends, continuous=True), _QUICK)
    for client, size in enumerate(_SIZES):
        guess = found.value[client, :size, 0]
        assert np.corrcoef(guess, truth[client, :size])[0, 1] > 0.85
        assert np.abs(guess).max() <= 1 and not found.probability.size


def _left(share):
    """Messages that hold no noise, and a smooth rest of a share of them."""
    rng = np.random.default_rng(0)
    along = np.linspace(1.0, 1.2, 8)[:, None]
    changed = jnp.asarray(along * rng.normal(size=20), jnp.float32)
    rest = share * along * rng.normal(size=20) + 1e-8 * rng.normal(size=(8, 20))
    residuals = jnp.asarray(rest, jnp.float32)
    return noise.estimate(residuals), residuals, changed


@pytest.mark.slow
@pytest.mark.parametrize(("share", "fits"), [(1e-3, True), (1e-1, False)])
def test_next_to_nothing_of_what_was_changed_is_no_misfit(share, fits):
    estimated, residuals, changed = _left(share)
    misfit = misfits.misfit(estimated, residuals)
    told = misfits.reported(misfit, estimated, residuals, changed)
    assert misfit > 10 and (told < 3) == fits and told <= misfit
    silent = misfits.reported(misfit, estimated, residuals, 0 * changed)
    assert silent == misfit  # of no change nothing is a share
