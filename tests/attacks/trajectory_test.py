"""Trajectory matching against clients that the engine trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks import trajectory
from fljax.attacks.attribute import model_based_continuous
from fljax.attacks.trajectory import clients, effort
from fljax.attacks.trajectory.imagined import Imagined
from tests.attacks import matching


@pytest.mark.long("the attack at the size at which it finds the values")
@pytest.mark.parametrize(
    "kind", ["binary", pytest.param("categorical", marks=pytest.mark.slow)]
)
def test_it_finds_what_the_last_model_does_not_tell(kind):
    case = matching.case(kind)
    found = matching.attack(case)
    assert matching.accuracy(found.index, case) >= 0.9
    assert matching.accuracy(found.index, case) >= matching.passive(case) + 0.05
    np.testing.assert_allclose(found.probability.sum(axis=1), 1, rtol=1e-5)
    assert found.value.shape == (matching.ROWS, case.candidates.shape[1])


@pytest.mark.slow
def test_a_number_is_found_better_than_by_the_last_model():
    case = matching.case("continuous")
    found = matching.attack(case, continuous=True).value[:, 0]
    passive = model_based_continuous(
        case.loss_fn, case.last, case.known, case.candidates
    )
    ours, theirs = (np.abs(np.asarray(v) - case.truth).mean() for v in (found, passive))
    assert ours < 0.6 * theirs
    assert np.abs(found).max() <= 1


def test_permuted_targets_gain_nothing():
    case = matching.case()
    order = np.random.default_rng(1).permutation(matching.ROWS)
    found = matching.attack(case, known=case.known._replace(y=case.known.y[order]))
    assert matching.accuracy(found.index, case) < 0.75


def test_another_clients_messages_gain_nothing():
    case, stranger = matching.case(), matching.case(seed=5)
    found = matching.attack(case, exchange=stranger.exchange)
    assert matching.accuracy(found.index, case) < 0.75


@pytest.mark.slow
def test_the_posterior_knows_what_it_does_not_know():
    case = matching.case()
    sure = np.asarray(matching.attack(case).probability).max(axis=1)
    few = jax.tree.map(lambda leaf: leaf[:6], case.exchange)
    unsure = np.asarray(matching.attack(case, exchange=few).probability).max(axis=1)
    assert sure.mean() > unsure.mean()


@pytest.mark.slow
def test_an_unknown_scale_is_found():
    case = matching.case()
    settings = matching.QUICK._replace(estimate_scale=True, iterations=600)
    found = matching.attack(case, scale=2 * case.scale, settings=settings)
    assert float(found.scale) == pytest.approx(case.scale, rel=0.15)
    assert matching.accuracy(found.index, case) > matching.passive(case)


@pytest.mark.slow
def test_one_round_is_enough_to_run():
    case = matching.case()
    few = jax.tree.map(lambda leaf: leaf[-1:], case.exchange)
    found = matching.attack(case, exchange=few)
    assert np.isfinite(found.probability).all() and np.isfinite(found.misfit)


def test_what_is_in_padding_changes_nothing():
    known = matching.case().known
    masked = known._replace(mask=known.mask.at[-5:].set(False))
    broken = masked._replace(y=masked.y.at[-5:].set(jnp.nan))
    plain, found = (
        matching.attack(matching.case(), known=each).probability
        for each in (masked, broken)
    )
    np.testing.assert_array_equal(found[:-5], plain[:-5])


@pytest.mark.slow
def test_padding_changes_nothing():
    case = matching.case()
    plain = matching.attack(case)
    padded = jax.tree.map(
        lambda leaf: jnp.pad(leaf, ((0, 5), *[(0, 0)] * (leaf.ndim - 1))), case.known
    )
    padded = padded._replace(y=padded.y.at[matching.ROWS :].set(jnp.nan))
    found = matching.attack(case, known=padded)
    np.testing.assert_array_equal(found.index[: matching.ROWS], plain.index)


def test_a_simulation_that_diverges_falls_back_and_says_so():
    found = matching.attack(matching.case(), scale=1e12)
    assert found.simulated == 0
    assert np.isfinite(found.probability).all() and (found.index >= 0).all()


@pytest.mark.slow
def test_the_posterior_is_calibrated():
    """Over several federations and few messages, so that there is something to doubt."""
    hits, sure = [], []
    for seed in range(4):
        case = matching.case(seed=seed)
        few = jax.tree.map(lambda leaf: leaf[:6], case.exchange)
        found = matching.attack(case, exchange=few)
        hits.append(np.asarray(found.index) == case.truth)
        sure.append(np.asarray(found.probability).max(axis=1))
    assert abs(np.mean(hits) - np.mean(sure)) < 0.15


@pytest.mark.slow
def test_messages_that_are_alike_to_the_last_digit_give_a_posterior():
    """Full batches of a server that stands still: no difference holds any noise."""
    case = matching.case()
    first = jax.tree.map(lambda leaf: leaf[:1], case.exchange)
    own = 2.0 * case.truth[:, None] - 1
    x = jnp.concatenate([case.known.public.numeric, own], axis=1)
    rows = case.known.public._replace(numeric=x.astype(jnp.float32))
    sent = jax.tree.map(lambda leaf: leaf[0], first.params)
    slope = jax.grad(
        lambda p: jnp.mean(jax.vmap(case.loss_fn, (None, 0, 0))(p, rows, case.known.y))
    )(sent)
    alike = first._replace(delta=jax.tree.map(lambda g: matching.RATE * g[None], slope))
    alike = jax.tree.map(lambda leaf: jnp.repeat(leaf, 3, axis=0), alike)
    found = trajectory.trajectory_matching(
        jax.random.key(3), case.loss_fn, alike, case.known, case.candidates,
        scale=matching.RATE, settings=matching.QUICK._replace(path_steps=1, iterations=6),
        client=Imagined(precision=float(jnp.finfo(jnp.float32).eps)),
    )  # fmt: skip
    assert np.isfinite(found.probability).all() and (found.index >= 0).all()


def test_messages_that_are_sent_in_part_are_made_up_for_by_more_of_them():
    search = trajectory.Settings(iterations=120)
    asked = clients.Settings(messages=20, search=search)
    sent = np.array([60, 0, 90])
    assert effort.for_a_share(asked, 1.0, sent) == asked
    half = effort.for_a_share(asked, 0.5, sent)
    assert (half.messages, half.search.iterations) == (40, 240)
    all_there_are = effort.for_a_share(asked, 0.1, sent)
    assert (all_there_are.messages, all_there_are.search.iterations) == (60, 360)
    for messages in (None, 60):  # there are no more, which are searched longer
        every = effort.for_a_share(asked._replace(messages=messages), 0.1, sent)
        assert (every.messages, every.search.iterations) == (messages, 360)
        half = effort.for_a_share(asked._replace(messages=messages), 0.5, sent)
        assert half.search.iterations == 240
