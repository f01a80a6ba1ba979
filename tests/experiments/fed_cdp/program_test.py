"""Fed-CDP's experiment on something small: what it writes, counts and refuses."""

import json
import pathlib

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from absl import flags

from experiments.fed_cdp import (
    averaging,
    clients,
    program,
    training,
)
from experiments.fed_cdp import setup as setup_lib
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.settings import Config, DataConfig, Settings, complete
from fljax import results
from fljax.defenses import specs
from fljax.driver.config import ConfigError

_FLAGS = sorted(pathlib.Path("experiments/flags").glob("fed_cdp.*.flags"))
_SMALL = {
    "clients": (4,), "percent": (50.0,), "num_rounds": 2, "local_steps": 2,
    "batch_size": 2, "rows_per_client": 8, "hidden": (4,), "eval_every": 1,
    "probed": 2,
}  # fmt: skip


def _told(data="breast_cancer", data_subset="all", **changes) -> Settings:
    return Settings(
        DataConfig(name=data, subset=data_subset), Config(**_SMALL | changes)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two runs of the same configuration on the table, and their rows."""
    found = []
    for name in ("first", "second"):
        folder = tmp_path_factory.mktemp("runs") / name
        program.PROGRAM.run(
            _told(
                learning_rates=(0.1, 1e-3),
                seeds=(0, 1),
                run_dir=str(folder),
            )
        )
        found.append((folder, results.read_rows(folder / "rows.jsonl")))
    return found


@pytest.mark.long("a whole program, run once for the tests of this file")
def test_a_run_writes_rows_figures_and_a_manifest(written):
    folder, rows = written[0]
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "rows.jsonl", "manifest.json", "accuracy_by_round.svg",
        "gradient_norm_by_round.svg",
    }  # fmt: skip
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["flags"]["learning_rates"] == [0.1, 1e-3]
    assert set(manifest["tuning"]["none"]) == {"0.1", "0.001"}
    (told,) = manifest["defense"].values()
    ends = [
        each["assumption"].partition("; the choice among ")[2] for each in told.values()
    ]
    assert set(ends) == {"learning rates, whose trainings share noise, is not charged"}
    evaluated = {r.setting for r in rows if r.metric == "gradient_norm"}
    assert evaluated == {"round_0", "round_1", "round_2"}
    times = manifest["ms_per_local_iteration"]["none"]
    assert set(times) == {"0", "1"} and min(times.values()) > 0
    final = {(r.attack, r.seed) for r in rows if r.metric == "accuracy_percent"}
    methods = ("non_private", "fed_cdp", "majority")
    assert final == {(method, seed) for method in methods for seed in (0, 1)}


def test_the_same_configuration_gives_the_same_numbers_to_the_bit(written):
    (_, first), (_, second) = written
    assert first == second
    assert len({r.value for r in first if r.metric == "gradient_norm"}) > 6


def test_the_rate_is_the_one_that_validates_best(written):
    folder, rows = written[0]
    tried = json.loads((folder / "manifest.json").read_text())["tuning"]
    for text in ("none", "fed_cdp(clip=4, sigma=6)"):
        (rate,) = {
            r.value for r in rows if r.defense == text and r.metric == "learning_rate"
        }
        assert tried[text][f"{rate:g}"] == max(tried[text].values())


def test_rates_can_be_compared_after_fewer_rounds(tmp_path, written):
    program.PROGRAM.run(
        _told(
            defense="none",
            learning_rates=(0.1, 1e-3),
            tuning_rounds=1,
            seeds=(0, 1),
            run_dir=str(tmp_path / "short"),
        )
    )
    rows = results.read_rows(tmp_path / "short" / "rows.jsonl")
    tried = json.loads((tmp_path / "short" / "manifest.json").read_text())["tuning"]
    (rate,) = {r.value for r in rows if r.metric == "learning_rate"}
    assert tried["none"][f"{rate:g}"] == max(tried["none"].values())
    curves = {
        (r.setting, r.seed, r.value)
        for r in rows
        if r.metric == "validation_accuracy_percent" and rate == 0.1
    }
    whole = {
        (r.setting, r.seed, r.value)
        for r in written[0][1]
        if r.metric == "validation_accuracy_percent" and r.attack == "non_private"
    }
    assert curves == whole  # both take the rate 0.1, and train all rounds with it


def test_epsilons_are_those_of_the_accounting_package(written):
    _, rows = written[0]
    found = {r.setting: r.value for r in rows if r.metric == "epsilon"}
    drawn = found["the noise that is drawn"]
    one_pass = "implemented, record: a draw per example, one pass, every round"
    assert drawn == pytest.approx(found[one_pass], rel=1e-3)
    assert found["printed, record: as printed"] < drawn
    assert not [r for r in rows if r.attack == "non_private" and r.metric == "epsilon"]


def _train(task, text, **changes):
    run = complete(_told(**changes)).run
    spec = specs.parse(text)
    setup = setup_lib.prepare(run, task, Variant((spec,), 4, 50.0, 8))
    trainer = training.Trainer(setup)
    pairs = [(0, Trial(0.1, spec))]
    return trainer.train(pairs, setup.run.num_rounds, lambda done: None)[0]


@pytest.mark.slow
def test_a_poisoned_record_is_dropped_each_time_it_is_met():
    run = complete(_told()).run
    task = clients.load(DataConfig(name="breast_cancer"), run)
    numeric = np.array(task.pool.numeric)
    numeric[task.train] = np.nan
    poisoned = task._replace(pool=task.pool._replace(numeric=numeric))
    trained = _train(poisoned, "fed_cdp(clip=4, sigma=0, mode=per_batch)")
    met = 2 * run.local_steps * run.batch_size  # of a participant, in two rounds
    np.testing.assert_array_equal(trained.evaluations.dropped, [0, met / 2, met])
    assert len(set(trained.evaluations.accuracy.tolist())) == 1  # nothing was learned


@pytest.mark.slow
def test_without_noise_and_with_a_wide_clip_fed_cdp_is_plain_training():
    run = complete(_told()).run
    task = clients.load(DataConfig(name="breast_cancer"), run)
    plain = _train(task, "none")
    clipped = _train(task, "fed_cdp(clip=1e6, sigma=0)")
    for name in ("gradient_norm", "example_norm"):
        ours = getattr(clipped.evaluations, name)
        theirs = getattr(plain.evaluations, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4)
    np.testing.assert_allclose(clipped.losses, plain.losses, rtol=1e-4)
    assert plain.losses[1] != plain.losses[0]


def test_one_less_than_the_participants_makes_their_mean_grow():
    sent = training.Counted({"w": jnp.array([8.0, -4.0])}, jnp.zeros(()))
    mean = training.Counted({"w": jnp.array([2.0, 2.0])}, jnp.array(-3.0))
    models, counts = {}, {}
    for divisor in ("participants", "one_less"):
        server = averaging.server(divisor, 5)
        changes, _ = server.update(mean, server.init(sent), sent)
        after = optax.apply_updates(sent, changes)
        models[divisor], counts[divisor] = after.params["w"].tolist(), after.dropped
    assert models == {"participants": [6.0, -6.0], "one_less": [7.5, -7.5]}  # 5 of 4
    assert counts == {"participants": 3, "one_less": 3}


def test_images_are_looked_up_as_floats_from_0_to_1():
    task = clients.load(DataConfig(name="digits"), Config())
    x = clients.look_up(jnp.asarray(task.pool), task.white, task.train[:3])
    assert x.shape == (3, 8, 8, 1)
    assert x.dtype == jnp.float32
    np.testing.assert_allclose(x * 16, task.pool[task.train[:3]], rtol=1e-6)


def test_one_half_of_cifar10_has_a_name_of_its_own(images_by_name):
    task = clients.load(DataConfig(name="cifar10", subset="half"), Config())
    assert task.name == "cifar10_half"
    assert clients.load(DataConfig(name="cifar10"), Config()).name == "cifar10_all"


@pytest.mark.parametrize("data", ["digits", "breast_cancer"])
def test_rows_that_train_tune_and_test_are_different_ones(data):
    run = complete(_told(data, hidden=Config().hidden)).run
    task = clients.load(DataConfig(name=data), run)
    parts = [task.train, task.validation, task.test]
    together = np.concatenate(parts)
    assert len(set(together.tolist())) == len(together) == len(task.labels)
    assert min(map(len, parts)) > 50
    rows, size = clients.deal(task, run, 4, 0)
    assert size == 8
    assert set(rows.x.tolist()) <= set(task.train.tolist())
    np.testing.assert_array_equal(rows.y, task.labels[rows.x])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"defense": "fed_cdp(clip=6, decay_to=-1, sigma=6)"},
            "--defense: fed_cdp: dec",
        ),
        (
            {"defense": "median; median"},
            "--defense: median: expected each defense once",
        ),
        (
            {"defense": "median + dp_sgd(clip=1, sigma=1)"},
            "--defense=median .* gradient",
        ),
        ({"batch_size": 9}, "--batch_size: expected at most --rows_per_client=8"),
        ({"tuning_rounds": 9}, "--tuning_rounds: expected at most --num_rounds=2"),
        ({"data_subset": "half"}, "--data_subset: expected all for breast_cancer"),
        ({"partition": "few_classes", "classes_per_client": 3}, "--partition=few_cl"),
        (
            {"divisor": "one_less", "percent": (25.0,)},
            "--divisor=one_less: expected at least 2 clients in a round, got 1",
        ),
        (
            {"divisor": "one_less", "participation": "poisson"},
            "--divisor=one_less: expected --participation=fixed",
        ),
        (
            {"classes_per_client": 3},
            "--classes_per_client=3: is of --partition=classes or few_classes, got rand",
        ),
        (
            {"data": "digits"},
            "--hidden=4: is of --data_name=adult or breast_cancer, got digits",
        ),
    ],
    ids=[
        "negative decay",
        "twice",
        "one place",
        "batch",
        "rounds",
        "half",
        "classes",
        "one less than one",
        "one less than by chance",
        "classes of random rows",
        "widths of a convolution",
    ],
)
def test_what_does_not_fit_together_is_one_line(changes, said, tmp_path):
    with pytest.raises(ConfigError, match=said) as stopped:
        program.PROGRAM.run(_told(**changes, run_dir=str(tmp_path / "out")))
    assert "\n" not in str(stopped.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--learning_rates=inf", "--learning_rates: expected numbers > 0 and < inf"),
        ("--percent=101", "--percent: expected numbers > 0 and <= 100"),
        ("--percent=0", "--percent: expected numbers > 0 and <= 100"),
        ("--delta=1", "--delta: expected a number > 0 and < 1"),
        ("--learning_rates=0", "--learning_rates: expected numbers > 0"),
        ("--data_name=moons", "--data_name: expected one of digits"),
    ],
)
def test_bad_values_are_refused_with_their_flag(parsed, argument, said):
    with pytest.raises((ConfigError, flags.Error)) as stopped:
        parsed(program.PROGRAM, argument)
    assert said in str(stopped.value.__context__ or stopped.value) + str(stopped.value)


@pytest.mark.parametrize("path", _FLAGS, ids=[path.stem for path in _FLAGS])
def test_flagfiles_fit_together_and_have_a_folder_of_their_name(parsed, path):
    told = parsed(program.PROGRAM, f"--flagfile={path}")
    assert complete(told).run.run_dir == f"runs/{path.stem}"


def test_a_model_that_is_not_finite_is_told(tmp_path):
    told = _told(
        learning_rates=(1e30,), seeds=(0, 3), defense="none",
        run_dir=str(tmp_path / "run"),
    )  # fmt: skip
    with pytest.warns(UserWarning, match="diverged with seeds 0, 3, .* than 1e.30$"):
        program.PROGRAM.run(told)
