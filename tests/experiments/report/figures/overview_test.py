"""Accuracies by attack and by size, losses by round."""

import numpy as np
import pytest

from experiments.report import figures


def test_the_baseline_alone_makes_no_figure(make):
    rows = [r for r in make.accuracies(2) if r.attack == "majority"]
    assert figures.accuracy_by_attack(rows) is None


def _bars(figure):
    """Half lengths of the horizontal interval bars, in order of appearance."""
    (lines,) = figure.axes[0].collections
    return [(right[0] - left[0]) / 2 for left, right in lines.get_segments()]


def test_a_single_seed_has_no_interval_bar(make):
    assert _bars(figures.accuracy_by_attack(make.accuracies(seeds=1))) == [0, 0]


def test_the_interval_bar_of_two_seeds_is_students(make):
    # Seeds 0 and 1 differ by 1: half the bar is 12.706 * sqrt(1/2) / sqrt(2).
    found = _bars(figures.accuracy_by_attack(make.accuracies(seeds=2)))
    np.testing.assert_allclose(found, [6.353, 6.353], atol=1e-3)


def test_attacks_are_points_and_the_majority_is_a_line(make):
    axes = figures.accuracy_by_attack(make.accuracies(seeds=2)).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["grad (passive)", "model (passive)"]
    (line,) = [one for one in axes.lines if one.get_label() == "majority"]
    assert list(line.get_xdata()) == [60.5, 60.5]
    assert axes.get_title() == "medical, linear, 2 seeds"


def test_errors_of_a_number_are_drawn_beside_its_median(make, row):
    rows = [
        row._replace(metric="aia_mean_absolute_error", value=row.value / 100)
        for row in make.accuracies(seeds=2)
    ]
    assert figures.accuracy_by_attack(rows) is None
    axes = figures.error_by_attack(rows).axes[0]
    (line,) = [one for one in axes.lines if one.get_label() == "median"]
    np.testing.assert_allclose(line.get_xdata(), 0.605)
    assert axes.get_xlabel().startswith("mean absolute error")
    assert {text.get_text() for text in axes.texts} == {"0.805", "0.905"}


def test_points_with_different_majorities_have_a_band(row):
    rows = [
        row._replace(attack=attack, point=point, value=value)
        for point, base in {"h=0": 50.0, "h=1": 60.0}.items()
        for attack, value in {"grad": 80.0, "majority": base}.items()
    ]
    axes = figures.accuracy_by_attack(rows).axes[0]
    (band,) = axes.patches
    assert (band.get_x(), band.get_width()) == (50, 10)


def test_too_many_attacks_make_no_figure(row):
    rows = [row._replace(attack=f"a{i}") for i in range(61)]
    assert figures.accuracy_by_attack(rows[:60]) is not None
    assert figures.accuracy_by_attack(rows) is None


def test_losses_are_drawn_at_their_rounds(make):
    rows = make.losses(3.0, 2.0, 1.0)
    axes = figures.loss_by_round(rows[::-1]).axes[0]
    (line,) = axes.lines
    assert line.get_label() == "test loss"
    np.testing.assert_array_equal(line.get_xydata(), [[0, 3], [1, 2], [2, 1]])


@pytest.mark.parametrize(
    ("last", "scale"), [(0.5, "log"), (0.0, "linear")], ids=["positive", "zero"]
)
def test_the_loss_axis_is_logarithmic_where_all_losses_are_positive(make, last, scale):
    axes = figures.loss_by_round(make.losses(1.0, last)).axes[0]
    assert axes.get_yscale() == scale


@pytest.mark.parametrize(
    ("sizes", "scale"),
    [((10, 20, 30), "linear"), ((10, 20, 31), "log")],
    ids=["alike", "spread"],
)
def test_the_size_axis_is_logarithmic_where_sizes_are_spread(make, sizes, scale):
    axes = figures.accuracy_by_size(make.clients(*sizes)).axes[0]
    assert axes.get_xscale() == scale


def test_clients_of_much_the_same_size_are_drawn_one_by_one(make):
    assert figures.accuracy_by_size(make.clients(20, 21)) is None
    axes = figures.accuracy_by_client(make.clients(20, 21)).axes[0]
    texts = [text.get_text() for text in axes.get_yticklabels()]
    assert texts == ["client 0", "client 1"]
    assert figures.accuracy_by_client(make.clients(20)) is None


def test_clients_are_told_apart_by_attack_and_setting(make):
    rows = make.clients(10, 20) + [
        row._replace(setting="active_10") for row in make.clients(10, 20)
    ]
    axes = figures.accuracy_by_size(rows).axes[0]
    assert [each.get_label() for each in axes.collections] == [
        "grad (passive)",
        "grad (active_10)",
    ]


def test_losses_of_single_clients_are_no_loss_of_the_global_model(make):
    rows = [row._replace(metric="local_loss") for row in make.losses(3.0, 2.0)]
    assert figures.loss_by_round(rows) is None
