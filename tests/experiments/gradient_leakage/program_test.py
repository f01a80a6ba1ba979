"""The program on digits: who leaks, what is written, and one-line errors."""

import json
import pathlib

import jax
import numpy as np
import pytest
from absl import flags

from experiments.gradient_leakage import program, published, settings
from experiments.report import finished
from fljax.driver.config import ConfigError

_SMALL = (
    "--clients=2",
    "--images=2",
    "--iterations=3",
    "--defense=none; fed_cdp(clip=4, sigma=6)",
    "--types=2",
    "--run_dir=out",
)


@pytest.fixture
def compiled_fast():
    """Programs that run once need not be fast."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.slow
@pytest.mark.long("a whole program, run once for the tests of this file")
def test_the_program_shows_who_leaks_and_writes_all(
    told, compiled_fast, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    program.PROGRAM.run(told(*_SMALL))
    out = capsys.readouterr().out
    assert "success: RMSE < 0.01" in out
    assert "out" in out
    folder = tmp_path / "out"
    assert {path.name for path in folder.iterdir()} == {
        "rows.jsonl",
        "manifest.json",
        "reconstructions.lenet.example.svg",
        "search.lenet.example.svg",
    }
    rows = finished.read(folder, ("gradient_leakage",)).rows
    mean = {(row.attack, row.metric): row.value for row in rows if row.client == "all"}
    assert mean["non_private", "attack_success"] == 1
    assert mean["non_private", "reconstruction_distance"] < 0.01
    assert mean["non_private", "attack_iterations"] <= 3
    assert mean["non_private", "label_accuracy"] == 1
    assert mean["fed_cdp", "attack_success"] == 0
    assert mean["fed_cdp", "attack_iterations"] == 3
    level = mean["mean_image", "reconstruction_distance"]
    assert mean["fed_cdp", "reconstruction_distance"] > level
    assert level < mean["seed_image", "reconstruction_distance"]
    assert "majority_class" in out
    assert 0 < mean["majority_class", "label_accuracy"] < 1
    mine = [
        r.value
        for r in rows
        if (r.attack, r.metric) == ("fed_cdp", "mse") and r.client != "all"
    ]
    assert len(mine) == 2
    assert np.mean(mine) == pytest.approx(mean["fed_cdp", "mse"])
    manifest = json.loads((folder / "manifest.json").read_text())
    found = manifest["summary"]["lenet, leakage_type=2, none"]
    least = 2 / (2 + 1.959964**2)  # Wilson
    assert found["attack_success"]["low"] == pytest.approx(least)


def test_table_7_stands_beside_a_run_on_its_data():
    reference = published.reference
    found = reference({"paper_table": "table7"}, "mnist")
    assert len(found.numbers) == 24
    key = "leakage_type=2", "fed_sdp", "reconstruction_distance"
    assert found.numbers[key].mean == 0.0008
    faces = reference({"paper_table": "table7"}, "lfw_deepfunneled")
    assert (faces.data, faces.same_data, len(faces.numbers)) == ("lfw", False, 24)
    assert found.same_data
    digits = reference({"paper_table": "table7"}, "digits")
    assert (digits.data, digits.same_data) == ("mnist", False)
    assert reference({"paper_table": "table7"}, "cifar10") is None
    assert reference({}, "mnist") is None


@pytest.mark.parametrize(("give_up", "differs"), [(300, 0), (None, 0), (3, 5)])
def test_when_a_search_ends_is_compared_with_searches_that_end_there(give_up, differs):
    flags = {"paper_table": "table7", "iterations": 300, "give_up": give_up}
    found = published.reference(flags, "mnist").numbers
    other = {key for key, number in found.items() if number.differs}
    assert len(other) == differs
    assert all(metric == "attack_iterations" for *_, metric in other)
    assert ("leakage_type=2", "non_private", "attack_iterations") not in other


_SDP = "fed_sdp(clip=4, sigma=6"


@pytest.mark.parametrize(
    ("defense", "types", "settings", "differs"),
    [
        (f"none; {_SDP})", [0, 1], {"0_1"}, ""),
        (f"{_SDP}, where=server)", [0, 1, 2], {"0", "1"}, ""),
        (f"{_SDP})", [1], {"1"}, ""),
        ("fed_sdp(clip=4.0, sigma=6.0)", [1], {"1"}, ""),
        ("fed_sdp(clip=1, sigma=6)", [0, 1], {"0_1"}, "theirs has clip=4, sigma=6"),
        ("fed_sdp(clip=4, sigma=6|1)", [0, 1], {"0_1"}, "theirs has clip=4, sigma=6"),
    ],
)
def test_numbers_stand_beside_the_papers_defense_by_the_types_that_were_run(
    defense, types, settings, differs
):
    flags = {"paper_table": "table7", "iterations": 300, "types": types}
    found = published.reference(flags | {"defense": defense}, "mnist").numbers
    beside = {
        setting.removeprefix("leakage_type="): number.differs
        for (setting, method, metric), number in found.items()
        if (method, metric) == ("fed_sdp", "attack_success") and setting[-1] != "2"
    }
    assert beside == dict.fromkeys(settings, differs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--defense=magic"], "--defense: magic: expected none, module:attribute, or"),
        (["--defense="], "--defense: an empty text: expected NAME or"),
        (["--defense=dp_sgd(clip=1, epsilon=1)"], "sigma is left to a budget"),
        (["--types=2,2"], "--types: expected each at most once"),
        (["--types=3"], "--types: expected some of 0, 1, 2"),
        (["--success_rmse=0"], "--success_rmse: expected a number > 0"),
        (["--rate=inf"], "--rate: expected a number > 0 and < inf"),
        (["--damping=inf"], "--damping: expected a number > 0 and < inf"),
        (["--pruned=1"], "--pruned: expected numbers >= 0 and < 1"),
        (["--images=3", "--batch_size=2"], "--batch_size: expected a divisor"),
        (
            ["--sought=one", "--steps=2"],
            "--sought: one image is sought behind one step",
        ),
        (["--batch_size=1"], "--images: expected at most --steps=1 batches of 1"),
        (["--round=10"], "--round: expected less than --num_rounds=10"),
        (["--data_subset=half"], "--data_subset: expected all for digits"),
        (["--clients=2000"], "--clients: expected fewer than 2000, of whom"),
        (
            ["--images=60", "--clients=1"],
            "--images: expected at most 50, the rows of a",
        ),
        (
            ["--labels=probed", "--images=1", "--attack=cpl"],
            "--labels: probed are those of cpl and of several images",
        ),
        (
            ["--labels=probed", "--types=2", "--attack=cpl"],
            "--labels: probed are those of cpl and of several images",
        ),
        (
            ["--attack=inverting_gradients", "--solver=whitened"],
            "--solver: inverting_gradients has its own",
        ),
        (
            ["--attack=dlg", "--labels=probed"],
            "--labels: probed are those of cpl and of several images, got --attack=dlg",
        ),
        (
            ["--sought=one", "--labels=probed"],
            "--labels: probed are those of cpl and of several images, got --attack=cpl",
        ),
        (["--attack=dlg", "--prior=public"], "--prior: public is for cpl and who"),
        (["--attacker=naive", "--prior=public"], "--prior: public is for cpl and who"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(told, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, flags.Error)) as error:
        program.PROGRAM.run(told("--images=2", "--run_dir=out", *arguments))
    assert message in str(error.value)
    assert "\n" not in str(error.value).strip()
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_messages_that_are_no_numbers_are_refused(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    about = (
        "--networks=cnn --types=0 --clients=3 --images=1 --iterations=3 --defense=none"
    )
    arguments = *about.split(), "--steps=3", "--rate=1e30", "--run_dir=out"
    with pytest.raises(
        ConfigError, match="--rate: a client's steps diverge with 1e.30"
    ):
        program.PROGRAM.run(told(*arguments))
    assert not (tmp_path / "out" / "rows.jsonl").exists()


def test_a_dry_run_attacks_nobody(told, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program.PROGRAM.run(told(*_SMALL, "--dry_run=true"))
    out = capsys.readouterr().out
    assert "fed_cdp(clip=4, sigma=6), leakage_type=2: 2 clients of 1 images" in out
    assert "up to 3 attack iterations of lbfgs" in " ".join(out.split())
    assert not list(tmp_path.iterdir())


def test_every_flagfile_can_be_read(told):
    found = sorted(pathlib.Path("experiments/flags").glob("gradient_leakage.*.flags"))
    assert len(found) == 6
    for path in found:
        settings.complete(told(f"--flagfile={path}"))
