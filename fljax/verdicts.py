"""Whether an attack shows a leak: one rule for the audit, the report and every table.

An attack is compared with a baseline that needs no message. Its gain is paired: each
repetition (a seed, or a client) is compared with the baseline on the same repetition.

* *leaks*: the two-sided 95 % interval of the mean gain lies above 0; or, where every
  client has an interval over its own rows, that of some client lies above its baseline
  at level 1 - 0.05 / clients;
* *no gain*: the interval ends below a stated margin;
* *not clear*: the interval allows for both;
* *not clear (no interval)*: one repetition without an interval of its own.

Of attacks that learn nothing at most one in forty is called a leak by chance. The rule is
about the attacks that were run: another one may succeed where these fail.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fljax import metrics

LEAKS, NO_GAIN, NOT_CLEAR = "leaks", "no gain", "not clear"
NO_INTERVAL = "not clear (no interval)"
_ROUNDING = 1e-9  # of a gain, relative to the baseline

RULE = {
    LEAKS: "the 95 % interval of the mean gain over the baseline lies above 0 (gains are "
    "paired by seed, or with one seed by client), or a client's interval over its own "
    "rows lies above its baseline at level 1 - 0.05 / clients. Of attacks that learn "
    "nothing at most one in forty is called a leak by chance",
    NO_GAIN: "the interval ends less than one point above the baseline (0.01 for a "
    "distance of distributions, 0 for an error); a defense that brings this about has "
    "stopped the attack, though a better attack may succeed",
    NOT_CLEAR: "the interval allows for both",
    NO_INTERVAL: "one seed and one client, without an interval over its rows",
}

# Settings and words in the names of attacks that are never judged.
_UNJUDGED_SETTINGS = {"baseline", "oracle"}
_CHOSEN_WITH_THE_TRUTH = {"oracle", "optimum"}
_CONTROLS = {"other", "permuted", "shuffled"}


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


class Baseline(NamedTuple):
    """What needs no message.

    Attributes:
      name: of the rule that makes it, e.g. `majority`.
      values: `[R]` its score on each repetition.
      half_widths: `[R]` of the 95 % interval of each, 0 where it is no estimate.
    """

    name: str
    values: Sequence[float]
    half_widths: Sequence[float] | None = None


class Verdict(NamedTuple):
    """What is known of one attack.

    Attributes:
      kind: one of the constants above.
      gain: mean over the repetitions, positive for a leak.
      low: lower end of its 95 % interval, NaN without one.
      high: upper end.
      units: repetitions.
      units_alone: clients that leak by the interval over their own rows.
      baseline: name of what it is a gain over.
    """

    kind: str
    gain: float
    low: float
    high: float
    units: int
    units_alone: int
    baseline: str


def is_judged(attack: str, setting: str) -> bool:
    """Whether an adversary could run an attack, and means to gain by it.

    What was chosen or trained with the truth is not judged, nor are controls and
    baselines. Names say it: `grad_oracle`, `local_optimum`, `model_other`.
    """
    words = set(attack.split("_"))
    unjudged = words & (_CHOSEN_WITH_THE_TRUTH | _CONTROLS)
    return setting not in _UNJUDGED_SETTINGS and not unjudged


def own_level(clients: int) -> float:
    """Confidence at which each of several clients is judged by itself."""
    return 1 - 0.05 / clients


def judge(
    scores: Sequence[float],
    baseline: Baseline,
    measure: Measure,
    own: Sequence[tuple[float, float]] | None = None,
) -> Verdict:
    """The verdict on one attack.

    Args:
      scores: `[R]` one per repetition: a seed, or a client of one seed.
      baseline: of the same repetitions.
      measure: what was measured.
      own: `[R]` low and high end of each client's score over its own rows, at level
        `own_level(R)`; None where there are none.
    """
    values = np.asarray(baseline.values, np.float64)
    gains = measure.sign * (np.asarray(scores, np.float64) - values)
    rounding = _ROUNDING * np.abs(values).max()
    ends = None
    if own is not None:
        ends = np.sort(measure.sign * (np.asarray(own, np.float64).T - values), axis=0)
        widths = np.asarray(baseline.half_widths or 0.0)
        ends = np.stack([ends[0] - widths, ends[1] + widths])  # any dependence
    estimate = metrics.interval(gains)
    low, high = estimate.low, estimate.high
    if ends is not None and len(gains) == 1:
        low, high = float(ends[0, 0]), float(ends[1, 0])
    alone = 0 if ends is None else int((ends[0] > rounding).sum())
    kind = NOT_CLEAR
    if alone or low > rounding:
        kind = LEAKS
    elif not np.isfinite(high - low):
        kind = NO_INTERVAL
    elif high < measure.margin:
        kind = NO_GAIN
    return Verdict(kind, estimate.mean, low, high, len(gains), alone, baseline.name)
