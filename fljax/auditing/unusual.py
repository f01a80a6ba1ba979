"""Whether an attack tells the rows that have another value than most.

Where nearly all rows have one value, an accuracy has few points to gain, and a row that is
wrongly said to have another takes as much as one rightly said gives: who finds nine of ten
of them gains next to nothing. So it is judged, too, how many are right of the rows that an
attack says so of, beside

* chance, as many of the same clients' rows drawn at random;
* imputation, as many rows as the other columns make likeliest to have another value, which
  need not be the one that they have;
* the rows that the same attack says so of among strangers, or with others' messages.

The rule is that of `fljax.verdicts`, over the rows of all clients together; it and that of
accuracies have half of the error each.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from fljax import attack_names, strangers, verdicts
from fljax.attacks.estimates import Prediction
from fljax.auditing.lines import Line
from fljax.auditing.measuring import Controls, real_values, values_of
from fljax.auditing.truth import Truth
from fljax.verdicts import Measure, Reference, Verdict

PRECISION = Measure(
    "unusual_values_right_percent", 1, 1.0, "% of the unusual values named rightly"
)
RULES = 2  # that share the error where both judge
_ELSE = {
    verdicts.IMPUTATION: "imputation from the other columns",
    verdicts.STRANGERS: "the attack on people who never met these messages",
}
_MOST = 0.85  # of the rows, that have one value: all others are unusual
_OWN = 10  # rows of a client from which on chance is by its own
_OfClients = Sequence[np.ndarray]


class Claim(NamedTuple):
    """Rows `m` that something says have an unusual value.

    Attributes:
      right: `[m]` bool, which of them have it.
      chance: share of them, if they were any rows of the same clients.
      rows: that they are worth, where some are drawn for several clients.
      share: of the rows that it could have been said of, that have an unusual value.
    """

    right: np.ndarray
    chance: float
    rows: float
    share: float


class Case(NamedTuple):
    """What is judged.

    Attributes:
      attack: what the attack says.
      perfect: what one that is always right would say.
      likeliest: `[W, n]` scores of the rows by the other columns, in some ways.
      unusual: `[n]` bool, which rows have an unusual value.
      others: name -> what the attack says of other rows, or with other messages.
    """

    attack: Claim
    perfect: Claim
    likeliest: Sequence[np.ndarray]
    unusual: np.ndarray
    others: Mapping[str, Claim]


def usual(real: _OfClients) -> int | None:
    """The value that nearly all rows have; None where there is no such value.

    Args:
      real: `[n]` numbers of the values of each client's rows.
    """
    kinds, counts = np.unique(np.concatenate(real), return_counts=True)
    if len(kinds) < 2 or counts.max() < _MOST * counts.sum():
        return None
    return int(kinds[counts.argmax()])


def case(
    name: str, estimate: Prediction, truth: Truth, beside: Controls
) -> Case | None:
    """What an attack says of unusual values of a category; None where there are none.

    Args:
      name: of the attack.
      estimate: what it says.
      truth: about the rows.
      beside: what was measured beside.
    """
    real = real_values(truth)
    common = usual(real)
    if common is None:
        return None
    scores = [] if beside.imputed is None else beside.imputed.unusual
    others = {}
    if beside.strangers is not None and name in beside.estimates:
        theirs = values_of(beside.estimates[name], beside.strangers)
        claim = _claimed(theirs, real_values(beside.strangers), common, beside.drawn)
        others[verdicts.STRANGERS] = claim
    if name in beside.others:
        others[verdicts.OTHERS] = _claimed(
            values_of(beside.others[name], truth), real, common
        )
    return Case(
        _claimed(values_of(estimate, truth), real, common),
        _claimed(real, real, common),
        [np.concatenate(each) for each in scores],
        np.concatenate(real) != common,
        others,
    )


def _claimed(
    guesses: _OfClients, real: _OfClients, common: int, drawn: _OfClients = ()
) -> Claim:
    """What guesses say of the rows of each client, which are these of all rows, if drawn."""
    everybody = np.concatenate(real)
    said = [(guess != common) & (guess >= 0) for guess in guesses]
    parts = list(zip(guesses, real, said, strict=True))
    right = np.concatenate([(guess == true)[at] for guess, true, at in parts])
    chances = [
        _shares(true if len(true) >= _OWN else everybody, guess[at])
        for guess, true, at in parts
    ]
    again = 1.0
    if len(right) and len(drawn):
        pairs = zip(drawn, said, strict=True)
        again = strangers.uses([numbers[at] for numbers, at in pairs])
    chance = float(np.concatenate(chances).mean()) if len(right) else 0.0
    share = float(np.mean(everybody != common))
    return Claim(right, chance, len(right) / again, share)


def _shares(true: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """How many of the true values are each of the guesses `[m]`."""
    kinds, counts = np.unique(true, return_counts=True)
    found = dict(zip(kinds.tolist(), (counts / len(true)).tolist(), strict=True))
    return np.array([found.get(each, 0.0) for each in guesses.tolist()])


def would_be_shown(case: Case, attacks: int) -> bool:
    """Whether an attack that is always right would be shown to leak."""
    verdict = judge(case._replace(attack=case.perfect), attacks)
    return verdict is not None and verdict.kind == verdicts.LEAKS


def judge(case: Case, attacks: int) -> Verdict | None:
    """The verdict on one of so many attacks; None where it names nothing unusual."""
    level, count = verdicts.own_level(1, RULES * attacks), len(case.attack.right)
    if not count:
        return None

    beside = [Reference(verdicts.MAJORITY, [100 * case.attack.chance])]
    if len(case.likeliest):
        best = max(_of_likeliest(each, case.unusual, count) for each in case.likeliest)
        ends = _ends(best, count, level)
        beside.append(Reference(verdicts.IMPUTATION, [100 * best], [ends]))
    for name, each in case.others.items():
        value, low, high = _as_often(each, case.attack.share, level)
        beside.append(Reference(name, [value], [(low, high)]))
    ours = float(case.attack.right.mean())
    own = [_ends(ours, count, level)]
    return verdicts.judge([100 * ours], beside, PRECISION, own, RULES * attacks)


def _of_likeliest(scores: np.ndarray, unusual: np.ndarray, count: int) -> float:
    """Share of so many rows of the highest scores; of equal ones, as many at random."""
    cut = np.sort(scores)[-count]
    above, ties = scores > cut, scores == cut
    left = count - above.sum()
    return float((unusual[above].sum() + left * unusual[ties].mean()) / count)


def _as_often(claim: Claim, share: float, level: float) -> tuple[float, float, float]:
    """Percent that are right, and its ends, if unusual values were not rarer there.

    Who is right as often of either kind of row is right of more of those it names where
    there are more of them: by Bayes' rule their odds are in proportion.
    """
    if not len(claim.right) or not claim.share:
        return 0.0, 0.0, 100.0
    right = float(claim.right.mean())
    more = max(_odds(share) / _odds(claim.share), 1.0)
    values = right, *(end / 100 for end in _ends(right, claim.rows, level))
    first, low, high = (100 * more * p / (more * p + 1 - p) for p in values)
    return first, low, high


def _odds(share: float) -> float:
    return share / max(1 - share, 1e-9)


def _ends(share: float, rows: float, level: float) -> tuple[float, float]:
    """Exact interval of a share of so many rows in percent (Clopper and Pearson, 1934).

    Wilson's is too narrow for shares of three rows.
    """
    right, tail = share * rows, (1 - level) / 2
    low = stats.beta.ppf(tail, right, rows - right + 1) if right > 0 else 0.0
    high = stats.beta.ppf(1 - tail, right + 1, rows - right) if right < rows else 1.0
    return 100 * float(low), 100 * float(high)


def said(sensitive: str, lines: Sequence[Line], categories: Sequence[str]) -> list[str]:
    """How many of the rows with the rarest value are found, by who tells it best.

    Args:
      sensitive: name of the column.
      lines: of all attacks.
      categories: values of the column.
    """
    found = [
        (line.rarest.attack.beyond_chance, line.attack, line.rarest)
        for line in lines
        if line.rarest is not None and attack_names.is_judged(line.attack, line.setting)
    ]
    if not found:
        return []
    _, attack, rarest = max(found, key=lambda each: each[0])
    told = {attack: rarest.attack}
    told |= {_ELSE[name]: each for name, each in rarest.references.items()}
    counts = "; ".join(
        f"{name} finds {each.rightly} of {each.of} and says so of {each.wrongly} of "
        f"{each.others} others"
        for name, each in told.items()
    )
    return [f"Of the rows whose {sensitive} is {categories[rarest.value]}, {counts}."]
