"""What a run says at its end, and what it writes for every row."""

import csv
import json
import shlex

import numpy as np
import pytest

from experiments.aia.program import PROGRAM
from fljax import fit, results


def test_what_does_not_apply_is_left_out_of_the_standard_attacks(run, tmp_path):
    code, out, _ = run("--attack_kinds=standard", "--client_optimiser=adam",
                       "--learning_rate=1e-3", "--data_sensitive=bmi")  # fmt: skip
    assert code == 0
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    attacks = {row.attack for row in rows}
    assert "model" in attacks and not attacks & {"grad", "trajectory"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    why = manifest["not_run"]["run"]
    assert list(why) == ["grad", "linear_inversion", "trajectory"]
    assert "they use adam" in why["trajectory"]
    assert "strongest attack, trajectory, was not run: needs clients" in " ".join(
        out.split()
    )


def test_an_attack_that_is_named_is_not_left_out(run):
    told = ("--attack_kinds=standard,trajectory", "--client_optimiser=adam")
    code, _, errors = run(*told)
    assert code == 2 and "--attack_kinds: trajectory: needs clients" in errors


def test_guesses_are_written_for_every_row_without_the_truth(run, tmp_path):
    code, out, _ = run("--attack_kinds=model", "--save_guesses", "--seeds=3,5")
    assert code == 0
    with open(tmp_path / "out" / "guesses.csv") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0])[:5] == ["point", "seed", "client", "row", "model (passive)"]
    assert len(lines) == 2 * 397
    assert {line["seed"] for line in lines} == {"3", "5"}
    assert {line["model (passive)"] for line in lines} <= {"1", "2"}
    assert "variation explained by the last model sent" in out


def test_the_command_for_a_leak_says_what_differs_and_can_be_read(
    run, tmp_path, parsed
):
    told = ("--attack_kinds=model", "--seeds=3,5", "--partition_clients=3")
    assert run(*told)[0] == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    python, _, module, *flags = shlex.split(manifest["what_to_do"])
    assert (python, module) == ("python", "experiments.aia")
    assert "--seeds=3,5" in flags and "--partition_clients=3" in flags
    assert flags[-1] == "--defense=dp_sgd(clip=0.1|1|10|100, epsilon=4)"
    assert not any(flag.startswith("--run_dir") for flag in flags)
    parsed(PROGRAM, *flags)


@pytest.mark.parametrize(
    ("task", "y", "loss", "share"),
    [
        ("regression", [0.0, 2.0, 4.0, 9.0], 2 / 3, 75.0),
        ("binary", [0, 1, 0, 9], 0.5 * np.log(2), 8.2),
        ("regression", [1.0, 1.0, 1.0, 9.0], 1.0, np.nan),
    ],
    ids=["variance", "entropy", "constant"],
)
def test_what_a_model_explains_is_compared_with_a_constant(task, y, loss, share):
    mask = np.array([[True, True, True, False]])
    if task == "binary":
        share = 100 * (1 - loss / -(np.log(1 / 3) / 3 + 2 * np.log(2 / 3) / 3))
    (found,) = fit.explained(np.array([loss]), np.array([y]), mask, task)
    np.testing.assert_allclose(found, share)
