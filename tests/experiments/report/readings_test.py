"""Pictures of readings: what was measured, and the paper dashed beside it."""

import re

import pytest

from experiments.report.documents import readings_picture
from experiments.report.documents.readings_picture import Measured, Picture
from fljax.driver.config import ConfigError


def test_the_paper_is_beside_every_reading():
    text = readings_picture.draw(readings_picture.PICTURES["fed_cdp_participants"])
    told = re.search("<desc>(.*)</desc>", text, re.DOTALL)[1]
    assert "the paper, of 100: 81.5 at 5, 83.1 at 10" in told
    assert re.search(r"as coded: [\d.]+ at 5, [\d.]+ at 10", told)


def test_where_all_is_clipped_the_product_of_clip_and_rate_counts():
    text = readings_picture.draw(readings_picture.PICTURES["fed_cdp_clip_by_rate"])
    told = re.search("<desc>(.*)</desc>", text, re.DOTALL)[1]
    assert re.search(r"clip 0.5: .* at 0.05;", told)  # a rate of 0.1
    assert re.search(r"clip 2: .* at 0.2;", told)


@pytest.mark.parametrize(
    ("count", "pattern", "said"),
    [(1, r"none=(\d+)", "nothing"), (2, r"final clients=(\d+);.*", "two")],
)
def test_a_line_of_nothing_or_of_two_numbers_for_a_place_is_refused(
    count, pattern, said
):
    line = Measured(("fed_cdp.committed",) * count, "fed_cdp_per_batch", pattern)
    with pytest.raises(ConfigError, match=f"fed_cdp.committed have {said} of"):
        readings_picture.draw(Picture("x", {"line": line}))
