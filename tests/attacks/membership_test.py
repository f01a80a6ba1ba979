"""Membership from gradients and from losses: planted members are found, others not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from fljax.attacks import membership
from fljax.attacks.membership import Shadows, Sums
from fljax.attacks.membership import losses as of_losses
from fljax.types import Rows

ROUNDS, POOL, WIDTH, OTHERS = 6, 24, 40, 60
WEIGHT = 0.05


def _loss(params, x, y):
    return jnp.square(x @ params["w"] - y)


def _drawn(count, seed):
    rng = np.random.default_rng([seed, count])
    x, y = rng.normal(size=(count, WIDTH)), rng.normal(size=count)
    return Rows(x.astype(np.float32), y.astype(np.float32))


def _gradients(params, rows):
    each = jax.vmap(jax.vmap(jax.grad(_loss), (None, 0, 0)), (0, None, None))
    return WEIGHT * np.asarray(each(params, *rows)["w"])


@functools.cache
def _planted(noise, seed=0, share=0.5):
    """Messages of some of a pool at random models, and who is there."""
    rng, rows = np.random.default_rng(seed), _drawn(POOL, seed)
    there = rng.permutation(np.arange(POOL) < share * POOL)
    params = {"w": rng.normal(size=(ROUNDS, WIDTH)).astype(np.float32)}
    sent = _gradients(params, rows)[:, there].sum(axis=1)
    sent = sent + noise * sent.std() * rng.normal(size=sent.shape)
    return rows, there, Sums(params, {"w": sent.astype(np.float32)})


def _ratios(rows, seen, weight=WEIGHT, share=0.5, **more):
    found = membership.likelihood_ratios(
        seen, rows, _drawn(OTHERS, 9), np.full(POOL, weight, np.float32), share,
        np.ones(ROUNDS), loss_fn=_loss, **more,
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


def test_who_knows_one_row_is_told_nothing_of_the_other_candidates():
    rows, _, seen = _planted(0.3)
    others = jax.tree.map(
        lambda a, b: np.concatenate([a[:1], b[1:]]), rows, _drawn(POOL, 5)
    )
    found, again = _ratios(rows, seen), _ratios(others, seen)
    np.testing.assert_allclose(again["alone"][0], found["alone"][0], rtol=1e-4)
    assert abs(again["joint"][0] - found["joint"][0]) > 0.1


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_ratio_is_that_of_two_normal_distributions(share):
    noise = 1.0
    rows, there, seen = _planted(noise, 0, share)
    gradients = np.hstack(_gradients(seen.params, rows).astype(float))
    told = np.concatenate(seen.delta["w"].astype(float))
    clean = _gradients(seen.params, rows)[:, there].sum(axis=1)
    own = np.square(noise * clean.std()) * np.eye(len(told))
    wanted = []
    for row in range(POOL):
        others = np.delete(gradients, row, axis=0)
        normal = stats.multivariate_normal(
            share * others.sum(axis=0), own + share * (1 - share) * others.T @ others
        )
        wanted.append(normal.logpdf(told - gradients[row]) - normal.logpdf(told))
    found = _ratios(rows, seen, share=share)["joint"]  # noise and scale are estimated
    assert np.corrcoef(found, wanted)[0, 1] > 0.97
    slope, offset = np.polyfit(wanted, found, 1)
    assert 0.75 < slope < 1.33
    assert abs(offset) < 0.1 * np.std(wanted)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_nobody_tosses_a_coin_ratios_are_numbers(share):
    rows, _, seen = _planted(0.3)
    for name, found in _ratios(rows, seen, share=share).items():
        assert np.isfinite(found).all(), name


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
    scaled = Sums(seen.params, {"w": 3 * seen.delta["w"]})
    apart = _ratios(rows, scaled, weight=2 * WEIGHT)  # 1.5 times what it is
    assert roc_auc_score(there, apart["joint"]) == 1
    assert np.corrcoef(apart["alone"], told["alone"])[0, 1] > 0.99
    kept = np.abs(seen.delta["w"]) > np.median(np.abs(seen.delta["w"]))
    pruned = Sums(seen.params, {"w": np.where(kept, seen.delta["w"], 0)})
    assert roc_auc_score(there, _ratios(rows, pruned)["joint"]) > 0.95


@pytest.mark.slow
def test_clipped_gradients_are_those_of_the_defense():
    def loss(params, x, y):  # its gradient is the row
        return x @ params["w"]

    rows, _, seen = _planted(0.3)
    norms = np.linalg.norm(rows.x, axis=1)
    clip = np.median(norms)
    short = rows._replace(x=rows.x * np.minimum(1, clip / norms)[:, None])
    told = np.full(POOL, WEIGHT, np.float32), 0.5, np.full(ROUNDS, clip, np.float32)
    found = membership.likelihood_ratios(
        seen, rows, short, *told, loss_fn=loss, clipped="total"
    )
    wanted = membership.likelihood_ratios(seen, short, short, *told, loss_fn=loss)
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


@pytest.mark.parametrize(("count", "own"), [(40, False), (100, True)])
def test_few_shadows_give_all_rows_one_variance(count, own):
    rng, classes = np.random.default_rng(0), False
    there = rng.permuted(np.arange(count)[:, None] % 2 * np.ones((1, 30)), axis=0) > 0
    spread = np.where(np.arange(30) < 15, 0.01, 1.0)  # of the rows' absolute errors
    errors = np.abs(5 - 0.02 * there + spread * rng.normal(size=(count, 30)))
    shadows = Shadows(errors**2, there, np.ones((count, 5)))
    lira = membership.lira(np.full(30, 4.98**2), shadows, classes=classes)
    assert (lira[:15].min() > 0.5) == own


def test_too_few_shadows_are_refused():
    shadows = _shadows()._replace(there=np.ones((4, 3), bool))
    with pytest.raises(ValueError, match="2 with and 2 without each candidate, got 0"):
        membership.lira(np.ones(3), shadows, classes=True)


def test_a_confidence_is_the_log_odds_of_the_right_class():
    p = np.array([0.05, 0.5, 0.99])
    found = of_losses._confidence(-np.log(p), True)
    np.testing.assert_allclose(found, np.log(p / (1 - p)))
