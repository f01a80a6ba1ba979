"""The program of whole rows: its scores, what its attack gets, and a whole run."""

import dataclasses
import json

import jax
import numpy as np
import pandas as pd
import pytest

from experiments.rows import batches, program, rounds, scores
from experiments.rows.batches import Batch
from experiments.rows.program import PROGRAM
from experiments.rows.settings import RunConfig
from experiments.tabular.settings import DataConfig
from fljax import results
from fljax.attacks import rows
from fljax.driver.config import ConfigError
from tests import truth

_SCHEMA = rows.Schema(
    groups=(rows.Group((0, 1, 2)),),
    numbers=np.array([3, 4]),
    mean=np.array([0.5, 0.3, 0.2, 40.0, 0.0]),
    scale=np.array([0.5, 0.5, 0.4, 10.0, 1.0]),
    low=np.array([18.0, -3.0]),
    high=np.array([90.0, 3.0]),
    whole=np.array([True, False]),
)
_ROWS = np.array([[1, 0, 0, 30, 0.5], [0, 1, 0, 50, -0.5], [0, 0, 1, 60, 0.0]])


@pytest.fixture
def table(tmp_path):
    draws = np.random.default_rng(0)
    count = 300
    frame = pd.DataFrame(
        {
            "job": draws.choice(list("abcdefgh"), count),
            "town": draws.choice(list("tuvwxyz"), count),
            "smoker": draws.choice(["yes", "no"], count),
            "age": draws.integers(18, 90, count),
            "ill": draws.integers(0, 2, count),
        }
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_rows_are_matched_before_cells_are_counted():
    batch = Batch(_ROWS, np.array([0, 1, 0]))
    order = [2, 0, 1]
    found = scores.score(_SCHEMA, _ROWS[order], batch.y[order], batch, 0.319)
    assert found == (100, 100, 100, 100)
    off = _ROWS + [0, 0, 0, 3, 0.3]  # within the tolerance of every number
    assert scores.score(_SCHEMA, off, batch.y, batch, 0.319) == (100, 100, 0, 0)
    one = scores.score(_SCHEMA, _ROWS[:1], 1 - batch.y[:1], batch, 0.319)
    assert one.exact == pytest.approx(100 / 3) and one.labelled == 0
    far = _ROWS + [[0, 0, 0, 4, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    assert scores.score(_SCHEMA, far, batch.y, batch, 0.319).within == (
        pytest.approx(200 / 3)
    )
    assert 100 / 3 < one.accuracy < 100


def test_a_row_that_is_found_twice_counts_once():
    batch = Batch(_ROWS, np.zeros(3))
    twice = scores.score(_SCHEMA, _ROWS[[0, 0, 0]], batch.y, batch, 0.319)
    assert twice.exact == pytest.approx(100 / 3)


def test_the_network_is_the_one_that_was_asked_for(table):
    told = DataConfig(name="csv", path=str(table), target="ill")
    asked = {"activation": "gelu", "norm": "layernorm", "initialisation": "glorot"}
    module = batches.load(told, RunConfig(**asked)).model.apply.module
    assert {name: getattr(module, name) for name in asked} == asked


def test_an_adversary_gets_columns_and_ranges_and_no_row(table):
    told = DataConfig(name="csv", path=str(table), target="ill")
    population = batches.load(told, RunConfig(hidden=(24, 24)))
    schema = population.known.schema
    assert [len(group.columns) for group in schema.groups] == [1, 7, 6]
    assert schema.whole.all() and (schema.low, schema.high) == (18, 89)
    np.testing.assert_array_equal(
        schema.read(schema.encode(population.raw).astype(float)), population.raw
    )
    batch = batches.draw(population, 4, 0, 0)
    seen = batches.one_message(population, batch, 0, 0)
    wanted = {"rows": batch.raw, "encoded": schema.encode(batch.raw)}
    assert not truth.leaks((population.known, seen), wanted)
    assert truth.leaks(batch, wanted)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("--hidden=", "--hidden: expected at least one hidden layer"),
        ("--batch_sizes=400", "--batch_sizes: expected at most 270 rows, got 400"),
        (
            "--step_rows=8",
            "--batch_sizes: expected multiples of --step_rows=8, .* got 8",
        ),
        (
            "--step_rows=3",
            "--batch_sizes: expected multiples of --step_rows=3, .* got 8",
        ),
        (
            "--step_rows=4 --local_steps=2",
            "--local_steps: expected to be left out with --step_rows",
        ),
        (
            "--num_rounds=5 --local_steps=2",
            "--local_steps=2: is of --num_rounds=0, got 5",
        ),
        ("--num_rounds=5", "--num_rounds: expected a target that is a number, got 2"),
        ("--sum_of=2", "--sum_of=2: is of --num_rounds, got 0"),
        (
            "--learning_rate=1",
            "--learning_rate: expected --local_steps, --step_rows or",
        ),
        ("--clients=2", "--clients=2: is of --num_rounds, got 0"),
        ("--norm=layernorm --step_rows=4", "--norm: expected messages of one step"),
        ("--matching_iterations=9", "--matching_iterations=9: is of --matching, got 0"),
        ("--matching=2 --step_rows=4", "--matching: expected messages of one step"),
        (
            "--activation=gelu --num_rounds=5",
            "--activation: expected messages of one step",
        ),
        (
            "--num_rounds=5 --combinations=9",
            "--combinations=9: is of --num_rounds=0, got 5",
        ),
        ("--num_rounds=5 --sum_of=7", "--sum_of: expected at most --clients=6, got 7"),
        (
            "--num_rounds=5 --sum_of=3",
            "--batch_sizes: expected multiples of --sum_of=3, got 8",
        ),
    ],
)
def test_flags_that_do_not_fit_are_refused(told, said, table, parsed, tmp_path):
    folder = tmp_path / "out"
    asked = (
        f"--data_path={table}",
        "--data_name=csv",
        "--data_target=ill",
        *told.split(),
    )
    with pytest.raises(ConfigError, match=said):
        PROGRAM.run(parsed(PROGRAM, *asked, f"--run_dir={folder}"))
    assert not (folder / "rows.jsonl").exists()


_TRAINING = RunConfig(num_rounds=6, messages=3, clients=2, hidden=(8,))


@pytest.mark.parametrize("sum_of", [1, 2])
def test_gradients_of_the_first_clients_rows_are_seen_and_no_row(sum_of):
    population = batches.load(DataConfig(name="diabetes"), RunConfig(hidden=(8,)))
    run = dataclasses.replace(_TRAINING, sum_of=sum_of)
    every = rounds.draw(population, run, 8, 0, 0)
    seen = rounds.messages(population, run, every, 0, 0)
    assert seen.rows == 8 and len(every.y) == 16 // sum_of
    assert {len(leaf) for leaf in jax.tree.leaves((seen.params, seen.message))} == {3}
    x = population.known.schema.encode(every.raw)
    assert not truth.leaks(
        (population.known, seen), {"rows": every.raw, "x": x, "y": every.y}
    )
    first = jax.tree.map(lambda leaf: leaf[0], seen.params)
    own = rows.Network(first, population.known.loss_fn).message(
        x[:8], every.y[:8], np.full(8, 1 / 8)
    )
    sent = jax.tree.map(lambda leaf: leaf[0], seen.message)
    for ours, theirs in zip(jax.tree.leaves(own), jax.tree.leaves(sent), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch_sizes": (199,)}, "--batch_sizes: expected at most 198 rows of 1 of 2"),
        ({"clients": 1000}, "--clients: expected at most 397, got 1000"),
    ],
)
def test_trainings_that_cannot_be_are_refused(change, said):
    population = batches.load(DataConfig(name="diabetes"), RunConfig(hidden=(8,)))
    with pytest.raises(ConfigError, match=said):
        rounds.check(population, dataclasses.replace(_TRAINING, **change))


