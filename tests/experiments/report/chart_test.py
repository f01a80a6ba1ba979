"""A chart shows its numbers where its axes say, and no name upon another."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from experiments.report.documents import chart
from experiments.report.documents.chart import Chart, Line
from fljax.metrics import Estimate

ONE = float("nan")


def estimate(mean, half=ONE):
    return Estimate(mean, mean - half, mean + half, mean, 3)


def drawn(*lines, levels=()):
    return chart.svg(Chart("a < b", "x", lines, dict(levels), 0, 100, 50))


def test_points_and_intervals_are_where_the_axis_says():
    text = drawn(Line("own", {1.0: estimate(100, 50), 4.0: estimate(0)}))
    root = ElementTree.fromstring(text)
    circles = [each.attrib for each in root.iter() if each.tag.endswith("circle")]
    ticks = re.findall(r'<text x="52" y="([0-9.]+)"[^>]*>(\d+)<', text)
    at = {number: float(y) - 4 for y, number in ticks}
    assert [float(each["cy"]) for each in circles] == [at["100"], at["0"]]
    first = circles[0]
    assert f'd="M{first["cx"]} {at["50"]}V' in text
    assert "own: 100.0 at 1, 0.0 at 4" in text and "a &lt; b" in text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "points of every line"),
        ([Line("empty", {})], "points of every line"),
        ([Line(n, {1.0: estimate(50)}) for n in "abcdef"], "5 lines at most"),
        ([Line("own", {0.0: estimate(50)})], "expected positive x, got 0.0"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_its_title(lines, said):
    with pytest.raises(ValueError, match=f"a < b: .*{said}"):
        drawn(*lines)


def test_names_stand_apart():
    lines = [Line(f"line {n}", {1.0: estimate(50), 2.0: estimate(50)}) for n in "abc"]
    text = drawn(*lines, levels=[("level", 50.0)])
    names = re.findall(r'y="([0-9.]+)" fill="[^"]*">(?:line|level)', text)
    places = sorted(map(float, names))
    assert len(places) == 4
    assert min(b - a for a, b in itertools.pairwise(places)) >= 13


def test_an_axis_that_is_not_logarithmic_may_begin_at_zero():
    points = {x: estimate(50) for x in (0.0, 1.0, 4.0)}
    shown = Chart(
        "title", "x", [Line("own", points)], {}, 0, 100, 50, logarithmic=False
    )
    places = [float(x) for x in re.findall(r'<circle cx="([0-9.]+)"', chart.svg(shown))]
    one, four = places[1] - places[0], places[2] - places[0]
    assert abs(four - 4 * one) < 0.5 and one > 50


def test_what_is_there_to_compare_with_is_grey_and_takes_no_colour():
    points = {1.0: estimate(50), 2.0: estimate(50)}
    own, other = Line("own", points), Line("beside", points, dashed=True)
    colour = r'fill="(#\w+)">own'
    alone, after = drawn(own), drawn(other, own)
    assert re.findall(colour, alone) == re.findall(colour, after)
    assert re.findall(r'fill="(#\w+)">beside', after) != re.findall(colour, after)


def test_numbers_of_an_axis_that_would_stand_upon_another_are_left_out():
    close = {x: estimate(50) for x in (0.005, 0.0051, 0.006, 1.0)}
    text = drawn(Line("own", close))
    shown = re.findall(r'y="350"[^>]*>([0-9.]+)<', text)
    assert shown == ["0.005", "1"]
    assert len(re.findall("<circle", text)) == len(close)
