"""What is compared with attacks: everyone's rows, imputation, strangers."""

import numpy as np
import pytest
from rich.progress import Progress

from experiments.aia import baselines, pipeline, population, program, strangers
from experiments.tabular import clients
from experiments.tabular.targets import unpooled
from fljax import verdicts
from fljax.results import Labels


@pytest.fixture
def setup(parsed):
    def make(*arguments):
        told = parsed(program.PROGRAM, "--attack_kinds=model", *arguments)
        config = program.Settings(*told)
        return pipeline.prepare(clients.load_table(config.data), config, "")

    return make


def test_everyone_is_there_once_with_the_owner(setup):
    made = setup("--partition_clients=3")
    everyone = population.of_seed(made, 0)
    counts = np.bincount(everyone.owner + 1)
    held_out = len(made.clients.datasets[0].test.y)
    assert counts.tolist() == [held_out, *made.clients.sizes[0]]
    assert everyone.x.numeric.shape == (442, made.known.public.numeric.shape[-1])
    first = everyone.value[everyone.owner == 0]
    np.testing.assert_array_equal(first, made.targets.value[0, 0, : len(first)])
    pooled = setup("--partition_clients=3", "--attack_score=pooled")
    again = population.of_seed(pooled, 0)
    np.testing.assert_array_equal(again.value, everyone.value)
    back = unpooled(pooled.targets)
    np.testing.assert_array_equal(back.value, made.targets.value)


def test_strangers_are_held_out_rows_first_and_never_the_clients(setup):
    made = setup("--partition_clients=2", "--seeds=0,1")
    drawn = strangers.draw(made)
    assert drawn.known.y.shape == made.known.y.shape
    np.testing.assert_array_equal(drawn.targets.weights, made.clients.sizes)
    np.testing.assert_array_equal(drawn.known.mask.sum(-1), made.clients.sizes)
    test = made.clients.datasets[0].test.y
    for client in (0, 1):
        some = drawn.known.y[0, client][drawn.known.mask[0, client]]
        assert sorted(some[: len(test)]) == sorted(test)
        others = made.known.y[0, 1 - client][made.known.mask[0, 1 - client]]
        assert np.isin(some[len(test) :], others).all()
    again = strangers.draw(made)
    np.testing.assert_array_equal(again.known.y, drawn.known.y)


def test_how_often_a_stranger_is_drawn_is_kept(setup):
    made = setup("--partition_clients=4")
    drawn = strangers.draw(made)
    about = Labels("aia", "diabetes", "mlp")
    (row,) = strangers.rows(about, drawn)
    mask = drawn.targets.mask[0]
    times = np.bincount(drawn.rows[0][mask])
    assert (row.attack, row.metric, row.n) == (
        "strangers", "strangers_uses", mask.sum()
    )  # fmt: skip
    assert row.value == pytest.approx(np.square(times).sum() / times.sum())
    assert 1 < row.value <= 4


def test_fewer_strangers_than_rows_are_masked(setup):
    made = setup("--partition_clients=1")
    drawn = strangers.draw(made)
    held_out = len(made.clients.datasets[0].test.y)
    assert drawn.known.mask.sum() == drawn.targets.mask.sum() == held_out
    assert not drawn.known.public.numeric[0, 0, held_out:].any()
    assert strangers.draw(setup("--attack_score=pooled")) is None


def _imputed(made, strange, shared=None):
    labels = Labels("aia", "diabetes", "mlp")
    told = made.targets, strange, shared or baselines.Shared(), Progress()
    return baselines.imputed(made, labels, *told)


@pytest.mark.parametrize("score", ["own", "pooled"])
def test_imputation_is_scored_by_client_and_by_number_of_known_rows(setup, score):
    made = setup("--partition_clients=2", f"--attack_score={score}")
    rows = _imputed(made, None).rows
    assert {row.attack for row in rows} == {verdicts.IMPUTATION}
    settings = {row.setting: row.value for row in rows if row.client == "all"}
    assert list(settings) == ["baseline", "rows_100"]
    assert settings["baseline"] > 60  # the majority has 53 %
    assert {row.client for row in rows} == {0, 1, "all"}


@pytest.mark.slow
def test_points_with_the_same_rows_are_imputed_once(setup, monkeypatch):
    counted = []
    of_clients = baselines.imputation.of_clients

    def count(*arguments, **more):
        counted.append(arguments)
        return of_clients(*arguments, **more)

    monkeypatch.setattr(baselines.imputation, "of_clients", count)
    shared = baselines.Shared()
    one = setup("--partition_clients=2")
    other = setup("--partition_clients=2", "--learning_rate=0.5", "--batch_size=8")
    assert _imputed(one, None, shared) == _imputed(other, None, shared)
    assert len(counted) == 2  # from all rows, and from 100
    _imputed(setup("--partition_clients=3"), None, shared)
    assert len(counted) == 4


@pytest.mark.slow
def test_strangers_of_a_number_are_imputed_from_others(setup):
    made = setup("--partition_clients=2", "--data_sensitive=bmi")
    strange = strangers.draw(made)
    found = _imputed(made, strange)
    mask, truth = strange.targets.mask, strange.targets.value
    apart = (found.strangers.value - truth)[mask]
    assert 0 < found.own.left[0] < truth[mask].var()
    assert np.square(apart).mean() == pytest.approx(found.own.left[0], rel=0.3)
    assert found.own.value.shape == made.targets.value.shape
    metrics = {row.metric for row in found.rows}
    assert "aia_mean_absolute_error" in metrics and "correlation" in metrics
