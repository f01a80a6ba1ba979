"""Is a fresh run the kept result?"""

import math

import pytest

from experiments.report import agreement
from fljax import certainty


def _verdict(fresh, kept):
    return agreement.compare(fresh, kept).verdict


@pytest.mark.parametrize(
    "value, metric, verdict",
    [
        (80.0, "aia_accuracy_percent", "equal"),
        (80.9, "aia_accuracy_percent", "agrees"),
        (81.1, "aia_accuracy_percent", "differs"),
        (81.1, "test_loss", "agrees"),
        (82.0, "test_loss", "differs"),
        (math.nan, "test_loss", "differs"),
    ],
)
def test_the_tolerance_is_a_point_or_two_percent(row, value, metric, verdict):
    kept = row._replace(metric=metric)
    assert _verdict([kept._replace(value=value)], [kept]) == verdict


def test_what_is_not_finite_equals_its_like(row):
    failed = row._replace(value=math.nan)
    infinite = row._replace(value=math.inf)
    assert _verdict([failed], [failed]) == "equal"
    assert _verdict([infinite], [infinite]) == "equal"
    for other in (failed, row, row._replace(value=-math.inf)):
        assert _verdict([infinite], [other]) == "differs"


def test_only_seeds_that_both_have_are_compared(row):
    second = row._replace(seed=1)
    assert _verdict([row], [row, second]) == "equal"
    assert _verdict([row._replace(seed=2)], [row, second]) == "differs"


def test_a_number_that_is_missing_differs_and_one_more_does_not(row):
    other = row._replace(attack="model")
    found = agreement.compare([row], [row, other])
    assert found.verdict == "differs"
    assert found.lines[1].endswith(": 80 of 100 kept, not in the run")
    found = agreement.compare([row, other], [row])
    assert found.verdict == "equal"
    assert found.lines[1] == "1 numbers of the run are not in the result"


def test_a_few_differences_are_spelled_out(row):
    kept = [row._replace(client=client) for client in range(14)]
    found = agreement.compare([each._replace(value=1.0) for each in kept], kept)
    assert "14 differ" in found.lines[0]
    assert len(found.lines) == 12 and found.lines[-1] == "  and 4 more"


@pytest.mark.parametrize(
    ("value", "of", "metric", "verdict"),
    [
        (0.509, 0.5, certainty.CALIBRATION_ERROR, "agrees"),
        (0.52, 0.5, certainty.CALIBRATION_ERROR, "differs"),
        (0.01015, 0.01, "test_loss", "agrees"),
        (0.0115, 0.01, "test_loss", "differs"),
    ],
)
def test_a_share_may_be_off_by_a_point_and_a_small_number_by_two_percent(
    row, value, of, metric, verdict
):
    kept = row._replace(metric=metric, value=of)
    assert _verdict([kept._replace(value=value)], [kept]) == verdict


def test_the_same_value_of_other_rows_differs(row):
    assert _verdict([row._replace(n=row.n + 1)], [row]) == "differs"
