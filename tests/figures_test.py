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
    figures.accuracy_by_value,
    figures.loss_by_value,
    figures.accuracy_by_active_rounds,
    figures.accuracy_by_loss,
    figures.leakage_by_utility,
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


def test_points_with_different_majorities_have_a_band():
    rows = [
        _ROW._replace(attack=attack, point=point, value=value)
        for point, base in {"h=0": 50.0, "h=1": 60.0}.items()
        for attack, value in {"grad": 80.0, "majority": base}.items()
    ]
    axes = figures.accuracy_by_attack(rows).axes[0]
    (band,) = axes.patches
    assert (band.get_x(), band.get_width()) == (50, 10)


def test_too_many_attacks_make_no_figure():
    rows = [_ROW._replace(attack=f"a{i}") for i in range(61)]
    assert figures.accuracy_by_attack(rows[:60]) is not None
    assert figures.accuracy_by_attack(rows) is None


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


def test_clients_of_one_size_make_no_figure():
    assert figures.accuracy_by_size(_clients(20, 20)) is None


def test_clients_are_told_apart_by_attack_and_setting():
    rows = _clients(10, 20) + [
        row._replace(setting="active_10") for row in _clients(10, 20)
    ]
    axes = figures.accuracy_by_size(rows).axes[0]
    assert [each.get_label() for each in axes.collections] == [
        "grad (passive)",
        "grad (active_10)",
    ]


def _sweep(name, values, **fields):
    return [
        row._replace(point=f"{name}={value}", value=row.value + index, **fields)
        for index, value in enumerate(values)
        for row in _accuracies(2)
    ]


def _lines(axes):
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_a_swept_flag_is_the_axis_and_each_attack_a_line_with_a_band():
    rows = _sweep("partition_heterogeneity", ["0.4", "0", "0.2"])
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


def test_bands_of_accuracies_end_at_100_percent():
    rows = [row._replace(value=99.0 + row.seed) for row in _sweep("h", ["0", "1"])]
    band = figures.accuracy_by_value(rows).axes[0].collections[0].get_paths()[0]
    assert band.get_extents().y1 == 100


def test_flags_swept_in_turn_stand_side_by_side():
    rows = _sweep("batch_size", ["32", "64", "1024"]) + _sweep("epochs", ["1", "2"])
    figure = figures.accuracy_by_value(rows)
    assert [axes.get_xlabel() for axes in figure.axes] == ["batch size", "epochs"]
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "linear"]
    texts = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert texts == ["32", "64", "1024"]


def test_values_that_are_no_numbers_stand_in_their_order():
    rows = _sweep("kind", ["iid", "dirichlet", "7"])
    axes = figures.accuracy_by_value(rows).axes[0]
    assert [x for x, _ in _lines(axes)["grad (passive)"]] == [0, 1, 2]
    texts = [label.get_text() for label in axes.get_xticklabels()]
    assert texts == ["iid", "dirichlet", "7"]


@pytest.mark.parametrize("point", ["", "no assignment", "h=0.1", "=1"])
def test_one_value_or_no_assignment_is_no_sweep(point):
    rows = [row._replace(point=point) for row in _accuracies(2)]
    assert figures.accuracy_by_value(rows) is None


def _active(**accuracies):
    return [
        row._replace(setting=setting, value=value)
        for setting, value in accuracies.items()
        for row in [_ROW._replace(attack="model")]
    ]


def test_active_rounds_are_the_axis_and_passive_is_zero():
    rows = _active(active_50=95.0, passive=75.0, active_10=85.0)
    rows += [
        _ROW._replace(attack="model_oracle", setting="oracle", value=96.0),
        _ROW._replace(attack="majority", setting="baseline", value=60.0),
        _ROW._replace(attack="trajectory", value=97.0),
    ]
    axes = figures.accuracy_by_active_rounds(rows).axes[0]
    lines = _lines(axes)
    assert lines["model"] == [[0, 75], [10, 85], [50, 95]]
    assert [y for _, y in lines["model_oracle"]] == [96, 96]
    assert [y for _, y in lines["majority"]] == [60, 60]
    assert "trajectory" not in lines


@pytest.mark.parametrize(
    "rows",
    [
        _active(passive=75.0, active_10=85.0),
        _active(passive=75.0, active_x=85.0, active_=90.0),
        _active(passive=75.0, active_10=85.0, active_50=95.0)
        + [_ROW._replace(point="h=0")],
    ],
    ids=["one number", "no numbers", "several points"],
)
def test_there_may_be_no_active_rounds_to_draw(rows):
    assert figures.accuracy_by_active_rounds(rows) is None


def _defended(point, loss, defense="dp_sgd"):
    losses = [
        row._replace(point=point, defense=defense, value=row.value + loss)
        for row in _losses(9.0, 0.0)
    ]
    return losses + [
        row._replace(point=point, defense=defense) for row in _accuracies(2)
    ]


def test_the_last_loss_is_drawn_against_the_strength_of_a_defense():
    rows = _defended("defense_epsilon=1", 3.0) + _defended("defense_epsilon=10", 2.0)
    axes = figures.loss_by_value(rows).axes[0]
    assert _lines(axes) == {"test loss": [[1, 3], [10, 2]]}
    bare = [row._replace(defense="none") for row in rows]
    assert figures.loss_by_value(bare) is None


