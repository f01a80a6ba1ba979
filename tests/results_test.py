"""Rows survive their file, and summaries group by all but the seed."""

import json
import math

import pytest

from fljax import results
from fljax.results import Row


def test_rows_come_back_as_they_were(row, tmp_path):
    rows = [row, row._replace(client=3, value=0.1 + 0.2, point="lr=0.1 ε")]
    results.write_rows(tmp_path / "rows.jsonl", rows)
    assert results.read_rows(tmp_path / "rows.jsonl") == rows


def test_no_rows_come_back_as_none(tmp_path):
    results.write_rows(tmp_path / "rows.jsonl", [])
    assert results.read_rows(tmp_path / "rows.jsonl") == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_null_and_come_back_as_nan(row, tmp_path, value):
    path = tmp_path / "rows.jsonl"
    results.write_rows(path, [row._replace(value=value)])
    assert json.loads(path.read_text())["value"] is None
    (found,) = results.read_rows(path)
    assert math.isnan(found.value)
    assert found._replace(value=80.0) == row


def test_a_line_is_one_json_object_with_the_fields_in_order(row, tmp_path):
    path = tmp_path / "rows.jsonl"
    results.write_rows(path, [row, row])
    lines = path.read_text().splitlines()
    assert len(lines) == 2
    assert list(json.loads(lines[0])) == list(Row._fields)


def test_rows_that_cannot_be_written_leave_the_earlier_file(row, tmp_path):
    path = tmp_path / "rows.jsonl"
    results.write_rows(path, [row])
    with pytest.raises(TypeError):
        results.write_rows(path, [row, row._replace(point=object())])
    assert results.read_rows(path) == [row]
    assert list(tmp_path.iterdir()) == [path]


def test_a_manifest_that_cannot_be_written_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "manifest.json"
    results.write_manifest(path, {"seeds": [0, 1]})
    with pytest.raises(ValueError, match="JSON"):
        results.write_manifest(path, {"seconds": math.nan})
    assert json.loads(path.read_text()) == {"seeds": [0, 1]}
    assert list(tmp_path.iterdir()) == [path]


def test_rows_that_differ_in_seed_value_and_count_are_one_group(row):
    rows = [row, row._replace(seed=1, value=90.0, n=120)]
    (found,) = results.summarise(rows)
    assert found.row == row
    assert (found.estimate.mean, found.estimate.repetitions) == (85.0, 2)


@pytest.mark.parametrize(
    ("metric", "values", "ends"),
    [
        ("aia_accuracy_percent", (98.0, 100.0), (86.294, 100)),
        ("aia_accuracy_percent", (0.0, 1.0), (0, 6.853)),
        ("brier_score", (0.0, 1.0), (0, 6.853)),
        ("calibration_error", (0.0, 1.0), (0, 6.853)),
        ("total_variation", (0.0, 1.0), (0, 1)),
        ("misfit", (0.0, 1.0), (0, 6.853)),
        ("test_loss", (0.0, 1.0), (0, 6.853)),
        ("silhouette", (0.0, 1.0), (-5.853, 1)),
        ("membership_auc", (0.0, 1.0), (0, 1)),
        ("gradient_norm", (0.0, 1.0), (-5.853, 6.853)),
        ("test_loss", (-2.0, -1.0), (-1.5, 4.853)),
        ("test_loss", (1.0,), (math.nan, math.nan)),
    ],
)
def test_intervals_for_people_end_where_the_metric_does(row, metric, values, ends):
    rows = [row._replace(seed=s, metric=metric, value=v) for s, v in enumerate(values)]
    (found,) = results.summarise(rows)
    shown = found.shown
    assert (shown.low, shown.high) == pytest.approx(ends, abs=1e-3, nan_ok=True)
    assert shown.mean == found.estimate.mean


@pytest.mark.parametrize("field", sorted({*Row._fields} - {"seed", "value", "n"}))
def test_rows_that_differ_in_any_other_field_are_two_groups(row, field):
    found = results.summarise([row, row._replace(**{field: "other"})])
    assert [s.estimate.repetitions for s in found] == [1, 1]


def test_groups_are_in_order_of_appearance(row):
    attacks = ["model", "grad", "majority", "grad", "model"]
    rows = [row._replace(attack=attack) for attack in attacks]
    found = [s.row.attack for s in results.summarise(rows)]
    assert found == ["model", "grad", "majority"]


def test_rows_of_clients_are_followed_by_their_plain_mean():
    labels = results.Labels("e", "d", "m", "none", "p")
    found = labels.by_client("model", "passive", 3, "loss", [1.0, 2.0, 6.0], [5, 1, 2])
    assert [(row.client, row.value, row.n) for row in found] == [
        (0, 1.0, 5), (1, 2.0, 1), (2, 6.0, 2), ("all", 3.0, 8)
    ]  # fmt: skip
    assert found[0] == labels.row("model", "passive", 3, "loss", 1, 5, client=0)
    assert found[0].point == "p" and found[0].seed == 3
