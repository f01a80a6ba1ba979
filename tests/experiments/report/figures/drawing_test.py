"""All figures: which are drawn at all, and what is in their files."""

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from experiments.report import figures

_FIGURES = [
    figures.accuracy_by_attack,
    figures.loss_by_round,
    figures.accuracy_by_client,
    figures.accuracy_by_size,
    figures.accuracy_by_sum,
    figures.calibration,
    figures.accuracy_by_value,
    figures.loss_by_value,
    figures.accuracy_by_active_rounds,
    figures.accuracy_by_loss,
    figures.leakage_by_utility,
]


@pytest.mark.parametrize("draw", _FIGURES)
@pytest.mark.parametrize("count", [0, 1], ids=["none", "rank"])
def test_rows_of_another_kind_make_no_figure(row, draw, count):
    assert draw(count * [row._replace(metric="rank")]) is None


def test_all_figures_are_those_that_have_something_to_show(make):
    assert figures.all_figures([]) == {}
    assert list(figures.all_figures(make.accuracies(2))) == ["accuracy_by_attack"]
    rows = make.sweep("h", ["0", "1"]) + make.losses(2.0, 1.0) + make.clients(5, 50)
    assert list(figures.all_figures(rows)) == [
        "accuracy_by_attack",
        "accuracy_by_value",
        "accuracy_by_client",
        "accuracy_by_size",
        "loss_by_round",
    ]


_EVIL = "$\\frac{1}$ \n\x1b <b> \u4e2d " + "x" * 500


def test_texts_of_others_are_drawn_letter_by_letter(make, tmp_path):
    def spoil(row):
        name, equals, value = row.point.partition("=")
        point = f"{_EVIL}{name}={_EVIL}{value}" if equals else _EVIL
        return row._replace(attack=_EVIL, data=_EVIL, defense=_EVIL, point=point)

    rows = (
        make.sweep("h", ["0", "1"])
        + make.defended("h=0", 1.0)
        + make.defended("h=1", 2.0)
    )
    drawn = figures.all_figures([spoil(row) for row in rows] + make.clients(5, 50))
    assert len(drawn) >= 5
    for figure in drawn.values():
        drawn = figures.svg(figure)
        ElementTree.fromstring(drawn)
        assert b"<b>" not in drawn


@pytest.mark.parametrize("value", [float("nan"), 1e99, -1e99], ids=str)
def test_any_number_can_be_drawn(make, value):
    rows = [
        row._replace(value=value)
        for row in make.sweep("h", ["0", "1"])
        + make.defended("h=0", 1.0)
        + make.clients(0, 2**52)
    ]
    drawn = figures.all_figures(rows)
    assert len(drawn) > 3
    for figure in drawn.values():
        figures.svg(figure)


def test_equal_figures_give_equal_bytes(make):
    first, again = (figures.accuracy_by_attack(make.accuracies(2)) for _ in range(2))
    assert figures.svg(first) == figures.svg(again)


_AFRESH = """
import hashlib, sys
from experiments.report import figures
from fljax.results import Row
rows = [
    Row("aia", "toy", "mlp", "none", attack, "passive", "", seed, "all",
        "aia_accuracy_percent", 80.0 + seed, 9)
    for attack in ("grad", "model") for seed in range(2)
]
drawn = figures.svg(figures.accuracy_by_attack(rows))
print(hashlib.sha256(drawn).hexdigest())
"""


@pytest.mark.slow
def test_two_processes_write_the_same_bytes_and_no_date():
    def digest(seed):
        program = (sys.executable, "-c", _AFRESH)
        env = os.environ | {"PYTHONHASHSEED": seed}
        return subprocess.run(program, env=env, capture_output=True, check=True).stdout

    assert digest("1") == digest("2")


def test_letters_are_paths_and_nothing_is_said_of_time_or_program(make):
    drawn = figures.svg(figures.accuracy_by_attack(make.accuracies(2)))
    for sign in (b"<text", b"font-family", b"<metadata", b"Matplotlib", b"<!DOCTYPE"):
        assert sign not in drawn


@pytest.mark.slow
def test_many_points_are_one_picture_of_them(make):
    few = figures.svg(figures.accuracy_by_size(make.clients(*range(1, 1000))))
    many = figures.svg(figures.accuracy_by_size(make.clients(*range(1, 20_000))))
    assert b"<image" not in few
    assert b"<image" in many
    assert len(many) < 100_000


def test_a_figure_without_anything_is_drawn_too():
    assert figures.svg(Figure()).startswith(b"<svg ")


@pytest.mark.slow
def test_figures_leave_the_users_backend_alone():
    program = "import sys, experiments.report.figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
