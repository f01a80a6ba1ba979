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

from fljax import attack_names, verdicts
from fljax.attacks.estimates import Prediction
from fljax.auditing.lines import FEW, Line
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
_OfClients = Sequence[np.ndarray]


class Named(NamedTuple):
    """Rows `m` that are said to have an unusual value.

    Attributes:
      right: `[m]` bool, which of them have it.
      chance: share of them, if they were any rows of the same clients.
      rows: that they are worth, of those that are drawn for several clients.
    """

    right: np.ndarray
    chance: float
    rows: float


class Case(NamedTuple):
    """What is judged.

    Attributes:
      attack: what the attack says.
      perfect: what one that is always right would say.
      likeliest: `[W, n]` scores of the rows by the other columns, in some ways.
      unusual: `[n]` bool, which rows have an unusual value.
      others: name -> what the attack says of other rows, or with other messages.
    """

    attack: Named
    perfect: Named
    likeliest: Sequence[np.ndarray]
    unusual: np.ndarray
    others: Mapping[str, Named]


def usual(real: _OfClients) -> int | None:
    """The value that nearly all rows have; None where there is no such value.

    Args:
      real: `[n]` numbers of the values of each client's rows.
    """
    kinds, counts = np.unique(np.concatenate(real), return_counts=True)
    if len(kinds) < 2 or counts.max() < (1 - FEW) * counts.sum():
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
        strange = real_values(beside.strangers)
        others[verdicts.STRANGERS] = _named(theirs, strange, common, beside.uses)
    if name in beside.others:
        theirs = values_of(beside.others[name], truth)
        others[verdicts.OTHERS] = _named(theirs, real, common)
    return Case(
        _named(values_of(estimate, truth), real, common),
        _named(real, real, common),
        [np.concatenate(each) for each in scores],
        np.concatenate(real) != common,
        others,
    )


def _named(
    guesses: _OfClients, real: _OfClients, common: int, uses: float = 1.0
) -> Named:
    """Of the rows of each client that have another value than the common one, by guesses."""
    right, chance = [], []
    for guess, true in zip(guesses, real, strict=True):
        said = guess[(guess != common) & (guess >= 0)]
        right.append((guess == true)[(guess != common) & (guess >= 0)])
        chance.append(np.mean(said[:, None] == true[None], axis=1))
    found = np.concatenate(right)
    share = float(np.concatenate(chance).mean()) if len(found) else 0.0
    return Named(found, share, len(found) / uses)


def would_be_shown(case: Case, attacks: int) -> bool:
    """Whether an attack that is always right would be shown to leak."""
    verdict = judge(case._replace(attack=case.perfect), attacks)
    return verdict is not None and verdict.kind == verdicts.LEAKS


def judge(case: Case, attacks: int) -> Verdict | None:
    """The verdict on one of so many attacks; None where it names nothing unusual."""
    level, count = verdicts.own_level(1, RULES * attacks), len(case.attack.right)
    if not count:
        return None

    def reference(name: str, share: float, rows: float) -> Reference:
        return Reference(name, [100 * share], [_ends(share, rows, level)])

    beside = [Reference(verdicts.MAJORITY, [100 * case.attack.chance])]
    if len(case.likeliest):
        best = max(
            case.unusual[np.argsort(-scores, kind="stable")[:count]].mean()
            for scores in case.likeliest
        )
        beside.append(reference(verdicts.IMPUTATION, float(best), count))
    for name, each in case.others.items():
        share = float(each.right.mean()) if len(each.right) else 0.0
        beside.append(reference(name, share, each.rows))
    ours = float(case.attack.right.mean())
    own = [_ends(ours, count, level)]
    return verdicts.judge([100 * ours], beside, PRECISION, own, RULES * attacks)


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
