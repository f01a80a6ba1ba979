"""Fewer clients in memory, and what is refused for want of it."""

import json

import jax
import numpy as np
import pandas as pd
import pytest

from experiments.aia import memory as aia_memory
from experiments.aia import program
from fljax import memory, transcript

_FOUR = "--partition_clients=4"


def _rows(folder):
    """Accuracies of each client."""
    lines = (folder / "rows.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return {
        (row["attack"], row["client"]): row["value"]
        for row in rows
        if row["client"] != "all" and row["metric"] == "aia_accuracy_percent"
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    ["model", pytest.param("model,linear_inversion", marks=pytest.mark.slow)],
)
def test_fewer_clients_and_smaller_messages_give_what_all_give(run, tmp_path, kinds):
    told = _FOUR, f"--attack_kinds={kinds}"
    assert run(*told, "--save_transcript", folder="all")[0] == 0
    whole = _rows(tmp_path / "all")
    assert len({client for _, client in whole}) == 4
    code, _, errors = run(*told, "--max_clients_in_memory=2", folder="some")
    assert code == 0, errors
    some = _rows(tmp_path / "some")
    assert len({client for _, client in some}) == 2
    assert all(
        value == pytest.approx(whole[key], rel=1e-4) for key, value in some.items()
    )

    half = ("--record_dtype=bfloat16", "--save_transcript", "--attack_kinds=model")
    code, _, errors = run(_FOUR, *half, folder="half")
    assert code == 0, errors
    found = _rows(tmp_path / "half")
    assert found == pytest.approx({key: whole[key] for key in found}, abs=2)
    kept = [
        transcript.load(tmp_path / folder / "transcript-seed0")[0]
        for folder in ("all", "half")
    ]
    for one, other in zip(*map(jax.tree.leaves, kept), strict=True):
        np.testing.assert_allclose(other, one, rtol=2**-8)
    deltas = [jax.tree.leaves(each.delta)[0] for each in kept]
    assert (deltas[0] != deltas[1]).any()


def test_kinds_that_need_everyone_are_refused(run, tmp_path):
    code, _, errors = run("--attack_kinds=model,oracle", "--max_clients_in_memory=1")
    assert code == 2
    assert "--max_clients_in_memory: oracle: only --attack_kinds=model,grad," in errors
    assert not (tmp_path / "out").exists()


def test_too_large_a_run_is_refused_before_it_trains(run, tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e8)
    code, _, errors = run("--attack_kinds=model")
    assert code == 2
    (line,) = [each for each in errors.splitlines() if "memory" in each]
    assert "0.5 GB of memory are needed, 0.1 GB are free" in line
    assert "--max_clients_in_memory" in line and "Traceback" not in errors
    assert not (tmp_path / "out").exists()


def test_the_transcript_is_estimated_to_the_byte(run):
    code, out, _ = run("--dry_run", "--num_rounds=100", "--model_hidden=500")
    assert code == 0
    # What 2 clients returned, and what they were sent, in 100 rounds.
    inputs = int(out.split(" parameters")[0].split()[-1])
    assert f"transcript {4 * 3 * 100 * inputs / 1e6:.1f} MB" in out


def test_the_values_of_a_category_are_estimated(parsed, tmp_path):
    count = np.arange(400)
    frame = pd.DataFrame({"town": [f"t{n % 80}" for n in count], "y": np.sin(count)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    told = parsed(
        program.PROGRAM, "--data_name=csv", f"--data_path={tmp_path}/rows.csv",
        "--data_target=y", "--data_sensitive=town", "--model_name=linear",
        "--attack_kinds=model", "--num_rounds=1",
    )  # fmt: skip
    setup = program.prepare(told, program.start(told).prepare.args[1]).points[0]
    rows = setup.known.y.shape[2]
    at_least = 4 * rows * 80 * 80 * 2  # inputs of each row under each value, 2 devices
    assert at_least < aia_memory.estimate(setup).attacks < 2 * at_least


def test_an_attack_of_ones_own_is_taken_to_read_all_messages(run):
    def attacks(kinds):
        code, out, _ = run("--dry_run", "--num_rounds=2000", f"--attack_kinds={kinds}")
        assert code == 0
        return float(out.split("attacks ")[1].split(" MB")[0])

    own = "fljax.attacks.attribute.last_model:SPEC"
    assert attacks(own) > 4 * attacks("model")
