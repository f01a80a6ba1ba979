"""Text alternatives: title, axes and series of a figure with their values."""

import pytest
from matplotlib.figure import Figure

from experiments.report import figures
from experiments.report.figures import statements


def test_attacks_are_told_by_name_and_the_majority_by_its_level(make):
    found = statements.statements(figures.accuracy_by_attack(make.accuracies(2)))
    assert found == (
        "medical, linear, 2 seeds. Horizontal: accuracy (%), mean over seeds with 95 % "
        "interval. grad (passive): 80.5; model (passive): 90.5. majority: 60.5"
    )


def test_a_short_line_is_told_point_by_point_and_a_long_one_by_its_range(make):
    short = statements.statements(figures.loss_by_round(make.losses(3.0, 1.0)))
    assert short.endswith("test loss: 3 at 0, 1 at 1")
    long = statements.statements(
        figures.loss_by_round(make.losses(*range(9, 0, -1), 4.0))
    )
    assert long.endswith("test loss: from 9 at 0 to 4 at 9, between 1 and 9")


def test_clouds_are_told_by_their_ranges(make):
    found = statements.statements(figures.accuracy_by_size(make.clients(10, 40)))
    assert found.endswith(
        "grad (passive): 2 points, horizontally between 10 and 40, vertically always 80"
    )


def test_swept_names_are_told_as_names(make):
    found = statements.statements(
        figures.accuracy_by_value(make.sweep("kind", ["iid", "own"]))
    )
    assert "Horizontal: kind" in found
    assert "grad (passive): 80.5 at iid, 81.5 at own" in found


def test_numbered_points_are_told_with_what_the_numbers_mean(make):
    rows = make.defended("", 2.0, "none") + make.defended("", 3.0)
    found = statements.statements(figures.leakage_by_utility(rows))
    assert "Horizontal: loss of the last model sent, over that without defense" in found
    assert "1: 30 at 1. 2: 30 at 1.5" in found
    assert found.endswith("1 none; 2 dp_sgd")


def test_alt_text_others_come_letter_by_letter_in_one_line_that_ends(make):
    rows = [row._replace(data="<a> & $b$ \n" * 900) for row in make.accuracies(2)]
    figure = figures.accuracy_by_attack(rows)
    found = figures.alt_text(figures.svg(figure))
    assert found.startswith("<a> & $b$ <a> & $b$")
    assert found == statements.statements(figure)
    many = make.sweep("h", [str(i) for i in range(5)])
    many = [r._replace(attack=r.attack + str(i)) for i in range(9) for r in many]
    assert len(statements.statements(figures.accuracy_by_value(many))) <= 1200


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ""),
        (b"\x89PNG", ""),
        (b"<svg><title>a &lt;b&gt; \xff\n</title>", "a <b> \ufffd "),
        (b"<svg>" + b" " * 2**16 + b"<title>a</title>", ""),
        (b"<svg><title>" + b"a" * 9999 + b"</title>", "a" * 1200),
    ],
    ids=["empty", "png", "letters", "late", "long"],
)
def test_files_of_others_may_say_anything(content, said):
    assert figures.alt_text(content) == said


def test_an_empty_figure_says_nothing():
    assert statements.statements(Figure()) == ""


def test_points_beside_a_name_bear_it_and_cells_are_told_by_their_range():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.errorbar([1.0, 2.0], [-0.1, 0.9], xerr=[0.1, 0.1], label="last layer")
    left.set_yticks([0, 1], ["none", "dp_sgd"])
    right.imshow([[1.0, 2.0, 5.0]])
    found = statements.statements(figure)
    assert found == "last layer: none at 1, dp_sgd at 2. 1 x 3 cells between 1 and 5"
