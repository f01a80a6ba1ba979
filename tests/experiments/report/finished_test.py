"""Finished runs: which are found, and what is refused in one line."""

import errno
import json
import math
import os
import pathlib

import pytest

from experiments.report import finished
from fljax.driver.config import ConfigError

_ROW = {
    "experiment": "aia",
    "data": "toy",
    "model": "mlp",
    "defense": "none",
    "attack": "model",
    "setting": "passive",
    "point": "",
    "seed": 0,
    "client": "all",
    "metric": "aia_accuracy_percent",
    "value": 80.0,
    "n": 10,
}
_MANIFEST = {"experiment": "aia", "flags": {}}
_NO_NAMES = "manifest.json: expected figures as a list of names"
_PNG = b"\x89PNG\r\n\x1a\n"
_SVG = b'<svg xmlns="http://www.w3.org/2000/svg"/>'


def _write(folder, rows=(_ROW,), manifest=_MANIFEST):
    folder.mkdir(parents=True, exist_ok=True)
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    (folder / "rows.jsonl").write_text("".join(f"{line}\n" for line in lines))
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (folder / "manifest.json").write_text(text)
    return folder


def _find(*places):
    return finished.find([str(place) for place in places], ("aia",), "runs")[0]


def _refusal(ask, *args):
    with pytest.raises(ConfigError) as error:
        ask(*args)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_runs_are_found_by_name_below_folders_and_by_pattern(tmp_path):
    one, two = _write(tmp_path / "a" / "one"), _write(tmp_path / "a" / "x" / "two")
    (tmp_path / "a" / "unfinished").mkdir()
    (tmp_path / "a" / "unfinished" / "rows.jsonl").touch()
    assert _find(one) == [one]
    assert _find(tmp_path / "a") == _find(tmp_path) == [one, two]
    assert _find(tmp_path / "a" / "*") == [one, two]
    assert _find(tmp_path / "a" / "o[n]?") == [one]
    assert _find(two, one, two) == [two, one]


def test_folders_inside_a_run_belong_to_it(tmp_path):
    run = _write(tmp_path / "run")
    _write(run / "copy")
    assert _find(tmp_path) == [run]


def test_a_folder_whose_name_looks_like_a_pattern_is_a_folder(tmp_path):
    run = _write(tmp_path / "run[1]")
    assert _find(run) == [run]


def test_runs_of_other_experiments_are_left_out_unless_named(tmp_path):
    mine = _write(tmp_path / "a")
    other = _write(tmp_path / "b", manifest={"experiment": "theory", "flags": {}})
    assert finished.find([str(tmp_path)], ("aia",), "runs") == ([mine], [other])
    assert _find(other) == [other]
    assert _refusal(finished.read, other, ("aia",)) == (
        f"{other}: expected a run of experiments.aia, got one of 'theory'"
    )


@pytest.mark.parametrize("name", [["aia"], {}, 1, None], ids=str)
def test_a_run_whose_experiment_is_no_name_is_one_of_another(tmp_path, name):
    mine = _write(tmp_path / "a")
    other = _write(tmp_path / "b", manifest=_MANIFEST | {"experiment": name})
    known = frozenset(("aia",))
    assert finished.find([str(tmp_path)], known, "runs") == ([mine], [other])
    assert _refusal(finished.read, other, known) == (
        f"{other}: expected a run of experiments.aia, got one of {name!r}"
    )


def test_runs_of_several_experiments_may_be_looked_for(tmp_path):
    mine = _write(tmp_path / "a")
    other = _write(
        tmp_path / "b",
        [_ROW | {"experiment": "theory"}],
        {"experiment": "theory", "flags": {}},
    )
    both = "aia", "theory"
    assert finished.find([str(tmp_path)], both, "runs") == ([mine, other], [])
    assert finished.read(other, both).rows[0].experiment == "theory"
    message = _refusal(finished.read, other, ("aia", "active"))
    assert "expected a run of experiments.aia or experiments.active" in message


