"""What a swept flag, active rounds or the strength of a defense do."""

import numpy as np
import pytest

from experiments.report import figures


def _lines(axes):
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_a_swept_flag_is_the_axis_and_each_attack_a_line_with_a_band(make):
    rows = make.sweep("partition_heterogeneity", ["0.4", "0", "0.2"])
    axes = figures.accuracy_by_value(rows).axes[0]
    assert axes.get_xlabel() == "partition heterogeneity"
    assert axes.get_xscale() == "linear"
    lines = _lines(axes)
    # Seeds 0 and 1 differ by 1.
    assert lines["grad (passive)"] == [[0, 81.5], [0.2, 82.5], [0.4, 80.5]]
    assert list(lines) == ["grad (passive)", "model (passive)", "majority (passive)"]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-", "--"]
    band = axes.collections[0].get_paths()[0].get_extents()
    np.testing.assert_allclose([band.y0, band.y1], [80.5 - 6.353, 82.5 + 6.353], 1e-4)


def test_bands_of_accuracies_end_at_100_percent(make):
    rows = [row._replace(value=99.0 + row.seed) for row in make.sweep("h", ["0", "1"])]
    band = figures.accuracy_by_value(rows).axes[0].collections[0].get_paths()[0]
    assert band.get_extents().y1 == 100


def test_flags_swept_in_turn_stand_side_by_side(make):
    rows = make.sweep("batch_size", ["32", "64", "1024"]) + make.sweep(
        "epochs", ["1", "2"]
    )
    figure = figures.accuracy_by_value(rows)
    assert [axes.get_xlabel() for axes in figure.axes] == ["batch size", "epochs"]
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "linear"]
    texts = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert texts == ["32", "64", "1024"]


def test_what_was_swept_downwards_begins_with_the_largest(make):
    for values, inverted in {
        ("1", "0.5", "0.2"): True,
        ("1", "0.2", "0.5"): False,
    }.items():
        axes = figures.accuracy_by_value(make.sweep("knowledge_rows", values)).axes[0]
        assert axes.xaxis_inverted() == inverted


def test_values_that_are_no_numbers_stand_in_their_order(make):
    rows = make.sweep("kind", ["iid", "dirichlet", "7"])
    axes = figures.accuracy_by_value(rows).axes[0]
    assert [x for x, _ in _lines(axes)["grad (passive)"]] == [0, 1, 2]
    texts = [label.get_text() for label in axes.get_xticklabels()]
    assert texts == ["iid", "dirichlet", "7"]


@pytest.mark.parametrize("point", ["", "no assignment", "h=0.1", "=1"])
def test_one_value_or_no_assignment_is_no_sweep(make, point):
    rows = [row._replace(point=point) for row in make.accuracies(2)]
    assert figures.accuracy_by_value(rows) is None


def _active(row, **accuracies):
    return [
        row._replace(attack="model", setting=setting, value=value)
        for setting, value in accuracies.items()
    ]


def test_active_rounds_are_the_axis_and_passive_is_zero(row):
    rows = _active(row, active_50=95.0, passive=75.0, active_10=85.0)
    rows += [
        row._replace(attack="model_oracle", setting="oracle", value=96.0),
        row._replace(attack="majority", setting="baseline", value=60.0),
        row._replace(attack="trajectory", value=97.0),
    ]
    axes = figures.accuracy_by_active_rounds(rows).axes[0]
    lines = _lines(axes)
    assert lines["model"] == [[0, 75], [10, 85], [50, 95]]
    assert [y for _, y in lines["model_oracle"]] == [96, 96]
    assert [y for _, y in lines["majority"]] == [60, 60]
    assert "trajectory" not in lines


@pytest.mark.parametrize(
    ("accuracies", "points"),
    [
        ({"passive": 75.0, "active_10": 85.0}, []),
        ({"passive": 75.0, "active_x": 85.0, "active_": 90.0}, []),
        ({"passive": 75.0, "active_10": 85.0, "active_50": 95.0}, ["h=0"]),
    ],
    ids=["one number", "no numbers", "several points"],
)
def test_there_may_be_no_active_rounds_to_draw(row, accuracies, points):
    rows = _active(row, **accuracies) + [row._replace(point=point) for point in points]
    assert figures.accuracy_by_active_rounds(rows) is None


def test_the_last_loss_is_drawn_against_the_strength_of_a_defense(make):
    rows = make.defended("delta=1", 3.0) + make.defended("delta=10", 2.0)
    axes = figures.loss_by_value(rows).axes[0]
    assert _lines(axes) == {"test loss": [[1, 3], [10, 2]]}
    bare = [row._replace(defense="none") for row in rows]
    assert figures.loss_by_value(bare) is None


def test_each_defense_is_a_loss_and_an_accuracy(make, row):
    rows = make.defended("", 1.0, "none") + make.defended("", 3.0)
    rows.append(row._replace(attack="trajectory"))
    axes = figures.accuracy_by_loss(rows).axes[0]
    lines = _lines(axes)
    assert lines["grad (passive)"] == [[1, 80.5], [3, 80.5]]
    assert "trajectory (passive)" not in lines
    assert [text.get_text() for text in axes.texts] == ["none", "dp_sgd"]
    assert figures.accuracy_by_loss(make.defended("", 3.0)) is None
    assert figures.accuracy_by_loss(rows[:8]) is None
