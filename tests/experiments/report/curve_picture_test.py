"""Pictures of curves: what was measured, and the paper dashed beside it."""

import re

import pytest

from experiments.report.documents import curve_picture
from experiments.report.documents.curve_picture import Curve, Picture
from experiments.report.documents.pictures import PICTURES
from fljax.driver.config import ConfigError

_COMMITTED = "fed_cdp.committed"
_MANY = r"fed_cdp_per_batch final clients=(\d+);.*"


def _told(picture):
    return re.search("<desc>(.*)</desc>", curve_picture.draw(picture), re.DOTALL)[1]


def _of(**lines):
    return Picture("title", "x", lines)


def test_the_paper_is_beside_every_reading():
    told = _told(PICTURES["fed_cdp_participants"])
    assert "the paper, of 100: 81.5 at 5, 83.1 at 10" in told
    assert re.search(r"as coded, of 100: [\d.]+ at 5, [\d.]+ at 10", told)


def test_where_all_is_clipped_the_product_of_clip_and_rate_counts():
    told = _told(PICTURES["fed_cdp_clip_by_rate"])
    assert re.search(r"clip 0.5: .* at 0.05;", told)  # a rate of 0.1
    assert re.search(r"clip 2: .* at 0.2;", told)


def test_what_has_no_x_is_a_level_unless_it_is_told_where_it_stands():
    curve = Curve(
        (_COMMITTED,), _MANY.replace("(", "").replace(")", ""), "accuracy_percent"
    )
    line = Curve(*curve[:1], _MANY, "accuracy_percent")
    told = _told(_of(line=line, level=curve, there=curve._replace(at=7.0)))
    value = re.search(r"line: ([\d.]+) at 100;", told)[1]
    assert told.endswith(f"there: {value} at 7; level: {value}")


def test_a_line_of_nothing_is_refused():
    none = Curve((_COMMITTED,), r"none=(\d+)", "accuracy_percent")
    with pytest.raises(ConfigError, match=f"{_COMMITTED}.* has no number"):
        curve_picture.draw(_of(line=none))


def test_two_numbers_for_one_place_are_refused():
    both = Curve((_COMMITTED, f"{_COMMITTED}.participants"), _MANY, "accuracy_percent")
    with pytest.raises(ConfigError, match=r"two numbers at 100"):
        curve_picture.draw(_of(line=both))
    twice = both._replace(results=(_COMMITTED, _COMMITTED))
    assert "line: " in _told(_of(line=twice))  # one number, told twice


def test_of_a_place_that_was_run_again_with_more_seeds_those_count():
    pattern = r"fed_cdp_per_batch final clients=100;participating_percent=(5)"
    names = f"{_COMMITTED}.tuned_percent", f"{_COMMITTED}.tuned_five"
    both = Curve(names, pattern, "accuracy_percent")
    few, more = (both._replace(results=(each,)) for each in both.results)
    found, alone = _told(_of(line=both)), _told(_of(line=more))
    assert found == alone != _told(_of(line=few))
    assert found == _told(_of(line=both._replace(results=both.results[::-1])))
