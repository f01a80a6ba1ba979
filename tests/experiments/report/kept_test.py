"""What is kept of a run, whose flagfile it is of, and that each flagfile has a result."""

import json
import math

import pytest

from experiments.report import commands, finished, kept
from fljax.driver.config import ConfigError
from fljax.driver.option import FILES, PLACES

_FLAGFILES = {path.name.removesuffix(".flags") for path in commands.FLAGFILES.iterdir()}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Results go there."""
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    return tmp_path


def _run(tmp_path, rows, **told):
    flags = commands.flags_of("aia.table2", "python -m experiments.aia --flagfile=x")
    flags |= {"run_dir": str(tmp_path), "data_dir": "/somewhere"} | told
    manifest = {
        "experiment": "aia",
        "flags": flags,
        "digest": "0" * 64,
        "code": {"fljax": "1" * 64},
        "packages": {"fljax": "0.1.0", "jax": "0.10"},
        "seconds": {"run": 3.5},
        "data": [{"name": "insurance.csv", "sha256": "2" * 64, "origin": "/somewhere"}],
        "platform": "cpu",
        "cpus": 2,
    }
    return finished.Run(tmp_path, rows, manifest, {})


def test_totals_ends_of_curves_and_clients_of_a_single_seed_are_kept(rows):
    (total,) = rows(90.0)
    client = total._replace(client=1)
    loss = total._replace(metric="train_loss", attack="none")
    curve = [loss._replace(setting=f"round_{t}", value=t) for t in (0, 1, 50, 100)]
    other = [each._replace(point="batch_size=8") for each in curve[1:3]]
    time = total._replace(metric="run_seconds")
    found = [total, client, loss._replace(client=1), *curve, *other, time]
    ends = [curve[0], curve[3], *other]
    assert kept.of_rows(found) == [total, client, *ends]
    more = [total._replace(seed=1)]
    assert kept.of_rows(found + more) == [total, *ends, *more]


def test_accuracies_of_clients_of_unlike_sizes_are_kept(rows):
    (total,) = rows(90.0)
    totals = [total, total._replace(seed=1)]
    small, large = total._replace(client=0, n=100), total._replace(client=1, n=150)
    assert kept.of_rows([*totals, small, large]) == [*totals, small, large]
    alike = [small, large._replace(n=149), large._replace(point="other")]
    assert kept.of_rows([*totals, *alike]) == totals


def test_texts_of_every_row_stand_once(rows, folder, tmp_path):
    (total,) = rows(1.0)
    found = [total, total._replace(defense="dp_sgd", point="epsilon=1")]
    path = kept.keep(_run(tmp_path, found), "aia.table2")
    assert total.data not in (path / "rows.csv").read_text()
    result = kept.read("aia.table2")
    assert result.rows == found
    assert result.manifest["alike"] == {"data": total.data, "model": total.model}


def test_seeds_of_a_metric_share_a_line(rows, folder, tmp_path):
    (total,) = rows(1.0)
    found = [
        total,
        total._replace(seed=2, value=2.5, n=total.n + 1),
        total._replace(metric="majority_percent", value=math.inf),
        total._replace(seed=1, value=0.5),  # after its line's first
    ]
    path = kept.keep(_run(tmp_path, found), "aia.table2")
    assert len((path / "rows.csv").read_text().splitlines()) == 3
    *read, last = kept.read("aia.table2").rows
    assert read == [found[0], found[1], found[3]]
    assert math.isnan(last.value) and last._replace(value=math.inf) == found[2]


def test_a_half_width_stands_in_the_line_of_what_it_is_of(rows, folder, tmp_path):
    (total,) = rows(1.0)
    half = total._replace(metric=f"{total.metric}_half_width", value=math.nan)
    alone = total._replace(metric="error_half_width", value=0.25)
    fewer = alone._replace(setting="fewer", n=alone.n + 1)
    other = total._replace(metric="error", setting="fewer")
    found = [total, half, total._replace(seed=1), half._replace(seed=1, value=0.5)]
    path = kept.keep(_run(tmp_path, [*found, alone, fewer, other]), "aia.table2")
    assert len((path / "rows.csv").read_text().splitlines()) == 5
    first, *read = kept.read("aia.table2").rows
    assert (first, read[0]) == (found[0], found[2])
    assert math.isnan(read[1].value) and read[1]._replace(value=1.0) == (
        half._replace(value=1.0)
    )
    assert read[2:] == [found[3], alone, fewer, other]


def test_slopes_of_a_single_client_are_kept(rows):
    found = [row._replace(client=0) for row in rows(1.0, 2.0)]
    slopes = [row._replace(metric="error_slope") for row in found]
    assert kept.of_rows(found + slopes) == slopes


def test_what_a_program_leaves_is_not_kept(rows):
    drawn = rows(3.0, experiment="fed_cdp", setting="the noise that is drawn")
    other = rows(3.0, experiment="fed_cdp", setting="implemented, record: one pass")
    assert kept.of_rows(drawn + other) == drawn


def test_values_have_eight_digits(rows):
    assert kept.of_rows(rows(99.123456789))[0].value == 99.123457


def test_what_is_kept_names_no_place_and_no_time(rows, folder, tmp_path):
    run = _run(tmp_path, rows(1.0, 2.0), seeds=[0, 1], attack_subset_trials=7)
    assert kept.keep(run, "aia.table2.two_seeds") == folder / "aia.table2.two_seeds"
    result = kept.read("aia.table2.two_seeds")
    assert result.rows == list(run.rows)
    assert result.manifest["command"] == (
        "python -m experiments.aia --flagfile=experiments/flags/aia.table2.flags "
        "--data_dir=DATA --attack_subset_trials=7 --seeds=0,1"
    )
    assert result.manifest["machine"] == "2 CPU cores"
    alone = {"cpus": 1, "platform": "gpu", "devices": 2, "device": "fast"}
    assert kept._machine(alone) == "2 x fast, 1 CPU core"
    text = json.dumps(result.manifest)
    assert "somewhere" not in text and "seconds" not in text and "run_dir" not in text


def test_clients_and_values_that_are_not_finite_are_read_back(rows, folder, tmp_path):
    (total,) = rows(1.0)
    found = [
        total._replace(client=3, metric="error_slope"),
        total._replace(value=math.nan),
    ]
    kept.keep(_run(tmp_path, found), "aia.table2")
    slope, empty = kept.read("aia.table2").rows
    assert slope == found[0]
    assert math.isnan(empty.value) and empty._replace(value=1.0) == total


def test_a_result_belongs_to_a_flagfile_and_its_program(rows, folder, tmp_path):
    run = _run(tmp_path, rows(1.0))
    with pytest.raises(ConfigError, match="--keep: expected the name of a flagfile"):
        kept.keep(run, "aia.table9")
    with pytest.raises(
        ConfigError, match="--keep: --.* no flag of .* lmra.small.flags"
    ):
        kept.keep(run, "lmra.small")
    assert list(folder.iterdir()) == []
    with pytest.raises(ConfigError, match="got 'aia.table2'"):
        kept.read("aia.table2")


@pytest.mark.parametrize("name", kept.names())
def test_a_kept_result_is_of_the_flagfile_as_it_is(name):
    manifest = kept.read(name).manifest
    now = commands.flags_of(name, manifest["command"])
    then = manifest["flags"]
    places = {*PLACES, *FILES}
    shared = (now.keys() & then.keys()) - places
    assert {key: now[key] for key in shared} == {key: then[key] for key in shared}
    assert not then.keys() - now.keys()


@pytest.mark.parametrize("name", sorted(_FLAGFILES))
def test_a_flagfile_has_a_result_or_says_why_not(name):
    text = (commands.FLAGFILES / f"{name}.flags").read_text()
    assert text.startswith("# ") and "expect:" not in text
    assert (name in kept.names()) != (name in kept.reasons())


def test_a_flagfiles_command_asks_for_files_where_its_data_are_some():
    asked = {name: commands.of_flagfile(name) for name in ("aia.fig1", "aia.fig4")}
    command = "python -m experiments.aia --flagfile=experiments/flags/aia.{}.flags"
    assert asked["aia.fig1"] == f"{command.format('fig1')} --data_dir=DATA"
    assert asked["aia.fig4"] == command.format("fig4")  # generated data


def test_every_result_has_rows():
    assert all(kept.read(name).rows for name in kept.names())


def test_reasons_are_of_flagfiles():
    assert kept.reasons().keys() <= _FLAGFILES


def test_the_folder_is_small():
    sizes = [path.stat().st_size for path in kept.FOLDER.rglob("*") if path.is_file()]
    assert max(sizes) < 400_000 and sum(sizes) < 4_000_000