def test_places_without_a_run_are_refused(tmp_path):
    (tmp_path / "file").touch()
    _write(tmp_path / "theory" / "b", manifest={"experiment": "theory"})
    none = "holds no finished run of experiments.aia"
    files = "(a folder with rows.jsonl and manifest.json)"
    for name in ("empty", "x*", "theory"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        place = tmp_path / name
        assert _refusal(_find, place) == f"--runs: {place} {none} {files}"
    absent, file = tmp_path / "absent", tmp_path / "file"
    assert _refusal(_find, absent) == f"--runs: no folder {absent}"
    assert _refusal(_find, file) == f"--runs: expected a folder, {file} is a file"
    assert _refusal(_find) == "--runs: expected at least one folder"


def test_places_that_cannot_be_looked_at_are_refused(tmp_path):
    long, said = "x" * 300, "File name too long"
    for place in (long, f"{long}/*"):
        assert _refusal(_find, place) == f"--runs: {place:.80}: {said}"
    bad = f"{tmp_path}/**.old"
    assert _refusal(_find, bad).startswith(f"--runs: {bad:.80}: Invalid pattern")
    nobody = "~nobody of this name/runs"
    assert _refusal(_find, nobody).startswith(f"--runs: {nobody}: ")


def test_a_folder_that_may_not_be_read_is_not_passed_over(tmp_path, monkeypatch):
    _write(tmp_path / "a")
    (tmp_path / "b").mkdir()
    scan = os.scandir

    def denied(folder):
        if str(folder).endswith("b"):
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", denied)
    said = f"{tmp_path / 'b'}: cannot be read (Permission denied)"
    assert _refusal(_find, tmp_path) == said


def test_a_figure_that_may_not_be_read_is_named(tmp_path, monkeypatch):
    folder = _write(tmp_path, manifest=_MANIFEST | {"figures": ["a"]})
    (folder / "a.svg").write_bytes(_SVG)

    def denied(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(pathlib.Path, "read_bytes", denied)
    said = f"{folder / 'a.svg'}: cannot be read (Permission denied)"
    assert _refusal(finished.read, folder, ("aia",)) == said


def test_rows_and_manifest_are_read(tmp_path):
    rows = [_ROW, _ROW | {"seed": 1, "value": None}, _ROW | {"client": 3, "value": 1}]
    run = finished.read(_write(tmp_path, rows), ("aia",))
    assert run.manifest == _MANIFEST
    assert [row.client for row in run.rows] == ["all", "all", 3]
    assert run.rows[0].value == 80.0
    assert math.isnan(run.rows[1].value)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e300"])
def test_numbers_that_are_not_finite_or_absurd_become_nan(tmp_path, value):
    line = json.dumps(_ROW).replace("80.0", value)
    (row,) = finished.read(_write(tmp_path, [line]), ("aia",)).rows
    assert math.isnan(row.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is no JSON"),
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("9" * 5000, "is no JSON"),
        ("[]", "expected a JSON object"),
        ({"attack": "model"}, f"expected the fields {', '.join(_ROW)}"),
        (_ROW | {"more": 1}, "expected the fields experiment"),
        (_ROW | {"attack": 7}, "attack must be text"),
        (_ROW | {"attack": "x" * 2001}, "attack is too long"),
        (_ROW | {"experiment": "theory"}, "is no row of experiments.aia"),
        (_ROW | {"seed": -1}, "seed must be a whole number"),
        (_ROW | {"seed": True}, "seed must be a whole number"),
        (_ROW | {"n": 1.5}, "n must be a whole number"),
        (_ROW | {"n": 10**30}, "n must be a whole number"),
        (_ROW | {"client": "0"}, "client must be a whole number or all"),
        (_ROW | {"client": 2**63}, "client must be a whole number or all"),
        (_ROW | {"value": "80"}, "value must be a number or null"),
        (_ROW | {"value": True}, "value must be a number or null"),
        (_ROW | {"seed": 5, "n": 11}, "repeats what line 1 says"),
    ],
)  # fmt: skip
def test_a_malformed_row_is_refused_with_its_line(tmp_path, line, message):
    folder = _write(tmp_path, [_ROW | {"seed": 5}, line])
    said = _refusal(finished.read, folder, "aia")
    assert said.startswith(f"{folder}/rows.jsonl:2: {message}")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("", "manifest.json: is no JSON"),
        ("[]", "manifest.json: expected a JSON object"),
        ({"experiment": "aia"}, "manifest.json: expected flags, got none"),
        (_MANIFEST | {"figures": "clusters"}, _NO_NAMES),
        (_MANIFEST | {"figures": ["../clusters"]}, _NO_NAMES),
        (_MANIFEST | {"figures": ["a/../../clusters"]}, _NO_NAMES),
        (_MANIFEST | {"figures": [".clusters"]}, _NO_NAMES),
        (_MANIFEST | {"figures": [1]}, _NO_NAMES),
        (_MANIFEST | {"figures": ["a"] * 201}, _NO_NAMES),
    ],
)
def test_a_malformed_manifest_is_refused(tmp_path, manifest, message):
    folder = _write(tmp_path, manifest=manifest)
    assert _refusal(finished.read, folder, ("aia",)) == f"{folder}/{message}"


