"""Membership from gradients and from losses: planted members are found, others not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fljax.attacks import membership
from fljax.attacks.membership import Shadows, Sums
from fljax.attacks.membership import losses as of_losses
from fljax.types import Rows

ROUNDS, POOL, WIDTH = 6, 24, 40
WEIGHT = 0.05


def _loss(params, x, y):
    return jnp.square(x @ params["w"] - y)


@functools.cache
def _planted(noise, seed=0):
    """Messages of half of a pool at random models, and who is there."""
    rng = np.random.default_rng(seed)
    rows = Rows(
        rng.normal(size=(POOL, WIDTH)).astype(np.float32),
        rng.normal(size=POOL).astype(np.float32),
    )
    there = rng.permutation(np.arange(POOL) % 2 == 0)
    params = {"w": rng.normal(size=(ROUNDS, WIDTH)).astype(np.float32)}
    each = jax.vmap(jax.vmap(jax.grad(_loss), (None, 0, 0)), (0, None, None))
    gradients = np.asarray(each(params, *rows)["w"])
    sent = WEIGHT * gradients[:, there].sum(axis=1)
    sent = sent + noise * sent.std() * rng.normal(size=sent.shape)
    return rows, there, Sums(params, {"w": sent.astype(np.float32)})


def _ratios(rows, seen, weight=WEIGHT, **more):
    found = membership.likelihood_ratios(
        seen, rows, np.full(POOL, weight, np.float32), 0.5, np.ones(ROUNDS),
        loss_fn=_loss, **more,
    )  # fmt: skip
    return {name: np.asarray(each) for name, each in found._asdict().items()}


@pytest.mark.parametrize(("noise", "least"), [(0.0, 1.0), (0.3, 0.97)])
def test_who_knows_the_pool_finds_the_members(noise, least):
    rows, there, seen = _planted(noise)
    found = _ratios(rows, seen)
    assert roc_auc_score(there, found["joint"]) >= least
    assert 0.6 < roc_auc_score(there, found["alone"]) <= 1
    if not noise:  # and a ratio is above 0 just for those who are there
        np.testing.assert_array_equal(found["joint"] > 0, there)


def test_messages_of_others_or_of_noise_tell_nothing():
    for told in (
        [(_planted(0.3, seed)[0], _planted(0.3, seed + 50)) for seed in range(8)],
        [(_planted(300.0, seed)[0], _planted(300.0, seed)) for seed in range(8)],
    ):
        areas = [
            roc_auc_score(there, _ratios(rows, seen)["joint"])
            for rows, (_, there, seen) in told
        ]
        assert abs(np.mean(areas) - 0.5) < 4 * 0.12 / np.sqrt(len(areas))


def test_a_scale_that_is_misjudged_is_estimated_and_what_was_not_sent_is_not_read():
    rows, there, seen = _planted(0.0)
    told = _ratios(rows, seen)
    doubled = Sums(seen.params, {"w": 1.5 * seen.delta["w"]})
    np.testing.assert_allclose(
        _ratios(rows, doubled)["alone"], told["alone"], rtol=0.02
    )
    kept = np.abs(seen.delta["w"]) > np.median(np.abs(seen.delta["w"]))
    pruned = Sums(seen.params, {"w": np.where(kept, seen.delta["w"], 0)})
    assert roc_auc_score(there, _ratios(rows, pruned)["joint"]) > 0.95


def test_clipped_gradients_are_those_of_the_defense():
    def loss(params, x, y):  # its gradient is the row
        return x @ params["w"]

    rows, _, seen = _planted(0.3)
    norms = np.linalg.norm(rows.x, axis=1)
    clip = np.median(norms)
    short = rows._replace(x=rows.x * np.minimum(1, clip / norms)[:, None])
    told = np.full(POOL, WEIGHT, np.float32), 0.5, np.full(ROUNDS, clip, np.float32)
    found = membership.likelihood_ratios(
        seen, rows, *told, loss_fn=loss, clipped="total"
    )
    wanted = membership.likelihood_ratios(seen, short, *told, loss_fn=loss)
    np.testing.assert_allclose(found.alone, wanted.alone, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.joint, wanted.joint, rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="clipped: expected one of total"):
        _ratios(rows, seen, clipped="median_of_means")


def _shadows():
    """Rows 0 and 1 have small losses just where they were there, row 2 always."""
    there = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]], bool)
    losses = np.where(there, 0.1, 1.0) * np.array([[1.0], [1.1], [0.9], [1.05]])
    losses[:, 2] = 0.1
    return Shadows(losses, there, np.full((4, 5), 0.6))


@pytest.mark.parametrize("classes", [True, False])
def test_shadows_tell_an_easy_row_from_a_member(classes):
    shadows, losses = _shadows(), np.array([0.1, 1.0, 0.1])
    lira = membership.lira(losses, shadows, classes=classes)
    assert lira[0] > 3
    assert lira[1] < -3
    assert abs(lira[2]) < 1
    population = np.array([0.3, 0.5, 0.6, 0.7, 0.9])
    rmia = membership.rmia(losses, population, shadows, classes=classes)
    assert rmia[0] > rmia[2] > rmia[1]
    np.testing.assert_array_equal(membership.threshold(losses), -losses)


def test_too_few_shadows_are_refused():
    shadows = _shadows()._replace(there=np.ones((4, 3), bool))
    with pytest.raises(ValueError, match="2 with and 2 without each candidate, got 0"):
        membership.lira(np.ones(3), shadows, classes=True)


def test_a_confidence_is_the_log_odds_of_the_right_class():
    p = np.array([0.05, 0.5, 0.99])
    found = of_losses._confidence(-np.log(p), True)
    np.testing.assert_allclose(found, np.log(p / (1 - p)))
