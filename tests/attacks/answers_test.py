"""An attack's mistake is named; it never reads as a training that leaks nothing."""

import numpy as np
import pytest

from fljax.attacks import answers
from fljax.attacks.estimates import Prediction
from fljax.types import Known


class _View:
    """Two clients, of three rows and of two; the second value of two is the last."""

    known = Known(None, None, np.array([[True] * 3, [True, True, False]]))
    candidates, continuous = np.array([[-1.0], [1.0]]), False


def _said(found, view=_View) -> str:
    with pytest.raises(answers.AnswerError) as error:
        answers.checked("mine", view, found)
    return str(error.value)


def _of(value, **more):
    return {"mine": Prediction(np.asarray(value), **more)}


@pytest.mark.parametrize(
    "value", [[[0, 1, 1], [1, 0, 7]], [[0, -1, 1], [1.0, 0, np.nan]]]
)
def test_what_numbers_candidates_is_taken_and_padding_may_be_anything(value):
    found = _of(value, details={"probability": np.full((2, 3, 2), 0.5)})
    assert answers.checked("mine", _View, found)["mine"].value is found["mine"].value


def test_of_a_row_without_an_answer_the_posterior_may_be_none():
    told = np.full((2, 3, 2), 0.5)
    told[0, 1] = np.nan
    found = _of([[0, -1, 1], [1, 0, 0]], details={"probability": told})
    assert answers.checked("mine", _View, found)["mine"].value is found["mine"].value
    told[0, 0] = np.nan
    assert "probability: of each row" in _said(found)


@pytest.mark.parametrize(
    "found, said",
    [
        (_of([[0.5, 1, 1], [1, 0, 0]]), "candidates from 0 to 1, or -1 for none, got 0.5"),
        (_of([[0, 1, 2], [1, 0, 0]]), "got 2"),
        (_of([[0, 1, np.nan], [1, 0, 0]]), "got nan"),
        (_of([[0, 1], [1, 0], [0, 0]]), r"value: numbers [2, 3], got int64 [3, 2]"),
        (_of([["a"] * 3] * 2), "got str"),
        (_of(np.ones((2, 3, 2))), "got float64 [2, 3, 2]"),
        (
            _of(np.ones((2, 3)), details={"probability": np.ones((2, 3))}),
            "probability: numbers [2, 3, 2]",
        ),
        (
            _of(np.ones((2, 3)), diagnostics={"misfit": np.ones(3)}),
            "diagnostic misfit: numbers [2]",
        ),
        (
            _of(np.ones((2, 3)), details={"probability": np.full((2, 3, 2), 0.9)}),
            "probability: of each row 0 or more, 1 in all",
        ),
        (
            _of(np.ones((2, 3)), details={"probability": np.full((2, 3, 2), np.nan)}),
            "probability: of each row",
        ),
        (np.ones((2, 3)), "expected {name: Estimate}, got ndarray"),
        ({"mine": np.ones((2, 3))}, "one of Prediction, LabelEstimate"),
        ({"model": Prediction(np.ones((2, 3)))}, "called mine or mine_..., got 'model'"),
    ],
)  # fmt: skip
def test_another_answer_is_named(found, said):
    assert "attack 'm" in (text := _said(found)) and said in text


def test_a_number_may_be_any():
    class OfANumber(_View):
        continuous = True

    assert answers.checked("mine", OfANumber, _of([[0.5, np.nan, 9]] * 2))
    assert "numbers [2, 3]" in _said(_of([0.5, 1]), OfANumber)
    assert "got infinity" in _said(_of([[0.5, np.inf, 9]] * 2), OfANumber)


def test_lists_are_taken_as_the_arrays_that_they_make():
    given = {"mine": Prediction([np.zeros(3), np.ones(3)])}
    value = answers.checked("mine", _View, given)["mine"].value
    np.testing.assert_array_equal(value, [[0, 0, 0], [1, 1, 1]])
    given = {"mine": Prediction([np.zeros(3), np.ones(2)])}
    assert "value: numbers [2, 3], got a ragged list" in _said(given)
    told = _of([[0, 1, 1], [1, 0, 0]], diagnostics=np.ones(2))
    assert "diagnostics: numbers by their names, got ndarray" in _said(told)
