"""How sure an adversary is of each record, and how rightly: NumPy float64 on the host.

An average accuracy is not what a patient asks. Here posteriors `[N, K]` of records are
compared with the truth `[N]`: whether "99 % sure" is right 99 times in 100, how many
records can be named with hardly an error, and how well the posterior tells those who
have a value from those who do not. The adversary orders the records by its posterior
alone; the truth only scores the order.

Attacks may not import this module: they never see the truth.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn import metrics as scores_lib

PRECISION = 0.99
FALSE_POSITIVES = 1e-3  # rate, as in Carlini et al. 2022 for membership
_DRAWS = 100
_AT = "accuracy_at_confidence_"

CALIBRATION_ERROR = "calibration_error"
BY_CHANCE = "calibration_error_by_chance"
NAMED = "named_at_99_precision_percent"
NAMED_BY_CHANCE = "named_at_99_precision_by_chance_percent"
AUC = "posterior_auc"
FOUND = "found_at_0.001_false_positives_percent"
FOUND_BY_CHANCE = "found_at_0.001_false_positives_by_chance_percent"

WORDS = {
    "brier_score": "Brier score",
    CALIBRATION_ERROR: "calibration error",
    BY_CHANCE: "calibration error of an honest posterior, by chance",
    NAMED: "rows that can be named with 99 % precision, %",
    NAMED_BY_CHANCE: "rows named with 99 % precision in random order, by chance, %",
    AUC: "area under the ROC curve of the posterior",
    FOUND: "found at a false positive rate of 0.001, %",
    FOUND_BY_CHANCE: "found at a false positive rate of 0.001 in random order, by chance, %",
}


class Posterior(NamedTuple):
    """What an adversary believes of records, and the truth.

    Attributes:
      probability: `[N, K]`; a row that is not finite believes nothing.
      truth: `[N]` number of the candidate.
    """

    probability: np.ndarray
    truth: np.ndarray

    @property
    def confidence(self) -> np.ndarray:
        """`[N]` probability of the value that is named."""
        return self.probability.max(axis=1)

    @property
    def right(self) -> np.ndarray:
        """`[N]` how often that value is the true one: 0, 1, or, of equals, by chance."""
        best = self.probability == self.confidence[:, None]
        return best[np.arange(len(self.truth)), self.truth] / best.sum(axis=1)


class Bins(NamedTuple):
    """A calibration plot: what is believed beside what is so.

    Attributes:
      middle: `[B]` of each bin of confidence, between `1 / K` and 1.
      confidence: `[B]` mean over its records, NaN without any.
      accuracy: `[B]` share of them that is named rightly, equals drawn by chance.
      count: `[B]` records.
    """

    middle: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray


def posterior(probability, truth, mask) -> Posterior:
    """The records that are real, in a row; odds that are not finite become even ones.

    Args:
      probability: `[..., K]` of each value, between 0 and 1, with sum 1.
      truth: `[...]` the number of the value that is so.
      mask: `[...]` bool, which records are real.
    """
    mask = np.asarray(mask, bool)
    found = np.asarray(probability, np.float64)[mask]
    sound = np.isfinite(found).all(axis=1, keepdims=True)
    found = np.where(sound, found, 1 / found.shape[1])
    return Posterior(found, np.asarray(truth)[mask].astype(int))


def at_confidence(middle: float) -> str:
    """Name of the accuracy of a bin in rows of results.

    Example:
      >>> at_confidence(0.975)
      'accuracy_at_confidence_97.5_percent'
    """
    return f"{_AT}{100 * middle:.4g}_percent"


def confidence_of(metric: str) -> float | None:
    """Middle of the bin whose accuracy a metric is, None of another metric.

    Example:
      >>> confidence_of("accuracy_at_confidence_97.5_percent")
      0.975
    """
    text = metric.removeprefix(_AT).removesuffix("_percent")
    plain = metric.startswith(_AT) and text.replace(".", "", 1).isdecimal()
    return round(float(text) / 100, 6) if plain else None


def scores(given: Posterior) -> dict[str, float]:
    """Every measure below by its name in rows of results; none without a record."""
    if not len(given.truth):
        return {}
    area, found = discrimination(given)
    return {
        "brier_score": brier_score(given),
        CALIBRATION_ERROR: calibration_error(given),
        BY_CHANCE: calibration_error_by_chance(given),
        NAMED: 100 * named(given),
        NAMED_BY_CHANCE: 100 * named_by_chance(given),
        AUC: area,
        FOUND: 100 * found,
        FOUND_BY_CHANCE: 100 * _found_by_chance(given),
    }


def brier_score(given: Posterior) -> float:
    """Mean squared distance of the posterior from the one-hot truth; 0 is best.

    Brier (1950): between 0 and 2, and 0.5 for a binary coin that always says one half.
    """
    exact = np.eye(given.probability.shape[1])[given.truth]
    return float(np.square(given.probability - exact).sum(axis=1).mean())


def bins(given: Posterior, num_bins: int = 10) -> Bins:
    """Records by their confidence."""
    edges = _edges(given, num_bins)
    which = _places(given, num_bins)
    count = np.bincount(which, minlength=num_bins)
    with np.errstate(invalid="ignore"):
        confidence, accuracy = (
            np.bincount(which, each, minlength=num_bins) / count
            for each in (given.confidence, given.right)
        )
    return Bins((edges[1:] + edges[:-1]) / 2, confidence, accuracy, count)


def plotted(found: Bins) -> Iterator[tuple[str, float, int]]:
    """Name, accuracy in percent and records of each bin that has any."""
    pairs = zip(found.middle, found.accuracy, found.count, strict=True)
    for middle, accuracy, count in pairs:
        if count:
            yield at_confidence(middle), 100 * float(accuracy), int(count)


def calibration_error(given: Posterior, num_bins: int = 10) -> float:
    """Expected calibration error of the named value (Guo et al. 2017); 0 is best.

    Mean distance of confidence and accuracy over bins of confidence, weighted by
    records. Few records have an error by chance, too: `calibration_error_by_chance`.
    """
    found = bins(given, num_bins)
    gap = np.abs(found.confidence - found.accuracy)
    return float(np.nansum(found.count * gap) / len(given.truth))


def calibration_error_by_chance(given: Posterior, num_bins: int = 10) -> float:
    """What the error would be on average if the posterior were exactly right.

    Truths are drawn from the posterior itself, with a generator of its own.
    """
    rng = np.random.default_rng(0)
    equals = (given.probability == given.confidence[:, None]).sum(axis=1)
    drawn = rng.random((_DRAWS, len(given.truth))) < equals * given.confidence
    drawn = drawn / equals  # as `right` has it
    places = np.eye(num_bins)[_places(given, num_bins)]
    gap = (drawn - given.confidence) @ places  # [draws, B]
    return float(np.abs(gap).sum(axis=1).mean() / len(given.truth))


def named(given: Posterior, precision: float = PRECISION) -> float:
    """Share of the records that the adversary can name with so few errors.

    It names them in the order of its confidence, those of equal confidence together,
    and stops where it does best: the largest share whose precision is high enough.
    Luck alone gives some, for a first record that is right is named: `named_by_chance`.
    """
    order = np.argsort(-given.confidence, kind="stable")
    sure, right = given.confidence[order], given.right[order]
    ends = np.append(np.flatnonzero(np.diff(sure)), len(sure) - 1)
    enough = ends[np.cumsum(right)[ends] >= precision * (ends + 1)]
    return float((enough.max() + 1) / len(sure)) if len(enough) else 0.0


def named_by_chance(given: Posterior, precision: float = PRECISION) -> float:
    """The same share on average if it named them in random order, never two at once."""
    rng, places = np.random.default_rng(0), 1 + np.arange(len(given.truth))
    total = 0
    for _ in range(_DRAWS):
        right = np.cumsum(rng.permutation(given.right))
        total += places[right >= precision * places].max(initial=0)
    return float(total / _DRAWS / len(places))


def discrimination(
    given: Posterior, false_positives: float = FALSE_POSITIVES
) -> tuple[float, float]:
    """How well those with a value are told from those without it.

    Args:
      given: posteriors and truth.
      false_positives: rate, of those without the value, that is taken for it.

    Returns:
      The area under the curve and the share of those with the value that is found at
      that rate, each the mean over all values that some record has and some has not;
      NaN without such a value. A rate below one in those without it means not one.
    """
    areas, found = [], []
    for value in range(given.probability.shape[1]):
        has = given.truth == value
        if has.all() or not has.any():
            continue
        away, there, _ = scores_lib.roc_curve(
            has, given.probability[:, value], drop_intermediate=False
        )
        areas.append(scores_lib.auc(away, there))
        found.append(there[away <= false_positives].max())
    if not areas:
        return float("nan"), float("nan")
    return float(np.mean(areas)), float(np.mean(found))


def found_by_chance(others: int, false_positives: float = FALSE_POSITIVES) -> float:
    """Share that is found on average if all records are in random order.

    Those before the first of the others who is one too many: more than the rate itself,
    and many times that of few others.

    Args:
      others: records without the value.
      false_positives: rate, of these, that is taken for it.

    Example:
      >>> round(found_by_chance(99), 12), round(found_by_chance(999_999), 12)
      (0.01, 0.001)
    """
    allowed = np.searchsorted(
        np.arange(others + 1) / max(others, 1), false_positives, "right"
    )
    return float(allowed / (others + 1))


def _found_by_chance(given: Posterior) -> float:
    """As `discrimination` has it."""
    has = np.bincount(given.truth, minlength=given.probability.shape[1])
    others = [len(given.truth) - count for count in has if 0 < count < len(given.truth)]
    return float(np.mean([*map(found_by_chance, others)])) if others else float("nan")


def _edges(given: Posterior, num_bins: int) -> np.ndarray:
    return np.linspace(1 / given.probability.shape[1], 1, num_bins + 1)


def _places(given: Posterior, num_bins: int) -> np.ndarray:
    """`[N]` number of each record's bin."""
    inner = _edges(given, num_bins)[1:-1]
    return np.searchsorted(inner, given.confidence, side="right")