@pytest.mark.slow
def test_a_training_that_diverges_is_refused():
    population = batches.load(DataConfig(name="diabetes"), RunConfig(hidden=(8,)))
    run = dataclasses.replace(_TRAINING, num_rounds=30, learning_rate=1e4)
    every = rounds.draw(population, run, 4, 0, 0)
    with pytest.raises(ConfigError, match="training diverged with 10000"):
        rounds.messages(population, run, every, 0, 0)


def test_local_steps_that_diverge_are_refused():
    population = batches.load(DataConfig(name="diabetes"), RunConfig(hidden=(8,)))
    run = RunConfig(hidden=(8,), local_steps=100, learning_rate=1e4)
    with pytest.raises(ConfigError, match="steps diverge with 10000"):
        program._attacked(run, population, 4, 0, 0)


@pytest.mark.slow
def test_whole_rows_of_a_client_are_read_from_its_rounds(parsed, tmp_path):
    PROGRAM.run(
        parsed(
            PROGRAM, "--data_name=diabetes", "--num_rounds=60", "--messages=20",
            "--batch_sizes=12", "--batches=1", "--hidden=64", "--clients=4",
            "--seeds=0,1", f"--run_dir={tmp_path / 'out'}",
        )
    )  # fmt: skip
    found = {}
    for row in results.read_rows(tmp_path / "out" / "rows.jsonl"):
        found.setdefault((row.attack, row.metric), []).append(row.value)
    assert np.mean(found["rows", "exact_rows_percent"]) > 90
    assert np.mean(found["rows", "proven_batches_percent"]) > 90
    assert np.mean(found["strangers", "cells_percent"]) < 70


@pytest.mark.slow
def test_whole_rows_of_a_table_of_ones_own_are_read(table, parsed, tmp_path):
    PROGRAM.run(
        parsed(
            PROGRAM, f"--data_path={table}", "--data_name=csv", "--data_target=ill",
            "--batch_sizes=4", "--batches=3", "--hidden=32,32", "--seeds=0,1",
            "--matching=6", "--matching_iterations=600",
            f"--run_dir={tmp_path / 'out'}",
        )
    )  # fmt: skip
    found = {}
    for row in results.read_rows(tmp_path / "out" / "rows.jsonl"):
        found.setdefault((row.attack, row.metric), []).append(row.value)
    assert np.mean(found["rows", "exact_rows_percent"]) > 90
    assert np.mean(found["strangers", "exact_rows_percent"]) < 20
    beside, guessed = (
        np.mean(found[attack, "cells_percent"])
        for attack in ("gradient_matching", "strangers")
    )
    assert guessed + 20 < beside <= np.mean(found["rows", "cells_percent"])
    spent = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert set(spent["seconds_of_a_batch"]["4"]) == {"rows", "gradient_matching"}


@pytest.mark.slow
def test_whole_rows_of_an_epoch_are_read(table, parsed, tmp_path):
    PROGRAM.run(
        parsed(
            PROGRAM, f"--data_path={table}", "--data_name=csv", "--data_target=ill",
            "--batch_sizes=9", "--step_rows=3", "--batches=3", "--hidden=32,32",
            "--seeds=0", f"--run_dir={tmp_path / 'out'}",
        )
    )  # fmt: skip
    found = {
        (row.attack, row.metric): row.value
        for row in results.read_rows(tmp_path / "out" / "rows.jsonl")
    }
    assert found["rows", "exact_rows_percent"] > 60
    assert found["rows", "proven_batches_percent"] > 60
    assert found["strangers", "exact_rows_percent"] < 20
