"""What a benchmark's file says of a measurement, and what a page makes of it."""

import dataclasses
import json

import pytest

from experiments.benchmarks import harness, recording
from experiments.report.documents import ROOT, speed
from fljax.driver.config import ConfigError

_ROW = {
    "part": "clients", "clients": 1000, "parameters": 1281, "devices": 1,
    "microseconds": 5.84, "limit": 4.4, "times_limit": None,
}  # fmt: skip
_TARGETS = [harness.Target("flat", 0.1234, 0.2, False), harness.Target("x", None, 2.0)]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Lines of a benchmark's file."""
    monkeypatch.setattr(speed, "FOLDER", tmp_path)
    where = recording.environment() | {"load": 0.3}
    about = {"command": "python -m benchmark", "environment": where}
    path = tmp_path / "scaling.jsonl"
    recording.write(str(path), [_ROW], _TARGETS, about)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_line_says_what_was_run_with_what_and_where(written):
    row, met, missed = written
    assert row.items() > _ROW.items()
    assert (met["target"], met["met"], missed["met"]) == ("flat", True, False)
    for line in written:
        assert line["command"] == "python -m benchmark"
        where = line["environment"]
        assert {"device", "num_cpus", "jax", "torch", "dtype", "load"} <= set(where)
        assert len(where["code"]) == 64 and where["fljax"]


def test_a_command_has_the_flags_that_were_told_but_for_the_file():
    asked = harness.SmallFlags(check=True, seed=3, json="somewhere")
    told = "python -m experiments.benchmarks.harness --check=true --seed=3"
    assert recording.command(asked) == told


def test_a_command_has_a_word_for_the_folder_of_the_data():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Flags(harness.SmallFlags):
        data_dir: str | None = None

    told = recording.command(Flags(data_dir="some/folder"), recording.__name__)
    assert told == "python -m experiments.benchmarks.recording --data_dir=DATA"


def test_a_command_names_the_benchmark_where_its_flags_are_of_another_module():
    told = recording.command(harness.SmallFlags(), recording.__name__)
    assert told == "python -m experiments.benchmarks.recording"


@pytest.mark.usefixtures("written")
def test_a_page_has_rows_targets_and_the_machine():
    command, rows, targets, where = speed.text("scaling").split("\n\n")
    assert "python -m benchmark" in command
    assert rows.splitlines()[2] == "| clients | 1,000 | 1,281 | 1 | 5.84 | 4.4 |"
    assert "times the limit" not in rows
    first, second = targets.splitlines()[2:]
    assert first == "| flat | at most 0.2 | 0.123 | yes |"
    assert second == "| x | at least 2 |  | no |"
    assert "load as it began: 0.3" in where and "CPU core" in where
    with pytest.raises(ConfigError, match="got 'rounds'"):
        speed.text("rounds")


@pytest.mark.usefixtures("written")
def test_a_benchmark_may_be_kept_in_variants():
    path = speed.FOLDER / "scaling.jsonl"
    path.rename(path.with_stem("scaling.small"))
    assert "| clients | 1,000 | 1,281 |" in speed.text("scaling.small")
    with pytest.raises(ConfigError, match="got 'scaling'"):
        speed.text("scaling")


def test_every_kept_benchmark_is_on_the_page():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert speed.names()
    for name in speed.names():
        assert f"<!-- generated: benchmark.{name} -->" in page
