"""Whether an attack shows a leak: one rule for the audit, the report and every table.

What an attack names rightly need not come from messages. So it is compared with
references that know nothing of these rows' part in the training:

* `majority`: always a client's most frequent value, or median (`metrics.usual_values`);
* `imputation`: what the other columns tell to who has rows of the same population
  (`fljax.imputation`; Jayaraman and Evans, "Are attribute inference attacks just
  imputation?", CCS 2022);
* `strangers`: the same attack on rows of other people, `OTHERS` with others' messages.

Gains over a reference are paired by repetition: a seed, or a client of one seed. Their
mean has an interval over the rows where each client's score has one, else over the
repetitions (Student). A stranger's row that is drawn for several clients counts once.

* *leaks*: above every reference, on average or, where clients have intervals over their
  own rows, for some client (where the average is not, of shares beside imputation that
  no coin explains);
* *predictable without messages*: above the first reference, but another does as well;
* *not shown*: all else. Another attack may succeed where these fail.

Of audits of rows that never met the messages at most one in twenty shows a leak by
chance: attacks (and rules, `fljax.auditing.unusual`) share the error of 5 % equally, half
of each share is for the clients one by one. That is of intervals over rows, or of
strangers: what rows that seeds share happen to be, no interval over seeds knows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from fljax import metrics

LEAKS = "leaks"
PREDICTABLE = "predictable without messages"
NOT_SHOWN = "not shown"
MAJORITY, IMPUTATION, STRANGERS = "majority", "imputation", "strangers"
AS_KNOWN = "as_known"  # setting of imputation from what is known of the rows
USES = "strangers_uses"  # metric of `Reference.uses`
OTHERS, PERMUTED = "messages of others", "permuted"  # the latter shown, no reference
# Metric of the most that anyone can have (`privacy.bounds`), and what more than that means.
CEILING = "accuracy_ceiling_percent"
IMPOSSIBLE = "above what any adversary can have"
BLIND = "not even a perfect attack would be shown here"
_CHANCE = 0.999  # interval over the rows that lies above it
_ERROR = 0.05  # of an audit
_ROUNDING = 1e-9  # of a gain, relative to the reference

RULE = {
    LEAKS: "through messages: the attack is above the majority, above imputation from "
    "the other columns, and above the same attack on strangers (of labels, on others' "
    "messages), where these were run: the intervals of its mean gains over each lie above "
    "0, or those of some client over its own rows do, unless a coin explains it. Of audits "
    "of rows that never met the messages at most one in twenty shows a leak by chance",
    PREDICTABLE: "the attack is above the majority, but imputation or the attack on "
    "strangers does as well on average, to within one point (0.01 for a distance, 0 for "
    "an error), which is no proof that it does: what the attack tells may be what anyone "
    "could guess who knows the population",
    NOT_SHOWN: "neither, which is no proof: a better attack may succeed",
}


class Measure(NamedTuple):
    """A number by which a leak is told.

    Attributes:
      metric: its name in result rows.
      sign: 1 if more of it is a leak, -1 if less is.
      margin: gain that still counts as nothing learned, in units of the metric.
      text: what it is, for people.
    """

    metric: str
    sign: int
    margin: float
    text: str


ACCURACY = Measure("aia_accuracy_percent", 1, 1.0, "% of the values named rightly")
ERROR = Measure("aia_mean_absolute_error", -1, 0.0, "mean absolute error")
DISTANCE = Measure(
    "total_variation", -1, 0.01, "total variation from the true distribution"
)
REBUILT = Measure("rebuilt_rows_percent", 1, 1.0, "% of the rows rebuilt")

Ends = Sequence[tuple[float, float]] | np.ndarray


class Reference(NamedTuple):
    """What knows nothing of these rows' part in the training.

    Attributes:
      name: e.g. `majority`.
      values: `[R]` its score on each repetition.
      own: `[R]` ends of the interval of each, at `own_level`; None where it is exact.
      gains: `[R]` ends of the attack's gain over it, where it was paired row by row.
      errors: `[R]` standard errors over the rows, of shares that have `own`.
      uses: how often its rows count on average over the repetitions: what is drawn for
        several clients tells the mean no more than one would.
    """

    name: str
    values: Sequence[float] | np.ndarray
    own: Ends | None = None
    gains: Ends | None = None
    uses: float = 1.0
    errors: Sequence[float] | np.ndarray | None = None


class Gain(NamedTuple):
    """What an attack has beyond a reference, positive for a leak.

    Attributes:
      name: of the reference.
      mean: over the repetitions.
      low: lower end of its interval at the level of the verdict, NaN without one.
      high: upper end.
      alone: `[R]` whether a client by itself is above the reference, as *leaks* says.
    """

    name: str
    mean: float
    low: float
    high: float
    alone: np.ndarray

    @property
    def is_shown(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low > 0


class Verdict(NamedTuple):
    """What is known of one attack.

    Attributes:
      kind: one of the constants above.
      gains: over each reference, in their order.
      units: repetitions.
      units_alone: clients that leak by the intervals over their own rows.
      is_stopped: whether the attack does no better than some reference: the interval
        of its gain ends below the measure's margin.
    """

    kind: str
    gains: tuple[Gain, ...]
    units: int
    units_alone: int
    is_stopped: bool

    @property
    def beyond(self) -> Gain:
        """The gain over imputation; without that, over the first reference."""
        named = {gain.name: gain for gain in self.gains}
        return named.get(IMPUTATION, self.gains[0])

    @property
    def to_report(self) -> tuple[Gain, ...]:
        """The gains to speak of: of a leak the least, else `beyond` and what is against it."""
        known = [gain for gain in self.gains if np.isfinite(gain.mean)]
        if self.kind == LEAKS:
            return (min(known, key=lambda gain: gain.mean),)
        against = [gain for gain in known if not gain.is_shown]
        if not self.beyond.is_shown or not against:
            return (self.beyond,)
        return self.beyond, min(against, key=lambda gain: gain.mean)

    @property
    def has_interval(self) -> bool:
        """Whether anything can be said of chance."""
        return bool(np.isfinite(self.beyond.high - self.beyond.low))


def level(attacks: int = 1) -> float:
    """Confidence of an attack's mean gain where so many attacks are judged."""
    return 1 - _ERROR / attacks


