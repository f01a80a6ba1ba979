"""Propositions 1 and 2 of Wei et al. (2021), where their numbers are known."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.fed_cdp import clients, propositions, training
from experiments.fed_cdp import setup as setup_lib
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.settings import Config, DataConfig, Settings, complete
from fljax.defenses import specs
from fljax.results import Labels
from fljax.types import Model

_POSITIONS = np.arange(4, dtype=np.int32)


def _tolerance(apply, weights, x, labels):
    """Of a model without a defense."""
    pool = setup_lib.Pool(x, labels, _POSITIONS, _POSITIONS, None)
    measure = propositions.Tolerated(
        Model(lambda key: weights, apply), None, None, specs.parse("none")
    )
    run = SimpleNamespace(
        server=SimpleNamespace(params=SimpleNamespace(params=weights))
    )
    numbers = SimpleNamespace(defense=(), rate=0.1)
    trained = SimpleNamespace(seed=jnp.uint32(0), numbers=numbers)
    return measure(run, trained, SimpleNamespace(pool=pool))


def test_of_a_linear_model_the_bound_is_what_its_margins_are():
    x = jnp.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 1.0]])
    labels = jnp.array([0, 0, 1, 0], jnp.int32)  # the last one is named wrongly
    found = _tolerance(lambda w, x: x @ w, jnp.eye(2), x, labels)
    assert found.margin == 2  # of 1, 2 and 3
    np.testing.assert_allclose(found.lipschitz, 3 * 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(found.bound, found.margin / found.lipschitz, rtol=1e-6)
    assert found.turned == 0 and found.step == 0
    assert found.accuracy[0] == 0.75  # noise within the bound of most


def test_a_bent_margin_breaks_the_bound_of_its_slope():
    def apply(weight, x):
        return jnp.stack([jnp.sqrt(jnp.abs(weight)) - x[0] / 2, 0 * x[0]])

    found = _tolerance(apply, jnp.ones(()), jnp.ones((4, 1)), jnp.zeros(4, jnp.int32))
    assert found.bound == pytest.approx(1)  # 0.5 over a slope of 0.5
    assert found.turned == 1


@pytest.mark.long("a federation is compiled and trained")
def test_the_noise_of_a_step_is_what_the_defense_draws():
    told = Settings(
        DataConfig(name="breast_cancer"),
        Config(
            clients=(4,), percent=(50.0,), num_rounds=2, local_steps=2, batch_size=2,
            rows_per_client=8, hidden=(16,), propositions=True,
        ),
    )  # fmt: skip
    run = complete(told).run
    task = clients.load(told.data, run)
    spec = specs.parse("fed_cdp(clip=4, sigma=3, mode=per_batch)")
    setup = setup_lib.prepare(run, task, Variant((spec,), 4, 50.0, 8))
    pairs = [(0, Trial(0.1, spec))]
    (trained,) = training.Trainer(setup).train(pairs, 2, lambda done: None)
    size = sum(
        leaf.size
        for leaf in jax.tree.leaves(jax.eval_shape(task.model.init, jax.random.key(0)))
    )
    expected = 0.1 * 3 * 4 / run.batch_size * size**0.5
    assert trained.tolerance.step == pytest.approx(expected, rel=0.15)
    rows = propositions.rows(
        Labels("fed_cdp", task.name, "mlp"), "fed_cdp", 0, trained.tolerance, 7
    )
    told = {(row.setting, row.metric): row.value for row in rows}
    assert told["final", "noise_of_a_step"] == pytest.approx(trained.tolerance.step)
    assert 0 <= told["noise of 1000 bounds", "noisy_accuracy_percent"] <= 100


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
