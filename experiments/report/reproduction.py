"""Whether a measured number reproduces a published one: the rule, in code and words."""

import math
from typing import NamedTuple

from fljax.metrics import Estimate

REPRODUCED = "reproduced"
WIDE = "too wide to tell"
ABOVE = "above"
BELOW = "below"
NOT_COMPARABLE = "not comparable"
SINGLE_SEED = "single seed"
NOT_FINITE = "not finite"
NO_NUMBER = "no published number"
KINDS = (
    REPRODUCED,
    WIDE,
    ABOVE,
    BELOW,
    NOT_COMPARABLE,
    SINGLE_SEED,
    NOT_FINITE,
    NO_NUMBER,
)
_WIDE, _APART = 0.1, 0.01  # of a whole
_WIDE_SHARE = 0.5  # of the published number, where that is no share
_ROUNDING = 0.005  # published numbers are rounded to two decimals

RULE = {
    REPRODUCED: (
        "our 95 % interval (over seeds; over rows of an accuracy that is the same with "
        "every seed; over the clients of what an attack does to each) meets the published mean ± 2 published standard deviations "
        "(the published mean alone where no deviation was published); a distance below "
        "0.005 counts as meeting, because published numbers are rounded. The "
        "published mean of one or a few random draws, without their deviation, must meet the "
        "95 % interval of a mean of as many more draws of ours. A number that is computed and "
        "not measured must equal the published one to one unit of its last digit"
    ),
    WIDE: (
        "it does, but it spans more than 10 points, or, where the number is no share "
        "and not zero, more than half of it, and so meets almost anything; or it also "
        "holds what naming the most frequent value reaches, from which the published number "
        "is more than a point away"
    ),
    ABOVE: "it does not and lies higher, by the distance given",
    BELOW: "it does not and lies lower, by the distance given",
    NOT_COMPARABLE: (
        "the run had other data, another model or another defense than the published "
        "number, which then stands in a column of its own"
    ),
    SINGLE_SEED: "there is no interval over seeds",
    NOT_FINITE: "the measurement failed",
    NO_NUMBER: "the paper gives none for this attack and setting",
}


class Number(NamedTuple):
    """A published number.

    Attributes:
      mean: over the paper's seeds.
      std: standard deviation over them, None where none is published.
      unit: of the last digit, for a number that is computed and not measured.
      draws: random draws that the mean is of, where that matters more than our own number
        and no deviation is published; None: it is taken for exact.
      is_printed: whether it stands in the paper, or follows from what does.
      differs: in what the run differs from its publication, beside what all numbers of a
        table do; empty if in nothing.
    """

    mean: float
    std: float | None = None
    unit: float | None = None
    draws: int | None = None
    is_printed: bool = True
    differs: str = ""

    def __str__(self) -> str:
        return " ± ".join(_decimal(x) for x in (self.mean, self.std) if x is not None)


class Verdict(NamedTuple):
    """One of `KINDS`, and what else there is to say."""

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}".strip()


def judge(
    estimate: Estimate,
    number: Number | None,
    differs: str = "",
    *,
    whole: float | None = 100,
    guess: float | None = None,
) -> Verdict:
    """Applies `RULE`.

    Args:
      estimate: ours.
      number: the published one, None if there is none.
      differs: in what the run differs from the publication, empty if in nothing.
      whole: all of what both are shares of, 100 of percentages; None if they are none.
      guess: what naming the most frequent value reaches, where that is known.
    """
    if number is None:
        return Verdict(NO_NUMBER)
    if differs or number.differs:
        different = ", ".join(filter(None, [differs, number.differs]))
        return Verdict(NOT_COMPARABLE, f"({different})")
    if not math.isfinite(estimate.mean):
        return Verdict(NOT_FINITE)
    if number.unit is not None:
        return _computed(last_digits(estimate.mean, number), number.unit)
    if not math.isfinite(estimate.high - estimate.low):
        return Verdict(SINGLE_SEED)
    low, high = estimate[1:3] if number.draws is None else _more(estimate, number.draws)
    slack = 2 * (number.std or 0)
    over = low - (number.mean + slack)
    under = (number.mean - slack) - high
    if over >= _ROUNDING:
        return Verdict(ABOVE, f"by {over:.2f}")
    if under >= _ROUNDING:
        return Verdict(BELOW, f"by {under:.2f}")
    limit = _WIDE_SHARE * abs(number.mean) if whole is None else _WIDE * whole
    wide = high - low > (limit or math.inf)
    if guess is not None and whole is not None:
        wide |= low <= guess <= high and abs(number.mean - guess) > _APART * whole
    return Verdict(WIDE if wide else REPRODUCED)


def _more(estimate: Estimate, draws: int) -> tuple[float, float]:
    """Prediction interval of a mean of more draws, of Student's interval of ours."""
    half = (estimate.high - estimate.mean) * math.sqrt(1 + estimate.repetitions / draws)
    return estimate.mean - half, estimate.mean + half


def last_digits(value: float, number: Number) -> int:
    """By how many units of its last digit a value, rounded likewise, is above a number."""
    unit = number.unit or 1.0
    return round(value / unit) - round(number.mean / unit)


def _computed(difference: int, unit: float) -> Verdict:
    if abs(difference) <= 1:
        return Verdict(REPRODUCED)
    kind = ABOVE if difference > 0 else BELOW
    return Verdict(kind, f"by {abs(difference) * unit:g}")


def _decimal(number: float) -> str:
    """At least two decimals, more where they were published."""
    rounded = f"{number:.2f}"
    return rounded if float(rounded) == number else f"{number:g}"
