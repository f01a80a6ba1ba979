"""Scalars for TensorBoard: their names and steps, and the file read back."""

import pytest

from experiments.report import scalars


def _rows(row):
    loss = row._replace(attack="none", metric="test_loss")
    return [
        *(loss._replace(setting=f"round_{t}", value=4.0 - t) for t in range(3)),
        *(
            row._replace(attack="model", setting=setting, seed=seed, value=70.0 + seed)
            for setting in ("active_10", "active_50", "passive")
            for seed in range(2)
        ),
        row._replace(client=3),
        row._replace(metric="rank", value=float("nan")),
        row._replace(metric="rank", point="h=1", value=1e99),
    ]


def test_rounds_and_active_rounds_are_steps_and_values_are_means(row):
    assert list(scalars.scalars(_rows(row))) == [
        ("aia_accuracy_percent/linear model active", 10, 70.5),
        ("aia_accuracy_percent/linear model active", 50, 70.5),
        ("aia_accuracy_percent/linear model passive", 0, 70.5),
        ("test_loss/linear", 0, 4.0),
        ("test_loss/linear", 1, 3.0),
        ("test_loss/linear", 2, 2.0),
    ]


def test_data_points_and_defenses_are_told_apart(row):
    rows = [
        row,
        row._replace(point="h=1"),
        row._replace(defense="dp_sgd"),
        row._replace(data="toy"),
    ]
    assert [tag for tag, *_ in scalars.scalars(rows)] == [
        "aia_accuracy_percent/medical linear dp_sgd grad passive",
        "aia_accuracy_percent/medical linear grad passive",
        "aia_accuracy_percent/medical linear grad passive h=1",
        "aia_accuracy_percent/toy linear grad passive",
    ]


def test_tensorboard_reads_what_was_written(row, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing import event_accumulator

    for name in ("a", "b"):
        scalars.write(tmp_path / name, _rows(row))
    (one,), (other,) = ((tmp_path / name).iterdir() for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()
    read = event_accumulator.EventAccumulator(str(tmp_path / "a"))
    read.Reload()
    found = [
        (tag, event.step, event.value)
        for tag in read.Tags()["scalars"]
        for event in read.Scalars(tag)
    ]
    assert found == list(scalars.scalars(_rows(row)))
