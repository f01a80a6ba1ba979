"""Figures: drawn from rows alone, and none where there is nothing to draw."""

import subprocess
import sys

import numpy as np
import pytest

from fljax import figures
from fljax.results import Row

_ROW = Row(
    experiment="aia",
    data="medical",
    model="linear",
    defense="none",
    attack="grad",
    setting="passive",
    point="",
    seed=0,
    client="all",
    metric="aia_accuracy_percent",
    value=80.0,
    n=100,
)
_FIGURES = [
    figures.accuracy_by_attack,
    figures.loss_by_round,
    figures.accuracy_by_size,
]


def _accuracies(seeds):
    """Rows of two attacks and a baseline, over all clients."""
    values = {"grad": 80.0, "model": 90.0, "majority": 60.0}
    return [
        _ROW._replace(attack=attack, seed=seed, value=value + seed)
        for attack, value in values.items()
        for seed in range(seeds)
    ]


def _losses(*values):
    return [
        _ROW._replace(setting=f"round_{t}", metric="test_loss", value=value)
        for t, value in enumerate(values)
    ]


def _clients(*sizes):
    return [_ROW._replace(client=i, n=size) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("draw", _FIGURES)
@pytest.mark.parametrize(
    "rows", [[], [_ROW._replace(metric="rank")]], ids=["none", "rank"]
)
def test_rows_of_another_kind_make_no_figure(draw, rows):
    assert draw(rows) is None


def test_the_baseline_alone_makes_no_figure():
    rows = [r for r in _accuracies(2) if r.attack == "majority"]
    assert figures.accuracy_by_attack(rows) is None


def _bars(figure):
    """Half lengths of the horizontal interval bars, in order of appearance."""
    (lines,) = figure.axes[0].collections
    return [(right[0] - left[0]) / 2 for left, right in lines.get_segments()]


def test_a_single_seed_has_no_interval_bar():
    assert _bars(figures.accuracy_by_attack(_accuracies(seeds=1))) == [0, 0]


def test_the_interval_bar_of_two_seeds_is_students():
    # Seeds 0 and 1 differ by 1: half the bar is 12.706 * sqrt(1/2) / sqrt(2).
    found = _bars(figures.accuracy_by_attack(_accuracies(seeds=2)))
    np.testing.assert_allclose(found, [6.353, 6.353], atol=1e-3)


def test_attacks_are_points_and_the_majority_is_a_line():
    axes = figures.accuracy_by_attack(_accuracies(seeds=2)).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["grad (passive)", "model (passive)"]
    (line,) = [one for one in axes.lines if one.get_label() == "majority"]
    assert list(line.get_xdata()) == [60.5, 60.5]
    assert axes.get_title() == "medical, linear, 2 seeds"


def test_losses_are_drawn_at_their_rounds():
    rows = _losses(3.0, 2.0, 1.0)
    axes = figures.loss_by_round(rows[::-1]).axes[0]
    (line,) = axes.lines
    assert line.get_label() == "test loss"
    np.testing.assert_array_equal(line.get_xydata(), [[0, 3], [1, 2], [2, 1]])


@pytest.mark.parametrize(
    ("last", "scale"), [(0.5, "log"), (0.0, "linear")], ids=["positive", "zero"]
)
def test_the_loss_axis_is_logarithmic_where_all_losses_are_positive(last, scale):
    axes = figures.loss_by_round(_losses(1.0, last)).axes[0]
    assert axes.get_yscale() == scale


@pytest.mark.parametrize(
    ("sizes", "scale"),
    [((10, 20, 30), "linear"), ((10, 20, 31), "log")],
    ids=["alike", "spread"],
)
def test_the_size_axis_is_logarithmic_where_sizes_are_spread(sizes, scale):
    axes = figures.accuracy_by_size(_clients(*sizes)).axes[0]
    assert axes.get_xscale() == scale


@pytest.mark.parametrize(
    ("draw", "rows"),
    [
        (figures.accuracy_by_attack, _accuracies(2)),
        (figures.loss_by_round, _losses(2.0, 1.0)),
        (figures.accuracy_by_size, _clients(5, 50)),
    ],
    ids=["attack", "round", "size"],
)
def test_a_saved_figure_is_a_png_and_nothing_else_is_left(tmp_path, draw, rows):
    figures.save(draw(rows), tmp_path / "new" / "figure.png")
    (path,) = (tmp_path / "new").iterdir()
    assert path.name == "figure.png"
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_figures_leave_the_users_backend_alone():
    program = "import sys, fljax.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
