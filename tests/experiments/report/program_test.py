"""The program as its users meet it: two files that are there, or one line."""

import json
import math
import subprocess
import sys

import pytest

from experiments.report import program
from fljax import results

program.PROGRAM.define()


def _rows(row, **fields):
    row = row._replace(model="mlp", attack="model", value=95.9, n=1204)
    row = row._replace(**fields)
    majority = row._replace(attack="majority", setting="baseline", value=79.4)
    return [
        each._replace(seed=seed, value=each.value + 0.02 * seed)
        for each in (majority, row)
        for seed in range(3)
    ]


def _write(row, folder, rows=None, figures=(), **told):
    results.write_rows(folder / "rows.jsonl", rows or _rows(row))
    flags_ = {"data_name": "medical", "paper_table": "table1"} | told
    results.write_manifest(
        folder / "manifest.json",
        {
            "experiment": "aia",
            "flags": flags_,
            "digest": "0" * 64,
            "figures": list(figures),
        },
    )
    return folder


@pytest.fixture
def run(tmp_path, monkeypatch, command):
    """Runs the program in a folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        return command(program.PROGRAM.main, *arguments)

    return call


def _files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_both_files_and_the_figures_are_written_beside_the_runs(row, run, tmp_path):
    _write(row, tmp_path / "runs" / "one")
    _write(row, tmp_path / "runs" / "two", data_name="csv")
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out == (
        "1 published number: 1 reproduced\n"
        "runs/report/report.md and runs/report/report.html are written\n"
    )
    written = _files(tmp_path / "runs" / "report")
    assert set(written) == {
        "report.md",
        "report.html",
        "figures/card1-accuracy_by_attack.svg",
        "figures/card2-accuracy_by_attack.svg",
    }
    text, page = written["report.md"].decode(), written["report.html"].decode()
    for shown in (text, page):
        assert "95.92 [95.87, 95.97]" in shown
        assert "95.90 ± 0.04" in shown
        assert "Table 1, Medical: one" in shown
    assert "](figures/card1-accuracy_by_attack.svg)" in text
    assert 'src="data:image/svg+xml;base64,' in page
    assert "http" not in page.replace("http-equiv", "")
    assert str(tmp_path) not in text + page


def test_without_published_numbers_none_are_counted(row, run, tmp_path):
    _write(row, tmp_path / "one", paper_table=None)
    _, out, _ = run("--runs=one", "--out=out")
    assert out == "out/report.md and out/report.html are written\n"


def test_figures_of_a_run_that_its_rows_do_not_give_are_shown(row, run, tmp_path):
    folder = _write(
        row,
        tmp_path / "runs" / "one",
        figures=["clusters", "accuracy_by_attack", "earlier"],
    )
    for name in ("clusters", "accuracy_by_attack"):
        (folder / f"{name}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + name.encode())
    assert run()[0] == 0
    written = _files(tmp_path / "runs" / "report")
    assert written["figures/card1-clusters.png"].endswith(b"clusters")
    assert not written["figures/card1-accuracy_by_attack.svg"].endswith(b"attack")
    assert "Clusters" in written["report.md"].decode()


def test_scalars_are_written_if_asked_for(row, run, tmp_path):
    pytest.importorskip("tensorboard")
    _write(row, tmp_path / "runs" / "one")
    for name in ("a", "b"):
        assert run("--tensorboard", f"--out={name}")[0] == 0
    (found,) = (tmp_path / "a" / "tensorboard" / "one").iterdir()
    assert "tfevents" in found.name
    assert _files(tmp_path / "a") == _files(tmp_path / "b")


def test_without_tensorboard_one_line_names_what_to_install(
    row, run, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    _write(row, tmp_path / "runs" / "one")
    said = _refused(run("--tensorboard"))
    assert said.endswith(
        "needs the package tensorboard: pip install -e '.[tensorboard]'"
    )
    assert not (tmp_path / "runs" / "report").exists()


def test_the_same_runs_give_the_same_bytes(row, run, tmp_path):
    _write(row, tmp_path / "runs" / "one")
    for name in ("a", "b"):
        assert run("--runs=runs/one", f"--out={name}")[0] == 0
    assert _files(tmp_path / "a") == _files(tmp_path / "b")


def test_several_runs_may_have_the_same_name(row, run, tmp_path):
    _write(row, tmp_path / "a" / "run")
    _write(row, tmp_path / "b" / "run")
    assert run("--runs=a/run,b/run,a/run", "--out=out")[0] == 0
    text = (tmp_path / "out" / "report.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("## Table")]
    assert headings == [
        "## Table 1, Medical: run (1)",
        "## Table 1, Medical: run (2)",
    ]


def test_runs_of_other_experiments_are_left_out_aloud(row, run, tmp_path):
    _write(row, tmp_path / "runs" / "one")
    other = _write(row, tmp_path / "runs" / "two")
    (other / "manifest.json").write_text('{"experiment": "other", "flags": {}}')
    code, _, err = run()
    assert code == 0
    assert err == "left out: runs/two, a run of another experiment\n"


def test_a_run_is_kept_and_compared(row, run, tmp_path, monkeypatch):
    monkeypatch.setattr(program.kept, "FOLDER", tmp_path / "results")
    folder = _write(row, tmp_path / "runs" / "one")
    kept = run("--runs=runs/one", "--keep=aia.table1.medical")
    assert kept == (0, "kept as results/aia.table1.medical\n", "")
    same = run("--runs=runs/one", "--compare=aia.table1.medical")
    assert same[0] == 0 and same[1].startswith("equal: of 6 numbers of seeds 0, 1, 2 ")
    rows = [each._replace(value=each.value + 3) for each in _rows(row)]
    results.write_rows(folder / "rows.jsonl", rows)
    code, out, _ = run("--runs=runs/one", "--compare=aia.table1.medical")
    assert code == 1 and out.startswith("differs: ") and "6 differ" in out


def test_documents_are_written_or_up_to_date(run, tmp_path, monkeypatch):
    found = iter([[tmp_path / "README.md"], []])
    monkeypatch.setattr(program.documents, "write", lambda: next(found))
    assert run("--docs") == (0, "README.md is written\n", "")
    assert run("--docs") == (0, "all up to date\n", "")


def _refused(said):
    code, out, err = said
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err.strip()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs=absent"], "--runs: no folder absent"),
        (["--runs="], "--runs: expected at least one folder"),
        (
            ["--docs", "--keep=aia.table1.income_a"],
            "--keep, --compare, --docs: expected one of",
        ),
        (
            ["--docs", "--tensorboard"],
            "--out, --tensorboard: expected neither with --keep, --compare or --docs",
        ),
        (
            ["--compare=aia.table1.income_a", "--runs=good"],
            "--compare: expected the name of a folder in ",
        ),
        (["--runs=empty"], "--runs: empty holds no finished run of experiments.aia"),
        (["--runs=bad"], "bad/rows.jsonl:1: is no JSON"),
        (["--runs=table"], "table/manifest.json: --paper_table: expected one of"),
        (["--runs=good", "--out=file"], "--out: expected a folder"),
        (["--runs=good", "--out=file/below"], "--out: expected a folder"),
        (["--runs=good,bad"], "bad/rows.jsonl:1: is no JSON"),
        (["--run=good"], "Unknown command line flag 'run'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    row, run, tmp_path, arguments, message
):
    _write(row, tmp_path / "good")
    _write(row, tmp_path / "table", paper_table="table9")
    _write(row, tmp_path / "bad")
    (tmp_path / "bad" / "rows.jsonl").write_text("no\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    before = _files(tmp_path)
    assert _refused(run(*arguments)).startswith(message)
    assert _files(tmp_path) == before
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(row, run, tmp_path):
    _write(row, tmp_path / "good")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").touch()
    before = _files(tmp_path)
    said = _refused(run("--runs=good", "--out=out"))
    assert said.startswith("--out: out cannot be written")
    assert _files(tmp_path) == before


def test_an_earlier_report_stays_whole_if_the_next_one_fails(row, run, tmp_path):
    _write(row, tmp_path / "good")
    run("--runs=good", "--out=out")
    before = _files(tmp_path / "out")
    (tmp_path / "good" / "rows.jsonl").write_text(json.dumps({"a": 1}) + "\n")
    assert run("--runs=good", "--out=out")[0] == 2
    assert _files(tmp_path / "out") == before


def test_a_result_that_failed_is_shown_as_such(row, run, tmp_path):
    _write(row, tmp_path / "good", _rows(row, value=math.nan))
    code, out, _ = run("--runs=good", "--out=out")
    assert code == 0
    assert out.startswith("1 published number: 1 not finite")


def test_reports_are_made_without_jax():
    program = "import sys, experiments.report.page as p; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
