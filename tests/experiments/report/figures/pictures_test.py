"""Picture grids: a row for each case, a column for each image."""

import numpy as np
import pytest

from experiments.report import figures
from experiments.report.figures.pictures import pictures


def _images(count, channels=1, value=0.5):
    return np.full((count, 4, 6, channels), value)


@pytest.mark.parametrize("channels", [1, 3], ids=["grey", "colour"])
def test_a_grid_has_a_row_for_each_case_and_a_column_for_each_image(channels):
    rows = {"truth": _images(3, channels), "short": _images(2, channels)}
    captions = {"short": ["0.1", "0.2"]}
    figure = pictures(rows, captions=captions, columns=["a", "b", "c"], title="t")
    shown = [len(axes.images) for axes in figure.axes]
    assert shown == [1, 1, 1, 1, 1, 0]
    names = [axes.get_ylabel() for axes in figure.axes]
    assert names == ["truth", "", "", "short", "", ""]
    assert [axes.get_title() for axes in figure.axes[:3]] == ["a", "b", "c"]
    assert [axes.get_xlabel() for axes in figure.axes[3:5]] == ["0.1", "0.2"]
    shape = (4, 6) if channels == 1 else (4, 6, 3)
    assert figure.axes[0].images[0].get_array().shape == shape
    drawn = figures.svg(figure)
    assert drawn.count(b"<image ") == 5
    said = "t. truth: 3 pictures. short: 2 pictures (0.1, 0.2)"
    assert figures.alt_text(drawn) == said


def test_pixels_are_cut_to_what_can_be_shown():
    x = _images(1)
    x[0, 0, :4, 0] = [-3.0, 7.0, np.nan, np.inf]
    found = pictures({"wild": x}).axes[0].images[0]
    assert found.get_array()[0, :4].tolist() == [0.0, 1.0, 0.5, 0.5]
    assert found.get_clim() == (0, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "expected at least one row"),
        ({"x": np.zeros((4, 6, 1))}, r"of x, got \[4, 6, 1\]"),
        ({"x": np.zeros((0, 4, 6, 1))}, "of x, got"),
        ({"x": np.zeros((2, 4, 6, 2))}, "of x, got"),
    ],
    ids=["none", "one_image", "empty", "two_channels"],
)
def test_what_is_no_row_of_images_is_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        pictures(rows)
