"""Rows from sums and their groups against the truth."""

import numpy as np
import pytest

from experiments.rows_of_sums import scores

_TRUTH = scores.Truth(np.arange(12).reshape(6, 2), 3)


@pytest.mark.parametrize(
    ("rows", "groups", "wanted"),
    [
        (range(6), [7, 7, 7, 9, 9, 9], [100, 0, 100, 0, 100]),
        (range(3), [0, 0, 2], [50, 0, 100 / 6, 0, 61.5]),
        ([0, 3], [4, 4], [100 / 3, 0, 0, 100, 41.0]),
        ([], [], [0, 0, 0, 0, 55.8]),
    ],
    ids=["all", "two_of_three", "one_of_each_client", "none"],
)
def test_rows_and_pairs_are_counted(rows, groups, wanted):
    answer = scores.Answer(_TRUTH.rows[list(rows)], np.array(groups, int))
    found = scores.score(answer, _TRUTH)
    np.testing.assert_allclose(list(found.values()), wanted, atol=0.05)


def test_a_row_that_is_none_makes_its_pairs_wrong():
    answer = scores.Answer(np.array([[0, 1], [99, 99]]), np.array([3, 3]))
    found = scores.score(answer, _TRUTH)
    wrong = found["rows_wrong_percent"], found["pairs_wrong_percent"]
    assert wrong == pytest.approx((100 / 6, 100))