def test_each_defense_is_a_loss_and_an_accuracy():
    rows = _defended("", 1.0, "none") + _defended("", 3.0)
    rows.append(_ROW._replace(attack="trajectory"))
    axes = figures.accuracy_by_loss(rows).axes[0]
    lines = _lines(axes)
    assert lines["grad (passive)"] == [[1, 80.5], [3, 80.5]]
    assert "trajectory (passive)" not in lines
    assert [text.get_text() for text in axes.texts] == ["none", "dp_sgd"]
    assert figures.accuracy_by_loss(_defended("", 3.0)) is None
    assert figures.accuracy_by_loss(rows[:8]) is None


def _promised(epsilon, metric="epsilon_pld", **fields):
    about = {"attack": "none", "setting": "defense", "metric": metric}
    return [_ROW._replace(value=epsilon, **fields | about)]


def _shown(axes):
    """Number -> where it stands, and its colour."""
    colours = [bar.lines[0].get_color() for bar in axes.containers]
    numbers = [text for text in axes.texts if text.get_text().isdecimal()]
    places = [tuple(map(float, text.xy)) for text in numbers]
    return dict(zip((t.get_text() for t in numbers), zip(places, colours, strict=True)))


def test_leakage_is_drawn_against_relative_loss_and_coloured_by_epsilon():
    fields = {"defense": "dp_sgd", "point": "defense_epsilon=1"}
    rows = _defended("defense_name=pruning", 3.0, "pruning")
    rows += _promised(float("inf"), defense="pruning", point="defense_name=pruning")
    rows += _defended("defense_epsilon=1", 4.0) + _promised(0.9, **fields)
    rows += _promised(1.1, "epsilon_rdp", **fields)
    rows += _defended("defense_name=fed_sdp", 2.0, "fed_sdp")
    rows += _promised(
        9.0, "client_epsilon_pld", defense="fed_sdp", point="defense_name=fed_sdp"
    )
    rows += _defended("", 2.0, "none")
    model, grad = figures.leakage_by_utility(rows).axes[:2]
    assert (model.get_title(), grad.get_title()) == ("model", "grad")
    found = _shown(model)
    assert {n: place for n, (place, _) in found.items()} == {
        "1": (1, 30), "2": (1.5, 30), "3": (2, 30), "4": (1, 30)
    }  # fmt: skip
    assert [y for (_, y), _ in _shown(grad).values()] == [20] * 4
    assert found["1"][1] == found["2"][1] == "grey"
    assert found["3"][1] != found["4"][1]
    (names,) = [t.get_text() for t in grad.texts if "\n" in t.get_text()]
    assert names.splitlines() == [
        "1  none",
        "2  pruning",
        "3  dp_sgd epsilon 1: $\\varepsilon$ = 0.9",
        "4  fed_sdp: $\\varepsilon$ = 9 of a client",
    ]


def test_leakage_needs_a_defense_a_second_variant_and_a_majority():
    bare = _defended("", 1.0, "none")
    assert figures.leakage_by_utility(bare) is None
    assert figures.leakage_by_utility(_defended("", 1.0)) is None
    both = bare + _defended("", 2.0)
    assert figures.leakage_by_utility(both) is not None
    without = [row for row in both if row.attack != "majority"]
    assert figures.leakage_by_utility(without) is None


def test_all_figures_are_those_that_have_something_to_show():
    assert figures.all_figures([]) == {}
    assert list(figures.all_figures(_accuracies(2))) == ["accuracy_by_attack"]
    rows = _sweep("h", ["0", "1"]) + _losses(2.0, 1.0) + _clients(5, 50)
    assert list(figures.all_figures(rows)) == [
        "accuracy_by_attack",
        "accuracy_by_value",
        "accuracy_by_size",
        "loss_by_round",
    ]


_EVIL = "$\\frac{1}$ \n\x1b <b> \u4e2d " + "x" * 500


def test_texts_of_others_are_drawn_letter_by_letter(tmp_path):
    def spoil(row):
        name, equals, value = row.point.partition("=")
        point = f"{_EVIL}{name}={_EVIL}{value}" if equals else _EVIL
        return row._replace(attack=_EVIL, data=_EVIL, defense=_EVIL, point=point)

    rows = _sweep("h", ["0", "1"]) + _defended("h=0", 1.0) + _defended("h=1", 2.0)
    drawn = figures.all_figures([spoil(row) for row in rows] + _clients(5, 50))
    assert len(drawn) >= 5
    for figure in drawn.values():
        assert figures.png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("value", [float("nan"), 1e99, -1e99], ids=str)
def test_any_number_can_be_drawn(value):
    rows = [
        row._replace(value=value)
        for row in _sweep("h", ["0", "1"]) + _defended("h=0", 1.0) + _clients(0, 2**52)
    ]
    for figure in figures.all_figures(rows).values():
        figures.png(figure)


def test_equal_figures_give_equal_bytes():
    first, again = (figures.accuracy_by_attack(_accuracies(2)) for _ in range(2))
    assert figures.png(first) == figures.png(again)


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