def test_figures_that_the_manifest_names_are_read(tmp_path, monkeypatch):
    names = ["search.0", "earlier", "both", "lost"]
    folder = _write(tmp_path, manifest=_MANIFEST | {"figures": names})
    (folder / "search.0.svg").write_bytes(_SVG)
    for name in ("earlier", "both", "stranger"):
        (folder / f"{name}.png").write_bytes(_PNG + b"picture")
    (folder / "both.svg").write_bytes(_SVG)
    assert finished.read(folder, ("aia",)).pictures == {
        "search.0.svg": _SVG, "earlier.png": _PNG + b"picture", "both.svg": _SVG
    }  # fmt: skip
    monkeypatch.setattr(finished, "_MOST_PICTURE_BYTES", 9)
    assert "expected at most 9 bytes" in _refusal(finished.read, folder, ("aia",))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.png", _SVG, "a.png: expected a PNG file"),
        ("a.svg", _PNG, "a.svg: expected an SVG file that only draws, it begins other"),
        (
            "a.svg",
            b"<svg onload='x()'/>",
            "a.svg: expected an SVG file that only draws",
        ),
    ],
    ids=["svg", "png", "handler"],
)
def test_figures_of_another_kind_are_refused(tmp_path, name, content, message):
    folder = _write(tmp_path, manifest=_MANIFEST | {"figures": ["a"]})
    (folder / name).write_bytes(content)
    assert message in _refusal(finished.read, folder, ("aia",))


def test_files_that_are_no_text_or_no_file_or_empty_or_huge(tmp_path, monkeypatch):
    rows = _write(tmp_path) / "rows.jsonl"
    rows.write_bytes(b"\xff")
    assert _refusal(finished.read, tmp_path, ("aia",)) == f"{rows}: is no UTF-8 text"
    rows.write_text("")
    assert _refusal(finished.read, tmp_path, ("aia",)) == (
        f"{rows}: expected rows, got an empty file"
    )
    monkeypatch.setattr(finished, "_MOST_BYTES", 100)
    rows.write_text(json.dumps(_ROW))
    assert (
        _refusal(finished.read, tmp_path, ("aia",))
        == f"{rows}: is longer than 100 bytes"
    )
    rows.unlink()
    rows.mkdir()
    assert "rows.jsonl: expected a file" in _refusal(finished.read, tmp_path, "aia")


def test_a_pipe_is_no_file(tmp_path):
    _write(tmp_path, [_ROW])
    (tmp_path / "manifest.json").unlink()
    os.mkfifo(tmp_path / "manifest.json")
    assert "manifest.json: expected a file" in _refusal(finished.read, tmp_path, "aia")
