"""What a run says at its end, and what it writes for every row."""

import csv
import json
import shlex

import numpy as np
import pytest
from rich.table import Table

from experiments.aia import client_table, closing
from experiments.aia.program import PROGRAM
from experiments.report import cards, cases, in_short
from fljax import fit, results


@pytest.mark.slow
def test_what_does_not_apply_is_left_out_of_the_standard_attacks(run, tmp_path):
    code, out, _ = run("--attack_kinds=standard", "--record=last",
                       "--data_sensitive=bmi")  # fmt: skip
    assert code == 0
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    attacks = {row.attack for row in rows}
    assert "model" in attacks and not attacks & {"grad", "trajectory"}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    why = manifest["not_run"]["run"]
    assert list(why) == ["linear_inversion", "trajectory"]
    assert "--record" in why["trajectory"]
    assert "strongest attack, trajectory, was not run: --record" in " ".join(
        out.split()
    )


def test_an_attack_that_is_named_is_not_left_out(run):
    told = ("--attack_kinds=standard,linear_inversion", "--client_optimiser=adam")
    code, _, errors = run(*told)
    assert code == 2 and "--attack_kinds: linear_inversion: needs clients" in errors


@pytest.mark.slow
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
    assert flags[-1] == "--defense=dp_sgd(clip=0.1|1|10|100, epsilon=8)"
    assert not any(flag.startswith("--run_dir") for flag in flags)
    parsed(PROGRAM, *flags)


@pytest.mark.parametrize("lines", [5, 60])
def test_what_leaks_stands_where_it_is_seen(lines):
    table = Table("attack")
    for number in range(lines):
        table.add_row(str(number))
    said = closing.in_order(["leaks"], [table, Table()], ["fit"])
    assert (said[0] == "leaks") == (lines < 40)
    assert said[-1] == "fit" and said.count("leaks") == 1 and len(said) == 4


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


def _two_clients(row, ours):
    """A large and a small client, and totals over the rows as in the table."""
    values = {
        ("majority", "baseline"): (50, 70),
        ("imputation", "baseline"): (60, 80),
        ("model", "passive"): ours,
        ("model_strangers", "passive"): (50, 60),
    }
    rows = []
    for (attack, setting), (large, small) in values.items():
        made = row._replace(attack=attack, setting=setting)
        total = made._replace(value=(3 * large + small) / 4, n=4000)
        each = zip((large, small), (3000, 1000), strict=True)
        rows += [total] + [
            made._replace(client=client, value=value, n=n)
            for client, (value, n) in enumerate(each)
        ]
    return cards.card("run", rows, {"clients": ["site: Nord", "site: Ost"]}, None)


def test_what_is_said_without_messages_is_what_the_table_has(row):
    card = _two_clients(row, (100.0, 100.0))
    (said,) = closing.who_sees(cases.of_run(card)[0].scores[0], "smoker")
    assert "names smoker of 100.0 % [" in said
    assert "other people is right for 52.5 %" in said
    assert "from the other columns for 65.0 %; always" in said
    assert said.endswith("most frequent value for 55.0 %.")


def test_clients_of_whom_everything_is_named_are_not_a_range(row):
    ((_, said, _),) = in_short.sentences([_two_clients(row, (100.0, 100.0))])
    assert "Of each of the 2 clients 100.0 %." in said
    ((_, said, _),) = in_short.sentences([_two_clients(row, (100.0, 99.0))])
    assert "from 99.0 % in site: Ost (1000 rows) to 100.0 % in site: Nord" in said


def test_every_client_has_a_line_beside_what_needs_no_message(row):
    card = _two_clients(row, (100.0, 99.0))
    (score,) = cases.of_run(card)[0].scores
    table = client_table.of(card, score)
    assert [column.header for column in table.columns] == [
        "client", "rows", "majority", "imputation", "strangers", "model",
    ]  # fmt: skip
    cells = [[str(each) for each in column.cells] for column in table.columns]
    assert cells[0] == ["site: Nord", "site: Ost"]
    assert [each[1] for each in cells[1:]] == [
        "1000",
        "70.00",
        "80.00",
        "60.00",
        "99.00",
    ]