def own_level(clients: int, attacks: int = 1) -> float:
    """Confidence at which each of several clients is judged by itself."""
    return 1 - _ERROR / (attacks * clients)


def judge(
    scores: Sequence[float] | np.ndarray,
    references: Sequence[Reference],
    measure: Measure,
    own: Ends | None = None,
    attacks: int = 1,
    errors: Sequence[float] | np.ndarray | None = None,
    resolution: float = 0.0,
) -> Verdict:
    """The verdict on one attack.

    Args:
      scores: `[R]` one per repetition: a seed, or a client of one seed.
      references: of the same repetitions, at least one, the weakest first.
      measure: what was measured.
      own: `[R]` low and high end of each client's score over its own rows, at level
        `own_level(R, attacks)`; None where there are none.
      attacks: how many are judged beside each other.
      errors: `[R]` standard errors of the scores over these rows, of shares: the ends are
        those of Wilson, which of few rows are narrow at a high level.
      resolution: least difference of two scores of seeds: equal ones are not certain.

    A client of whom something is no number is left out, and counts in the level of the
    others; of a seed that is so nothing is claimed.
    """
    known = np.isfinite(np.array([scores, *(each.values for each in references)]))
    known = known.all(axis=0)
    for ends in (own, *(each for ref in references for each in (ref.own, ref.gains))):
        known &= True if ends is None else np.isfinite(np.asarray(ends)).all(axis=-1)
    if own is not None and known.any() and not known.all():
        return _of_the_known(known, scores, references, measure, own, attacks, errors)
    imputed = measure.sign > 0 and any(ref.name == IMPUTATION for ref in references)
    gains = [
        _gain(scores, each, measure, own, attacks, errors, resolution, imputed)
        for each in references
    ]
    alone = np.logical_and.reduce([gain.alone for gain in gains])
    first, *others = gains
    kind = NOT_SHOWN
    if all(gain.is_shown for gain in gains) or alone.any():
        kind = LEAKS
    elif first.is_shown and any(gain.mean < measure.margin for gain in others):
        kind = PREDICTABLE
    stopped = any(gain.high < measure.margin for gain in gains)
    count = int(alone.sum()) if kind == LEAKS else 0
    return Verdict(kind, tuple(gains), len(scores), count, stopped)


