"""Trajectory matching against clients that the engine trained."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, losses, models, rounds, schedule, transcript
from fljax.attacks import trajectory
from fljax.attacks.attribute import conceal, model_based, model_based_continuous
from fljax.attacks.trajectory import clients, imagined
from fljax.attacks.trajectory.imagined import Imagined
from fljax.attacks.trajectory.rules import Practice
from fljax.types import Features, Rows

_ROWS, _BATCH, _RATE = 60, 10, 0.05
_QUICK = trajectory.Settings(path_steps=6, iterations=200, batch_rounds=4)


class _Case(NamedTuple):
    loss_fn: losses.LossFn
    exchange: object
    known: object
    candidates: jax.Array
    truth: np.ndarray
    last: object
    scale: float


_SERVER = optax.sgd(1.0)
_advance = jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))


@functools.cache
def _model(width):
    """Model, loss and client: one object each, so that a training is compiled once."""
    model = models.mlp(width, hidden=(16,))
    loss_fn = losses.example_loss(model.apply, losses.squared)
    return model, loss_fn, local.sgd(loss_fn, optax.sgd(_RATE))


@functools.cache
def _case(kind="binary", num_rounds=30, seed=0):
    """Two clients, an MLP, and a target to which the attribute adds little."""
    rng = np.random.default_rng(seed)
    num = 2 * _ROWS
    public = rng.normal(size=(num, 4))
    if kind == "continuous":
        truth = rng.uniform(-1, 1, num)
        block, candidates = truth[:, None], np.array([[-1.0], [1.0]])
        effect = 1.5 * truth
    else:
        candidates = (
            np.eye(3)[:, 1:] if kind == "categorical" else np.array([[-1.0], [1.0]])
        )
        truth = rng.integers(0, len(candidates), num)
        block = candidates[truth]
        effect = block @ np.array([0.8, -0.8] if kind == "categorical" else [0.3])
    y = public @ rng.normal(size=4) + effect + rng.normal(size=num) * 0.5
    numeric = np.concatenate([public, block], axis=1).astype(np.float32)
    x = Features(jnp.asarray(numeric), jnp.zeros((num, 0), jnp.int32))
    rows = Rows(x, jnp.asarray(y, jnp.float32))
    model, loss_fn, client = _model(numeric.shape[1])
    plan = schedule.build([_ROWS, _ROWS], num_rounds=num_rounds, batch_size=_BATCH)
    run = rounds.start(model.init(jax.random.key(1)), plan, _SERVER)
    run = _advance(
        jax.random.key(2), run, rows, plan, num_rounds, local=client,
        server_optimiser=_SERVER,
    )  # fmt: skip
    seen = jax.tree.map(jnp.asarray, transcript.exchange(run.transcript, 0))
    mine = jax.tree.map(lambda leaf: leaf[:_ROWS], rows)
    known = conceal(mine.x, mine.y, jnp.ones(_ROWS, bool), width=block.shape[1])
    last = jax.tree.map(lambda s, d: s[-1] - d[-1], seen.params, seen.delta)
    scale = _RATE * _ROWS / _BATCH
    return _Case(loss_fn, seen, known, jnp.asarray(candidates, jnp.float32),
                 truth[:_ROWS], last, scale)  # fmt: skip


@functools.cache
def _compiled(loss_fn, settings, continuous):
    @jax.jit
    def run(exchange, known, candidates, scale, told):
        return trajectory.trajectory_matching(
            jax.random.key(3), loss_fn, exchange, known, candidates,
            scale=scale, continuous=continuous, settings=settings, told=told,
        )  # fmt: skip

    return run


def _attack(
    case, *, settings=_QUICK, scale=None, continuous=False, told=None, **changed
):
    case = case._replace(**changed)
    run = _compiled(case.loss_fn, settings, continuous)
    scale = case.scale if scale is None else scale
    return run(case.exchange, case.known, case.candidates, scale, told)


def _accuracy(index, case):
    return float((np.asarray(index) == case.truth).mean())


def _passive(case):
    return _accuracy(
        model_based(case.loss_fn, case.last, case.known, case.candidates).index, case
    )


@pytest.mark.long("the attack at the size at which it finds the values")
@pytest.mark.parametrize(
    "kind", ["binary", pytest.param("categorical", marks=pytest.mark.slow)]
)
def test_it_finds_what_the_last_model_does_not_tell(kind):
    case = _case(kind)
    found = _attack(case)
    assert _accuracy(found.index, case) >= 0.9
    assert _accuracy(found.index, case) >= _passive(case) + 0.05
    np.testing.assert_allclose(found.probability.sum(axis=1), 1, rtol=1e-5)
    assert found.value.shape == (_ROWS, case.candidates.shape[1])


@pytest.mark.slow
def test_a_number_is_found_better_than_by_the_last_model():
    case = _case("continuous")
    found = _attack(case, continuous=True).value[:, 0]
    passive = model_based_continuous(
        case.loss_fn, case.last, case.known, case.candidates
    )
    ours, theirs = (np.abs(np.asarray(v) - case.truth).mean() for v in (found, passive))
    assert ours < 0.6 * theirs
    assert np.abs(found).max() <= 1


def test_permuted_targets_gain_nothing():
    case = _case()
    order = np.random.default_rng(1).permutation(_ROWS)
    found = _attack(case, known=case.known._replace(y=case.known.y[order]))
    assert _accuracy(found.index, case) < 0.75


def test_another_clients_messages_gain_nothing():
    case, stranger = _case(), _case(seed=5)
    found = _attack(case, exchange=stranger.exchange)
    assert _accuracy(found.index, case) < 0.75


@pytest.mark.slow
def test_the_posterior_knows_what_it_does_not_know():
    case = _case()
    sure = np.asarray(_attack(case).probability).max(axis=1)
    few = jax.tree.map(lambda leaf: leaf[:6], case.exchange)
    unsure = np.asarray(_attack(case, exchange=few).probability).max(axis=1)
    assert sure.mean() > unsure.mean()


@pytest.mark.slow
def test_an_unknown_scale_is_found():
    case = _case()
    settings = _QUICK._replace(estimate_scale=True, iterations=600)
    found = _attack(case, scale=2 * case.scale, settings=settings)
    assert float(found.scale) == pytest.approx(case.scale, rel=0.15)
    assert _accuracy(found.index, case) > _passive(case)


@pytest.mark.slow
def test_the_first_order_version_is_cheap_and_useful():
    case = _case()
    found = _attack(case, settings=_QUICK._replace(first_order=True))
    assert _accuracy(found.index, case) > _passive(case)
    told = imagined.nothing_told(30)
    same = _attack(case, told=told._replace(path=jnp.zeros(30, bool)))
    np.testing.assert_array_equal(same.index, found.index)
    np.testing.assert_allclose(same.probability, found.probability, atol=1e-4)
    np.testing.assert_allclose(same.misfit, found.misfit, rtol=1e-3)
    assert same.simulated == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "rough"), [(Imagined(precision=2.0**-23), 0), (Imagined(), 50)]
)
def test_to_first_order_nothing_is_solved_for_or_searched_before(client, rough):
    case, few = _case(), _QUICK._replace(iterations=20)
    told = imagined.nothing_told(30)._replace(path=jnp.zeros(30, bool))

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def found(client, settings, told):
        return trajectory.trajectory_matching(
            jax.random.key(3), case.loss_fn, case.exchange, case.known, case.candidates,
            scale=case.scale, settings=settings, client=client, told=told,
        ).probability  # fmt: skip

    asked, simulated = few._replace(rough_iterations=rough), imagined.nothing_told(30)
    plain = found(Imagined(), few, told)
    np.testing.assert_allclose(found(client, asked, told), plain, atol=1e-5)
    assert np.abs(found(client, asked, simulated) - plain).max() > 1e-2


@pytest.mark.slow
def test_a_search_to_first_order_before_saves_steps():
    case, few = _case(), _QUICK._replace(iterations=12, stages=1, checkpoints=1)
    found = _attack(case, settings=few._replace(rough_iterations=200))
    alone = _attack(case, settings=few)
    assert _accuracy(found.index, case) > _accuracy(alone.index, case)
    assert found.misfit < alone.misfit


def test_a_search_to_first_order_is_only_of_what_is_so_trained():
    asked = _QUICK._replace(rough_iterations=1)
    assert imagined.begins_roughly(Imagined(), asked)
    assert not imagined.begins_roughly(Imagined(), _QUICK)
    assert not imagined.begins_roughly(Imagined(), asked._replace(first_order=True))
    assert not imagined.begins_roughly(Imagined(Practice(momentum=0.9)), asked)
    assert not imagined.begins_roughly(Imagined(Practice(proximal=0.1)), asked)
    assert not imagined.begins_roughly(Imagined(precision=1e-7), asked)


@pytest.mark.slow
def test_one_round_is_enough_to_run():
    case = _case()
    few = jax.tree.map(lambda leaf: leaf[-1:], case.exchange)
    found = _attack(case, exchange=few)
    assert np.isfinite(found.probability).all() and np.isfinite(found.misfit)


def test_what_is_in_padding_changes_nothing():
    known = _case().known
    masked = known._replace(mask=known.mask.at[-5:].set(False))
    broken = masked._replace(y=masked.y.at[-5:].set(jnp.nan))
    plain, found = (
        _attack(_case(), known=each).probability for each in (masked, broken)
    )
    np.testing.assert_array_equal(found[:-5], plain[:-5])


@pytest.mark.slow
def test_padding_changes_nothing():
    case = _case()
    plain = _attack(case)
    padded = jax.tree.map(
        lambda leaf: jnp.pad(leaf, ((0, 5), *[(0, 0)] * (leaf.ndim - 1))), case.known
    )
    padded = padded._replace(y=padded.y.at[_ROWS:].set(jnp.nan))
    found = _attack(case, known=padded)
    np.testing.assert_array_equal(found.index[:_ROWS], plain.index)


def test_a_simulation_that_diverges_falls_back_and_says_so():
    found = _attack(_case(), scale=1e12)
    assert found.simulated == 0
    assert np.isfinite(found.probability).all() and (found.index >= 0).all()


@pytest.mark.slow
def test_the_posterior_is_calibrated():
    """Over several federations and few messages, so that there is something to doubt."""
    hits, sure = [], []
    for seed in range(4):
        case = _case(seed=seed)
        few = jax.tree.map(lambda leaf: leaf[:6], case.exchange)
        found = _attack(case, exchange=few)
        hits.append(np.asarray(found.index) == case.truth)
        sure.append(np.asarray(found.probability).max(axis=1))
    assert abs(np.mean(hits) - np.mean(sure)) < 0.15


@pytest.mark.slow
def test_messages_that_are_alike_to_the_last_digit_give_a_posterior():
    """Full batches of a server that stands still: no difference holds any noise."""
    case = _case()
    first = jax.tree.map(lambda leaf: leaf[:1], case.exchange)
    own = 2.0 * case.truth[:, None] - 1
    x = jnp.concatenate([case.known.public.numeric, own], axis=1)
    rows = case.known.public._replace(numeric=x.astype(jnp.float32))
    sent = jax.tree.map(lambda leaf: leaf[0], first.params)
    slope = jax.grad(
        lambda p: jnp.mean(jax.vmap(case.loss_fn, (None, 0, 0))(p, rows, case.known.y))
    )(sent)
    alike = first._replace(delta=jax.tree.map(lambda g: _RATE * g[None], slope))
    alike = jax.tree.map(lambda leaf: jnp.repeat(leaf, 3, axis=0), alike)
    found = trajectory.trajectory_matching(
        jax.random.key(3), case.loss_fn, alike, case.known, case.candidates,
        scale=_RATE, settings=_QUICK._replace(path_steps=1, iterations=6),
        client=Imagined(precision=float(jnp.finfo(jnp.float32).eps)),
    )  # fmt: skip
    assert np.isfinite(found.probability).all() and (found.index >= 0).all()


def test_messages_that_are_sent_in_part_are_made_up_for_by_more_of_them():
    search = trajectory.Settings(iterations=120)
    asked = clients.Settings(messages=20, search=search)
    sent = np.array([60, 0, 90])
    assert clients.effort(asked, 1.0, sent) == asked
    half = clients.effort(asked, 0.5, sent)
    assert (half.messages, half.search.iterations) == (40, 240)
    all_there_are = clients.effort(asked, 0.1, sent)
    assert (all_there_are.messages, all_there_are.search.iterations) == (60, 360)
    every = asked._replace(messages=None)
    assert clients.effort(every, 0.1, sent) == every
