"""Propositions 1 and 2 of Wei et al. (2021), where their numbers are known."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.fed_cdp import clients, methods, program, propositions, published
from experiments.fed_cdp import setup as setup_lib
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.settings import Config, DataConfig, Settings, complete
from fljax import results
from fljax.defenses import specs
from fljax.federation import Training
from fljax.types import Model

_POSITIONS = np.arange(4, dtype=np.int32)
_X = jnp.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 1.0]])
_LABELS = jnp.array([0, 0, 1, 0], jnp.int32)  # of `_linear` the last is named wrongly


def _linear(weights, x):
    return x @ weights


def _of(params):
    return SimpleNamespace(
        server=SimpleNamespace(params=SimpleNamespace(params=params))
    )


def _tolerance(apply, params, x=_X, labels=_LABELS, seed=0):
    """Of a model without a defense."""
    pool = setup_lib.Pool(x, labels, _POSITIONS, _POSITIONS, None)
    measure = propositions.Tolerated(
        Model(lambda key: params, apply), None, None, specs.parse("none")
    )
    numbers = methods.Numbers(0.1, ())
    trained = SimpleNamespace(seed=jnp.uint32(seed), numbers=numbers)
    return measure(_of(params), trained, SimpleNamespace(pool=pool))


@pytest.mark.slow
def test_of_a_linear_model_the_bound_is_what_its_margins_are():
    found = _tolerance(_linear, jnp.eye(2))
    assert found.margin == 2  # of 1, 2 and 3
    np.testing.assert_allclose(found.lipschitz, 3 * 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(found.bound, found.margin / found.lipschitz, rtol=1e-6)
    assert found.turned == 0 and found.step == 0


def test_noise_of_many_bounds_names_other_classes():
    draws = [_tolerance(_linear, jnp.eye(2), seed=seed).accuracy for seed in range(4)]
    one, *_, most = np.transpose(draws)
    assert set(one) == {0.75}
    assert len(set(most)) > 1


def test_a_bent_margin_breaks_the_bound_of_its_slope():
    def apply(weight, x):
        return jnp.stack([jnp.sqrt(jnp.abs(weight)) - x[0] / 2, 0 * x[0]])

    found = _tolerance(apply, jnp.ones(()), jnp.ones((4, 1)), jnp.zeros(4, jnp.int32))
    assert found.bound == pytest.approx(1)  # 0.5 over a slope of 0.5
    assert found.turned == 1


@pytest.mark.parametrize("weights", [-jnp.eye(2), jnp.eye(2).at[0, 0].set(jnp.nan)])
def test_nothing_is_said_of_a_model_that_names_no_row_or_is_broken(weights):
    labels = jnp.array([0, 0, 1, 1], jnp.int32)
    found = _tolerance(_linear, weights, labels=labels)
    said = [found.margin, found.bound, found.turned, *found.accuracy]
    assert np.isnan(said).all()


def _told(**changes) -> Settings:
    return Settings(
        DataConfig(name="breast_cancer"),
        Config(
            clients=(4,), percent=(50.0,), num_rounds=2, local_steps=2, batch_size=2,
            rows_per_client=8, hidden=(16,), propositions=True, **changes,
        ),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "deviation"),
    [
        ("fed_cdp(clip=4, sigma=3, mode=per_batch)", 3 * 4 / 2),
        ("fed_cdp(clip=4, sigma=3)", 3 * 4 / 2**0.5),
        ("fed_cdp(clip=4, decay_to=2, sigma=3, mode=per_batch)", 3 * 2 / 2),
        ("fed_sdp(clip=4, sigma=3)", np.nan),  # on the message, not in a step
        ("gaussian(deviation=0.5)", np.nan),  # which promises nothing
        ("norm_clipping(norm=1)", 0.0),
    ],
)
def test_the_noise_of_a_step_is_what_the_defense_draws(text, deviation):
    told = _told()
    run = complete(told).run
    task = clients.load(told.data, run)
    spec = specs.parse(text)
    setup = setup_lib.prepare(run, task, Variant((spec,), 4, 50.0, 8))
    measure = propositions.Tolerated(task.model, None, setup.defended, spec)
    numbers = methods.numbers(run, setup.defended, Trial(0.1, spec))
    trained = Training(jnp.int32(0), jnp.int32(0), jnp.uint32(0), numbers=numbers)
    params = task.model.init(jax.random.key(0))
    tables = jax.tree.map(jnp.asarray, setup.tables)
    found = jax.jit(lambda params: measure(_of(params), trained, tables))(params)
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    expected = 0.1 * deviation * size**0.5
    assert found.step == pytest.approx(expected, rel=0.15, nan_ok=True)


@pytest.mark.slow
def test_a_run_has_both_propositions_and_every_rate_that_was_tried(tmp_path):
    told = _told(
        defense="none", learning_rates=(0.1, 0.01), run_dir=str(tmp_path / "r")
    )
    program.PROGRAM.run(told)
    rows = results.read_rows(tmp_path / "r" / "rows.jsonl")
    tried = {row.setting for row in rows if row.metric == published.TUNED}
    assert tried == {"rate_0.1", "rate_0.01"}
    sampled = {row.attack for row in rows if row.metric == "total_variation"}
    assert sampled == {"client_sampling", "row_sampling"}
    (bound,) = (row.value for row in rows if row.metric == propositions.BOUND)
    assert bound > 0


def test_classes_of_one_row_are_everyones_while_those_of_a_step_are_not():
    everyone = np.repeat(np.arange(10), 100)
    owned = everyone.reshape(100, 10)  # a class of each client
    rng = np.random.default_rng(0)
    found = propositions.sampling(rng, owned, everyone, per_round=5, batch_size=5)
    assert found["client_sampling", "one row"] == 0
    # Of ten classes at most five are there.
    assert found["client_sampling", "rows of a step"] > 0.5
    assert found["row_sampling", "rows of a step"] < 0.3


def test_clients_of_other_classes_than_everyone_are_seen_in_one_row():
    owned = np.zeros((4, 10), np.int64)
    everyone = np.array([0, 0, 0, 1])
    rng = np.random.default_rng(0)
    found = propositions.sampling(rng, owned, everyone, per_round=2, batch_size=5)
    assert found["client_sampling", "one row"] == 0.25
