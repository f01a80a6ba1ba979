"""Sweeps: what the points are, and what is refused before the first one runs."""

import pytest

from experiments.aia import active_config, pipeline, program, settings
from experiments.aia.sweep import points
from experiments.tabular import settings as training
from fljax.driver.config import ConfigError

_TOLD = pipeline.Settings(
    data=training.DataConfig(),
    partition=training.PartitionConfig(),
    model=training.ModelConfig(),
    train=training.TrainConfig(),
    attack=settings.AttackConfig(),
    active=active_config.ActiveConfig(),
    oracle=active_config.OracleConfig(),
    trajectory=settings.TrajectoryConfig(),
    defense=training.DefenseConfig(),
    run=settings.RunConfig(),
)


@pytest.mark.parametrize("text", ["", "  "])
def test_without_a_sweep_there_is_one_point_without_label(text):
    assert list(points(_TOLD, text)) == [("", _TOLD)]


def test_points_are_labelled_by_their_first_assignment_and_change_only_what_is_named():
    text = "batch_size=64 learning_rate=0.1; batch_size=128"
    first, second = points(_TOLD, text)
    assert [first[0], second[0]] == ["batch_size=64", "batch_size=128"]
    assert (first[1].train.batch_size, first[1].train.learning_rate) == (64, 0.1)
    assert second[1].train == training.TrainConfig(batch_size=128)
    assert second[1]._replace(train=_TOLD.train) == _TOLD


@pytest.mark.parametrize("text", ["fraction=0.5 participation=uniform", ""])
def test_the_order_of_flags_in_a_point_is_all_one(text):
    either = " ".join(reversed(["fraction=0.5", "participation=uniform"]))
    ((_, found),) = points(_TOLD, text or either)
    assert (found.train.fraction, found.train.participation) == (0.5, "uniform")


@pytest.mark.parametrize(
    "assignment, group, field, value",
    [
        ("local_steps=5", "train", "local_steps", 5),
        ("local_steps=none", "train", "local_steps", None),
        ("batch_size=none", "train", "batch_size", None),
        ("shuffle=false", "train", "shuffle", False),
        ("client_optimiser=adam", "train", "client_optimiser", "adam"),
        ("learning_rate=1", "train", "learning_rate", 1.0),
        ("partition_clients=4", "partition", "clients", 4),
        ("model_hidden=64,32", "model", "hidden", (64, 32)),
        ("model_name=linear", "model", "name", "linear"),
        ("attack_kinds=model", "attack", "kinds", ("model",)),
        ("active_start=20", "active", "start", 20),
        ("active_report=5,25", "active", "report", (5, 25)),
        ("oracle_epochs=3", "oracle", "epochs", 3),
        ("delta=1e-6", "defense", "delta", 1e-6),
    ],
)
def test_every_kind_of_flag_can_be_swept(assignment, group, field, value):
    ((label, at),) = points(_TOLD, assignment)
    got = getattr(getattr(at, group), field)
    assert label == assignment
    assert (got, type(got)) == (value, type(value))


def test_a_defense_may_have_spaces_and_is_labelled_as_in_the_rows():
    text = "defense= fed_cdp(clip=4.0, sigma=6)  +pruning( ratio = 0.30 ) delta=1e-6"
    ((label, at),) = points(_TOLD, text.replace("= fed", "=fed"))
    assert label == "defense=fed_cdp(clip=4, sigma=6) + pruning(ratio=0.3)"
    assert at.defense.delta == 1e-6


def test_a_flag_that_needs_another_is_swept_with_it():
    text = "partition_column=state partition_kind=by_column"
    ((label, at),) = points(_TOLD, text)
    assert (label, at.partition.column) == ("partition_column=state", "state")
    with pytest.raises(ConfigError, match="--sweep: --partition_column=state: is of"):
        list(points(_TOLD, "partition_column=state"))


REFUSED = {
    "client_optimiser=sgdd": "--client_optimiser: expected one of sgd, momentum, adam",
    "learning_rate=-1": "--learning_rate: expected a number > 0, got -1.0",
    "batch_size=0": "--batch_size: expected an integer >= 1 or none, got 0",
    "batch_size=x": "--batch_size: expected an integer >= 1 or none, got 'x'",
    "num_rounds=none": "--num_rounds: expected an integer >= 1 and <= 1000000, got 'none'",
    "attack_grad_temperature=nan": "--attack_grad_temperature: expected a number > 0",
    "attack_kinds=model,grid": "--attack_kinds: expected some of standard, model",
    "model_hidden=8,0": "--model_hidden: expected integers >= 1",
    "batchsize=3": "'batchsize' is no flag that can be swept",
    "grad_temperature=1": "'grad_temperature' is no flag that can be swept",
    "train_batch_size=3": "'train_batch_size' is no flag that can be swept",
    "model___doc__=x": "'model___doc__' is no flag that can be swept",
    "data_name=toy": "'data_name' is no flag that can be swept",
    "seeds=1": "'seeds' is no flag that can be swept",
    "batch_size": "expected flag=value, got 'batch_size'",
    "batch_size=8;": "expected 'flag=value' between semicolons",
    f"model_hidden={'1,' * 600}1": "expected a first assignment of at most 1000",
    "batch_size=8 batch_size=9": "one point gives 'batch_size' twice",
    "batch_size=8 fraction=1; batch_size=8 fraction=0.5": "begin with 'batch_size=8'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_its_flag_would_refuse_is_refused_by_name(text):
    with pytest.raises(ConfigError) as error:
        list(points(_TOLD, text))
    assert str(error.value).startswith("--sweep: ")
    assert REFUSED[text] in str(error.value)


def test_a_wrong_last_point_is_refused_before_the_first_is_yielded():
    with pytest.raises(ConfigError, match="--batch_size"):
        next(points(_TOLD, "batch_size=8; batch_size=0"))


def test_the_draws_of_a_point_are_its_own_in_any_sweep():
    grid = ["defense=none", "defense=median", "defense=none"]
    trials = program._trials(grid)
    assert len(set(trials)) == 3
    assert program._trials(grid[1:2]) == trials[1:2]
    assert all(0 <= number < 2**31 for number in trials)
