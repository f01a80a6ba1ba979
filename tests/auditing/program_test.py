"""An audit as its users meet it: tables, files, and the wall before the truth."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from fljax import results, verdicts
from fljax.attacks import registry
from fljax.attacks.needs import Needs
from fljax.auditing import inputs, local_training, program, table
from fljax.auditing import lines as lines_lib
from fljax.driver.config import ConfigError

_ATTACKS = (
    "model", "grad", "linear_inversion", "reconstruct", "label_distribution",
    "inversion",
)  # fmt: skip


def _rows(folder, attack, metric=verdicts.ACCURACY.metric):
    found = results.read_rows(folder / "rows.jsonl")
    return {
        r.client: r.value for r in found if (r.attack, r.metric) == (attack, metric)
    }


@pytest.mark.long("a whole audit with all attacks")
def test_a_run_writes_rows_manifest_report_and_table(linear, config, capsys):
    program.PROGRAM.run(config(linear, attacks=_ATTACKS))
    folder = linear / "out"
    assert {path.name for path in folder.iterdir()} >= {
        "rows.jsonl", "manifest.json", "report.html",
    }  # fmt: skip
    said = " ".join(capsys.readouterr().out.split())
    for attack in ("model", "grad", "linear_inversion", "reconstruct"):
        assert set(_rows(folder, attack)) == {4, 7, "all"}
        assert attack in said
    assert "needs a multiclass target" in said
    assert "it is 1 step over 30 rows" in said
    manifest = json.loads((folder / "manifest.json").read_text())
    assert "beyond imputation" in manifest["verdicts"]["reconstruct"]
    assert manifest["verdicts"]["inversion"].startswith("not applicable: ")
    assert [file["name"] for file in manifest["data"]] == ["rows.csv", "seen.npz"]
    records = pd.read_csv(folder / "records.csv")
    sure = records.linear_inversion_probability
    assert list(records.row) == list(range(60)) and (sure >= 0.5).all()
    page = (folder / "report.html").read_text()
    said = "What this training leaks", "at most one in twenty", "Wilson", "Audit"
    assert all(text in page for text in said)
    assert str(linear) not in page


def test_reconstruction_is_exact_and_beats_the_last_model(linear, config):
    program.PROGRAM.run(config(linear, attacks=("model", "reconstruct")))
    assert _rows(linear / "out", "reconstruct", "determined")["all"] == 1
    assert _rows(linear / "out", "reconstruct")["all"] > 95
    low = _rows(linear / "out", "reconstruct", f"{verdicts.ACCURACY.metric}_low")["all"]
    assert low > _rows(linear / "out", "majority")["all"]


@pytest.mark.slow
def test_one_client_is_scored_by_her_rows(linear, config, audited):
    _, lines = audited(linear, client=(7,), attacks=("reconstruct",))
    (line,) = lines
    total = line.total
    assert total.n == 30 and 0 < total.low < total.value <= 100
    n, p, z = 30, total.value / 100, 1.959964
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert total.low == pytest.approx(100 * (middle - half))  # Wilson 1927
    program.PROGRAM.run(config(linear, client=(7,), attacks=("reconstruct",)))
    manifest = json.loads((linear / "out" / "manifest.json").read_text())
    assert not any("means over" in note for note in manifest["notes"])


def test_what_is_missing_about_the_training_is_said(linear, record, audited):
    record(linear / "seen", pd.read_csv(linear / "rows.csv"), about={})
    missing = "learning_rate and batch_size and local_epochs"
    _, lines = audited(linear, attacks=("trajectory", "inversion"))
    assert all(line.verdict == lines_lib.NOT_APPLICABLE for line in lines)
    assert all(missing in line.detail for line in lines)
    given = {"learning_rate": 0.1, "batch_size": 0, "local_epochs": 1}
    other = {"optimiser": "Lion", "attacks": ("trajectory",)}
    _, (line,) = audited(linear, **given, **other)
    assert line.detail == "needs clients that use sgd or adam or adamw, they use lion"
    _, (line,) = audited(linear, **given, attacks=("inversion",))
    assert line.detail.endswith("it is 1 step over 30 rows")


@pytest.mark.parametrize(
    ("about", "options", "said"),
    [
        ({}, {}, "Plain SGD is assumed"),
        ({"momentum": 0.9}, {}, "Plain SGD is assumed"),
        ({"optimiser": "SGD"}, {}, ""),
        ({"optimizer": "AdamW", "weight_decay": 0.01}, {}, ""),
        ({"client_optimiser": "adam"}, {}, ""),
        (
            {"optimiser": "sgd", "lr": 0.1},
            {},
            "'lr' of the recording's about: is learning",
        ),
        ({"algorithm": "fed_sgd"}, {}, ""),
        ({}, {"optimiser": "sgd"}, ""),
    ],
)
def test_sgd_is_never_assumed_in_silence(about, options, said, config):
    training = config(pathlib.Path(), **options).training
    assert said in "".join(local_training.notes(about, training, "seen"))
    assert bool(said) == bool(local_training.notes(about, training, "seen"))


def test_what_clients_use_is_read_from_the_description_or_told(config):
    training = config(pathlib.Path()).training
    about = {"optimizer": "AdamW", "weight_decay": 0.01}
    assert (
        local_training.read(about, training, "").rule == "adamw with weight decay 0.01"
    )
    told = config(pathlib.Path(), optimiser="SGD", momentum=0.9, weight_decay=0.0)
    assert local_training.read(about, told.training, "").rule == "sgd with momentum 0.9"
    prox = config(pathlib.Path(), learning_rate=0.1, local_steps=2).training
    about = {"algorithm": "fed_prox"}
    assert local_training.read(about, prox, "").missing == ["proximal"]
    assert not local_training.read(about | {"proximal": 0.0}, prox, "").missing


def test_a_learning_rate_may_change_from_round_to_round(config):
    training = config(pathlib.Path()).training
    about = {"learning_rate": [0.2, 0.1, 0.05]}
    found = local_training.read(about, training, "")
    assert found.learning_rate == 0.2
    np.testing.assert_allclose(found.factors(np.array([0, 2, 7])), [1, 0.25, 0.25])
    assert not local_training.read({"learning_rate": [0.2, 0.2]}, training, "").schedule
    told = config(pathlib.Path(), learning_rate=0.1).training
    assert not local_training.read(about, told, "").schedule


def test_the_defense_is_read_from_the_description_or_told(config):
    training = config(pathlib.Path()).training
    clips = "dp_sgd(clip=1|2, sigma=1)"
    read = {
        text: local_training.simulated({"defense": text}, training, "")
        for text in ("pruning(ratio=0.9)", "our own", clips)
    }
    assert [str(each) for each in read.values()] == [
        "pruning(ratio=0.9)",
        "None",
        "None",
    ]
    told = config(pathlib.Path(), defense="median").training
    assert str(local_training.simulated({"defense": "our own"}, told, "")) == "median"
    for text in ("our own", clips):
        with pytest.raises(ConfigError, match="--defense: "):
            told = config(pathlib.Path(), defense=text).training
            local_training.simulated({}, told, "")


def test_the_assumption_is_said_with_the_numbers(linear, config, record, capsys):
    program.PROGRAM.run(config(linear, attacks=("model",)))
    said = " ".join(capsys.readouterr().out.split())
    assert "Plain SGD is assumed: nothing says which" in said
    assert "--optimiser" in said and 'about={"optimiser": "sgd"}' in said


@pytest.mark.slow
def test_messages_that_are_not_finite_are_left_out_and_counted(
    linear, config, record, capsys
):
    def spoil(number, model, returned):
        if number in (3, 11):
            returned[7]["out/bias"][:] = np.nan

    record(linear / "seen", pd.read_csv(linear / "rows.csv"), change=spoil)
    program.PROGRAM.run(config(linear, attacks=("model", "reconstruct")))
    said = " ".join(capsys.readouterr().out.split())
    assert "Client 7: 2 of 12 messages hold NaN or infinity and are left out" in said
    assert _rows(linear / "out", "none", "messages_left_out")[7] == 2
    assert _rows(linear / "out", "reconstruct")["all"] > 95


@pytest.mark.slow
def test_the_command_line_refuses_in_one_line(linear):
    (linear / "seen.npz").unlink()
    command = [
        sys.executable, "-m", "fljax.audit", f"--transcript={linear / 'seen'}",
        f"--known={linear / 'rows.csv'}", "--target=y", "--sensitive=married",
        "--model=linear", "--client_column=client", f"--run_dir={linear / 'out'}",
    ]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2 and not found.stdout
    assert found.stderr == f"--transcript: no file {linear / 'seen'}.npz\n"
    assert not (linear / "out").exists()


def _replace(monkeypatch, name, run):
    spec = registry.ATTACKS[name]._replace(run=run, needs=Needs())
    monkeypatch.setitem(registry.ATTACKS, name, spec)


def test_an_audit_goes_on_where_it_was_stopped(linear, config, monkeypatch):
    def stop(view, settings):
        raise KeyboardInterrupt

    told = {"attacks": ("model", "inversion"), "controls": ()}
    chosen = config(linear, **told, checkpoint_minutes=0.0)
    _replace(monkeypatch, "inversion", stop)
    with pytest.raises(KeyboardInterrupt, match="goes on"):
        program.PROGRAM.run(chosen)
    assert not (linear / "out" / "manifest.json").exists()
    monkeypatch.undo()
    _replace(monkeypatch, "model", stop)
    program.PROGRAM.run(chosen)
    assert set(_rows(linear / "out", "model")) == {4, 7, "all"}
    assert not (linear / "out" / "unfinished").exists()


def test_a_dry_run_names_the_inputs_and_writes_nothing(linear, config, capsys):
    program.PROGRAM.run(config(linear, dry_run=True))
    said = capsys.readouterr().out
    assert "2 clients of 30 rows, 12 messages" in said
    assert "inputs of linear: age, married, height" in said
    assert not (linear / "out").exists()


def test_clients_of_a_foreign_file_have_its_names(linear, config, record, capsys):
    frame = pd.read_csv(linear / "rows.csv")
    sites = frame.client.map({4: "Süd", 7: "Nord"})
    other = frame.assign(client=sites, id=[f"p{i}" for i in range(len(frame))])
    other.loc[3, "age"] = None
    other.loc[5, "married"] = None
    other.to_csv(
        linear / "rows.csv", index=False, sep=";", decimal=",", encoding="latin-1",
        na_rep="?",
    )  # fmt: skip
    as_told = {
        "separator": ";", "decimal": ",", "encoding": "latin-1", "drop": ("id",),
        "missing_codes": ("?",), "missing": "impute", "dry_run": True,
    }  # fmt: skip
    left_out = pytest.warns(
        UserWarning, match="1 rows without married are left out; fi"
    )
    unnamed = pytest.raises(
        ConfigError, match="or a recording whose about has client_n"
    )
    with left_out, unnamed:
        program.PROGRAM.run(config(linear, **as_told))
    about = {"batch_size": None, "learning_rate": 0.1, "local_epochs": 1}
    names = {"Süd": 4, "Nord": 7, "West": 9}
    record(linear / "named", frame, about={**about, "client_names": names})
    named = as_told | {"transcript": str(linear / "named")}
    with pytest.warns(UserWarning, match="left out; filled in: age"):
        program.PROGRAM.run(config(linear, **named))
    said = capsys.readouterr().out
    assert "client 4 is client: Süd, 29 rows\nclient 7 is client: Nord, 30" in said
    assert "inputs of linear: age, married, height" in said
    chosen = config(linear, **named)
    with pytest.warns(UserWarning, match="left out"):
        owned = inputs.read(chosen.files, chosen.rows).owned
    assert owned.row.tolist() == [row for row in range(60) if row != 5]
    assert owned.client.tolist() == [4] * 29 + [7] * 30


def test_rows_of_the_adversary_are_written_as_the_others(linear, config):
    frame = pd.read_csv(linear / "rows.csv").drop(columns="client")
    frame.loc[2, ["age", "height"]] = frame.loc[3, "y"] = None
    frame.to_csv(linear / "proxy.csv", index=False, sep=";", na_rep="?")
    told = {"separator": ";", "missing_codes": ("?",), "missing": "impute"}
    rows = config(linear, **told).rows
    with pytest.warns(UserWarning, match=r"1 rows without y .*: age \(1\), height"):
        found = table.proxy_rows(str(linear / "proxy.csv"), config(linear).files, rows)
    assert len(found) == 59 and found.notna().to_numpy().all()
    with pytest.raises(ConfigError, match="--proxy: .*one column, try --separator=';'"):
        table.proxy_rows(
            str(linear / "proxy.csv"), config(linear).files, config(linear).rows
        )


_FLAGFILES = sorted(pathlib.Path("experiments/flags").glob("audit.*.flags"))


@pytest.mark.parametrize("path", _FLAGFILES, ids=lambda path: path.name)
def test_a_flagfile_parses(parsed, path):
    groups = parsed(
        program.PROGRAM, f"--flagfile={path}", "--transcript=seen", "--known=rows.csv"
    )
    assert groups[0].transcript == "seen" and groups[2].model


def test_a_required_flag_is_named(parsed):
    with pytest.raises(ConfigError, match="--known: expected text, got nothing"):
        parsed(program.PROGRAM, "--transcript=seen")
