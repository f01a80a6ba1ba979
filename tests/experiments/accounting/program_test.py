"""The program: Table VI to the last digit, a training of one's own, and one-line errors."""

import json
import pathlib
import subprocess
import sys

import pytest
from absl import flags

from experiments.accounting import program, published, table6
from experiments.report import program as report_program
from fljax import privacy, results
from fljax.driver.config import ConfigError


@pytest.fixture
def run(tmp_path, capsys, monkeypatch, parsed):
    """Runs the program in a folder, as `--name=value` tell it; returns its output."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        program.PROGRAM.run(parsed(program.PROGRAM, *arguments))
        return capsys.readouterr().out

    return call


@pytest.fixture
def reported(parsed, capsys):
    """Makes a report; returns what it prints."""

    def call(*arguments):
        report_program.PROGRAM.run(parsed(report_program.PROGRAM, *arguments))
        return capsys.readouterr().out

    return call


def test_every_printed_epsilon_is_had_to_one_unit_of_its_last_digit():
    found = table6.printed()
    assert [entry.method for entry in found].count("fed_cdp") == 20
    assert [entry.method for entry in found].count("fed_sdp") == 10
    shifted, exact = zip(*(entry.last_digits for entry in found))
    assert max(map(abs, shifted)) == 1
    assert sum(map(bool, shifted)) == 8
    # On as many steps as there are, only those of many steps agree.
    assert sum(abs(each) <= 1 for each in exact) == 8
    assert max(map(abs, exact)) == 290


@pytest.mark.slow
def test_table_6_is_printed_written_and_reported(run, reported, tmp_path):
    flagfile = (
        pathlib.Path(program.__file__).parents[1] / "flags/accounting.table6.flags"
    )
    out = run(f"--flagfile={flagfile}", "--notes")
    found = [line for line in out.splitlines() if "within 1" in line]
    assert found[-1].startswith("n = T L + 1: 30 of 30 within 1")
    assert out.index("What each rests on") < out.index(found[0])
    for shown in (
        "30 of 30 within 1", "8 of 30 within 1", "n = T L + 1", "What each rests on",
        "No number is given for", "sampling rate q p = 0.001", "15.87", "infinite",
        "runs/accounting.table6",
    ):  # fmt: skip
        assert shown in out, shown
    rows = results.read_rows(tmp_path / "runs/accounting.table6/rows.jsonl")
    assert len(rows) == 60 + 5 * len(table6.modes())
    assert len({row._replace(value=0.0) for row in rows}) == len(rows)
    assert reported("--runs=runs").startswith("30 published numbers: 30 reproduced\n")
    page = (tmp_path / "runs/report/report.md").read_text()
    assert page.startswith("# Privacy accounting of federated training")
    assert "## Table VI, five data sets: accounting.table6" in page
    assert "| -1 in the last digit |" in page
    assert "What each epsilon rests on" in page


_SMALL = (
    "--accounting_rounds=4", "--accounting_local_steps=10", "--accounting_records=60",
    "--accounting_batch_size=6", "--accounting_clients=20",
    "--accounting_clients_per_round=5", "--accounting_sigma=3",
    "--accounting_layers=2", "--accounting_delta=1e-4",
)  # fmt: skip


def test_dp_sgd_is_fed_cdp_whose_layers_are_clipped_together(run):
    own = [each for each in _SMALL if "layers" not in each]
    found = run("--accounting_method=dp_sgd", *own)
    other = run("--accounting_method=fed_cdp", "--accounting_layers=1", *own)
    assert found == other.replace("fed_cdp:", "dp_sgd:") and "M = 1" in found
    # What would be recommended is what is implemented: it is said once, the recipe last.
    lines = [line for line in found.splitlines() if "instance" in line]
    assert "recommended" not in found and "as printed" in lines[-1]


def test_every_epsilon_says_against_whom(run):
    found = run("--accounting_method=fed_sdp", *_SMALL)
    seen = {
        what: next(line for line in found.splitlines() if what in line)
        for what in ("Poisson clients", "a fixed number", "messages seen", "as printed")
    }
    assert "models alone" in seen["Poisson clients"]
    assert "sums, and whose" in seen["a fixed number"]
    assert " messages " in seen["messages seen"].replace("messages seen", "")
    assert "not said" in seen["as printed"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fed_cdp", "fed_sdp"])
def test_ones_own_training_in_all_ways_and_at_both_levels(
    run, reported, tmp_path, method
):
    training = f"--accounting_method={method}", *_SMALL, "--accounting_draws=each"
    out = run(*training, "--target_epsilon=0.7", "--notes", "--run_dir=own")
    for shown in (
        "as printed", "as implemented", "recommended", "instance", "client",
        "smallest sigma", "most rounds", "delta = 0.0001", "C sqrt(M) = 5.657",
        "No number is given for",
    ):  # fmt: skip
        assert shown in out, shown
    manifest = json.loads((tmp_path / "own/manifest.json").read_text())
    assert manifest["experiment"] == "accounting"
    assert manifest["flags"]["accounting_sigma"] == 3
    kept = manifest["defense"]["target"]
    assert [each["statement"].split(":")[0] for each in kept] == [
        "implemented", "recommended",
    ]  # fmt: skip
    assert all(each["smallest sigma"] > 0 for each in kept)
    # With that noise the recommended mode spends the target.
    sigma = kept[1]["smallest sigma"]
    out = run(*training, f"--accounting_sigma={sigma}")
    assert any(each in out for each in ("0.7\n", "0.6999\n", "0.6998\n"))
    assert "published numbers" not in reported("--runs=own", "--out=out")


def _raises(error):
    def search(*training):
        raise error

    return search


def test_a_target_out_of_reach_is_shown_and_no_other_error_is_taken_for_it(
    run, monkeypatch
):
    training = "--accounting_method=fed_sdp", *_SMALL, "--target_epsilon=1"
    beyond = privacy.Unattainable("epsilon stays below 1")
    monkeypatch.setattr(privacy, "sigma_for", _raises(beyond))
    monkeypatch.setattr(privacy, "rounds_for", _raises(beyond))
    shown = [
        line for line in run(*training).splitlines() if line.endswith("over a million")
    ]
    assert len(shown) == 2 and all(" none " in line for line in shown)
    monkeypatch.setattr(privacy, "rounds_for", _raises(ValueError("no number")))
    with pytest.raises(ConfigError, match="^--target_epsilon: no number$"):
        run(*training)


def test_a_folder_belongs_to_one_configuration(run):
    training = "--accounting_method=fed_sdp", *_SMALL, "--run_dir=own"
    run(*training)
    with pytest.raises(ConfigError, match="own holds the results of another config"):
        run(*training, "--accounting_sigma=4")


_OWN = "--accounting_method=fed_cdp"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((_OWN, "--accounting_delta=1"), "--accounting_delta: expected a number > 0"),
        ((_OWN, "--accounting_delta=0"), "--accounting_delta: expected a number > 0"),
        ((_OWN, "--accounting_sigma=-1"), "--accounting_sigma: expected a number >= 0"),
        (
            (_OWN, "--accounting_sigma=inf"),
            "--accounting_sigma: expected a number >= 0 and < inf, got inf",
        ),
        (
            (_OWN, "--accounting_clip=0"),
            "--accounting_clip: expected a number > 0",
        ),
        (
            (_OWN, "--accounting_clip=inf"),
            "--accounting_clip: expected a number > 0 and < inf, got inf",
        ),
        ((_OWN, "--accounting_layers=0"), "--accounting_layers: expected an integer"),
        (
            (_OWN, "--accounting_batch_size=501"),
            "--accounting_batch_size must be <= records=500, got 501",
        ),
        (
            (_OWN, "--accounting_clients=9"),
            "--accounting_clients_per_round must be <= clients=9, got 100",
        ),
        ((_OWN, "--accounting_batches=shuffled"), "expected one of poisson, fixed"),
        ((_OWN, "--target_epsilon=0"), "--target_epsilon: expected a number > 0"),
        (
            (_OWN, "--target_epsilon=inf"),
            "--target_epsilon: expected a number > 0 and < inf or none, got inf",
        ),
        (("--accounting_method=fed_avg",), "expected one of dp_sgd, fed_cdp, fed_sdp"),
        (
            ("--accounting_method=dp_sgd", "--accounting_layers=2"),
            "--accounting_layers: dp_sgd clips all layers together",
        ),
        (
            ("--accounting_method=fed_sdp", "--accounting_batches=fixed"),
            "--accounting_batches: fed_sdp does not depend on batches",
        ),
        (
            ("--accounting_method=fed_sdp", "--accounting_copies=2"),
            "--accounting_copies: fed_sdp does not depend on copies",
        ),
        (
            (_OWN, "--accounting_copies=2", "--accounting_batches=without_replacement"),
            "--accounting_copies: nothing is known of copies with",
        ),
        (("--accounting_sigma=3",), "--accounting_sigma: needs --accounting_method"),
        (("--target_epsilon=1",), "--target_epsilon: needs --accounting_method"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_what_cannot_be_used_is_one_line(run, arguments, message):
    with pytest.raises((ConfigError, flags.Error)) as error:
        run(*arguments)
    assert message in str(error.value)


@pytest.mark.slow
def test_the_command_refuses_in_one_line():
    done = subprocess.run(
        [sys.executable, "-m", "experiments.accounting", _OWN, "--accounting_delta=2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "--accounting_delta: expected a number > 0 and < 1, got 2.0"
    ]


def test_the_table_is_stored_with_its_last_digit():
    beside = published.of_run({"accounting_method": None}, "any")
    assert len(beside.numbers) == 30
    assert {number.unit for number in beside.numbers.values()} == {1e-4}
    assert published.of_run({"accounting_method": "fed_cdp"}, "any") is None
