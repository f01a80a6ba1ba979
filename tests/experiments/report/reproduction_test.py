"""The rule of the verdicts, at its edges."""

import math

import pytest

from experiments.report import reproduction
from experiments.report.reproduction import Number, judge
from fljax.metrics import Estimate


def _ours(low, high, mean=None):
    mean = (low + high) / 2 if mean is None else mean
    return Estimate(mean, low, high, mean, 3)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (94.5, 96.5, "reproduced"),
        (91.0, 93.0, "reproduced"),
        (91.0, 92.996, "reproduced"),
        (91.0, 92.75, "below by 0.25"),
        (97.0, 98.0, "reproduced"),
        (97.004, 98.0, "reproduced"),
        (97.5, 98.0, "above by 0.50"),
        (90.0, 100.0, "reproduced"),
        (89.0, 99.5, "too wide to tell"),
    ],
    ids=[
        "inside", "touches below", "rounding below", "below", "touches above",
        "rounding above", "above", "10 points", "more than 10 points",
    ],
)  # fmt: skip
def test_our_interval_must_meet_the_mean_and_two_deviations(low, high, expected):
    assert str(judge(_ours(low, high), Number(95.0, 1.0))) == expected


@pytest.mark.parametrize(
    ("low", "high", "published", "expected"),
    [
        (0.9, 1.4, 1.0, "reproduced"),
        (0.0, 2.97, 1.168, "too wide to tell"),
        (0.0, 0.17, 0.0, "reproduced"),
        (280.0, 310.0, 300.0, "reproduced"),
    ],
)
def test_what_is_no_percentage_is_wide_beside_its_own_size(
    low, high, published, expected
):
    assert judge(_ours(low, high), Number(published), whole=None).kind == expected


@pytest.mark.parametrize(
    ("guess", "expected"),
    [(None, "reproduced"), (93.9, "reproduced"), (94.1, "too wide to tell"),
     (95.4, "reproduced")],
    ids=["unknown", "below", "held", "near"],
)  # fmt: skip
def test_what_holds_guessing_as_well_tells_nothing(guess, expected):
    assert judge(_ours(94.0, 97.0), Number(96.0), guess=guess).kind == expected
    printed = Number(guess or 95.0)  # one that is itself no more than a guess
    assert judge(_ours(93.0, 97.0), printed, guess=guess).kind == "reproduced"


def test_without_published_deviation_the_interval_must_hold_the_mean():
    assert judge(_ours(94.0, 95.0), Number(95.0)).kind == "reproduced"
    assert str(judge(_ours(94.0, 94.9), Number(95.0))) == "below by 0.10"


def test_a_few_draws_must_meet_the_interval_of_as_many_more():
    ten = Estimate(66.0, 64.0, 68.0, 66.0, 10)  # one more: 66 - 6.63 to 66 + 6.63
    assert str(judge(ten, Number(72.0, draws=1))) == "too wide to tell"
    assert str(judge(ten, Number(74.0, draws=1))) == "below by 1.37"
    # Of five: 66 - 3.46 to 66 + 3.46.
    assert str(judge(ten, Number(69.0, draws=5))) == "reproduced"
    assert str(judge(ten, Number(70.0, draws=5))) == "below by 0.54"
    assert str(judge(ten, Number(72.0))) == "below by 4.00"


def test_what_cannot_be_compared_gets_no_judgement():
    single = Estimate(95.0, math.nan, math.nan, 95.0, 1)
    failed = Estimate(math.nan, math.nan, math.nan, math.nan, 3)
    number = Number(95.0, 1.0)
    assert judge(_ours(94, 96), None).kind == "no published number"
    assert judge(single, number).kind == "single seed"
    assert judge(failed, number).kind == "not finite"
    told = judge(_ours(94, 96), number, "other data")
    assert str(told) == "not comparable (other data)"
    assert judge(_ours(94, 96), None, "other data").kind == "no published number"
    number = number._replace(differs="another end")
    assert str(judge(_ours(94, 96), number)) == "not comparable (another end)"
    told = judge(_ours(94, 96), number, "other data")
    assert str(told) == "not comparable (other data, another end)"


@pytest.mark.parametrize(
    ("ours", "expected", "digits"),
    [
        (0.82274, "reproduced", 0),
        (0.82276, "reproduced", 1),
        (0.8226, "reproduced", -1),
        (0.8229, "above by 0.0002", 2),
        (0.8199, "below by 0.0028", -28),
    ],
)
def test_a_computed_number_is_compared_by_its_last_digit(ours, expected, digits):
    computed = Estimate(ours, math.nan, math.nan, ours, 1)
    number = Number(0.8227, unit=1e-4)
    assert str(judge(computed, number)) == expected
    assert reproduction.last_digits(ours, number) == digits
    assert str(number) == "0.8227"
    failed = Estimate(math.nan, math.nan, math.nan, math.nan, 1)
    assert judge(failed, number).kind == "not finite"


def test_every_verdict_has_its_rule_in_words():
    assert tuple(reproduction.RULE) == reproduction.KINDS


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(95.9, 0.04), "95.90 ± 0.04"),
        (Number(1.168), "1.168"),
        (Number(0.2955), "0.2955"),
        (Number(56.1, 1.12), "56.10 ± 1.12"),
    ],
)
def test_published_numbers_keep_their_digits(number, text):
    assert str(number) == text