def _of_the_known(known, scores, references, measure, own, attacks, errors) -> Verdict:
    def some(values):
        return None if values is None else np.asarray(values, np.float64)[known]

    names = "values", "own", "gains", "errors"
    rest = [
        each._replace(**{name: some(getattr(each, name)) for name in names})
        for each in references
    ]
    scores = np.asarray(scores, np.float64)[known]
    return judge(scores, rest, measure, some(own), attacks, some(errors))


def _gain(scores, reference, measure, own, attacks, errors, step, imputed) -> Gain:
    ours = measure.sign * np.asarray(scores, np.float64)
    theirs = measure.sign * np.asarray(reference.values, np.float64)
    gains = ours - theirs
    gains = np.where(np.abs(gains) <= _ROUNDING * np.abs(theirs).max(), 0.0, gains)
    count, mean = len(gains), float(gains.mean())
    if own is None:
        apart = step * np.linspace(-1, 1, count) if np.ptp(gains) == 0 else 0
        estimate = metrics.interval(gains + apart, level(attacks))
        nobody = np.zeros(count, bool)
        return Gain(reference.name, mean, estimate.low, estimate.high, nobody)
    if reference.gains is not None:
        reach = _reach(gains, reference.gains, 1)
        base = np.zeros_like(reach)
    else:
        reach = _reach(ours, own, measure.sign)
        base = _reach(theirs, reference.own, measure.sign)[::-1]
    # Newcombe (1998): conservative where both are right on the same rows.
    alone = gains - np.hypot(reach, base)[0] > 0
    if mean <= 0:  # perhaps a coin, whose other side would then count of some client
        turned = 100 - ours - theirs > np.hypot(reach[1], base[0])
        same = reference.name in (STRANGERS, OTHERS)  # noise would hide these, too
        alone &= imputed and not same and not turned.any()
    ratio = deviations(level(attacks)) / deviations(own_level(count, attacks))
    squares = np.square(reach) + reference.uses * np.square(base)
    below, above = ratio * np.sqrt(squares.sum(axis=1)) / count
    if errors is not None and reference.gains is None:
        off = 0 if reference.errors is None else np.square(reference.errors)
        square = np.sum(np.square(errors) + reference.uses * off)
        least = deviations(level(attacks)) * np.sqrt(square) / count
        below, above = max(below, least), max(above, least)
    return Gain(reference.name, mean, mean - float(below), mean + float(above), alone)


def deviations(confidence: float) -> float:
    """Half width of a normal interval in standard deviations."""
    return float(special.ndtri(0.5 + confidence / 2))


def _reach(values: np.ndarray, ends: Ends | None, sign: int) -> np.ndarray:
    """How far intervals reach below and above `values [R]`: `[2, R]`."""
    if ends is None:
        return np.zeros((2, len(values)))
    low, high = np.sort(sign * np.asarray(ends, np.float64).T, axis=0)
    return np.stack([values - low, high - values])


def is_impossible(percent: float, rows: int, ceiling: float) -> bool:
    """Whether an accuracy over so many rows is above a ceiling, by more than chance.

    Then the noise, the accountant or the attack has a bug, or the best guess without
    messages, on which the ceiling rests, is better than the imputation that stands for it.
    """
    return metrics.of_rows(percent, rows, _CHANCE)[0] > ceiling
