"""The most that any adversary can have under the defense that clients say they train with.

`privacy.bounds` derives it from the noise, from how often a row is in a noisy sum, and
from what is told of a row without it: the best, for each client, of its most frequent
value, of imputation from other people's rows, and of imputation from ALL other rows. It
is no better than what was declared: whoever adds less noise, or names a smaller clip
than was used, has no such ceiling. An attack above it says that this is so.

Batches may be disjoint in an epoch or Poisson samples; where a defense takes both, the
larger bound counts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fljax import metrics, privacy, verdicts
from fljax.attacks.adversary import AdversaryView
from fljax.auditing import declaration
from fljax.auditing.declaration import Declared
from fljax.auditing.lines import Line
from fljax.auditing.measuring import Imputed
from fljax.auditing.truth import Truth
from fljax.defenses import specs
from fljax.types import Sampling


class Ceiling(NamedTuple):
    """What no adversary is above, on average over rows.

    Attributes:
      percent: `[C]` of each client's rows; None where nothing is promised or known.
      why: there is none; empty where there is one, or no defense.
      beaten: what an attack has that is above it by more than chance, None without one.
    """

    percent: np.ndarray | None = None
    why: str = ""
    beaten: float | None = None

    @property
    def note(self) -> list[str]:
        """For readers of the numbers."""
        if self.percent is None:
            said = f"What the defense leaves to any adversary is not known: {self.why}."
            return [said] if self.why else []
        most = self.percent.mean()
        if self.beaten is not None:
            return [
                (
                    f"The noise or clip of clients is not as declared, or weaker: an attack "
                    f"names {self.beaten:.1f} % of these rows, and the declared defense "
                    f"leaves at most {most:.1f} % to any adversary."
                )
            ]
        return [
            (
                f"Under the declared defense no adversary at all can name more than "
                f"{most:.1f} % of these rows, on average, if its noise and clip are as "
                "declared; the attacks here need not find all of that."
            )
        ]


def find(
    view: AdversaryView,
    truth: Truth,
    imputed: Imputed | None,
    left_out: np.ndarray,
    declared: Declared,
) -> Ceiling:
    """Of an audit.

    Args:
      view: what attacks had, with the declared training.
      truth: about the audited rows.
      imputed: what other columns tell, None if nobody looked.
      left_out: `[C]` messages that are not finite.
      declared: defense of the clients.
    """
    if not declared.spec:
        return Ceiling()
    why = _why_not(view, declared, imputed)
    if why:
        return Ceiling(why=why)
    assert imputed is not None
    share = _without(truth, imputed)
    try:
        found = list(_bounds(view, declared, left_out, share))
    except ValueError as error:
        return Ceiling(why=str(error))
    if not found:
        return Ceiling(
            why=f"{declared.spec} promises nothing to whoever sees the messages"
        )
    return Ceiling(100 * np.max(found, axis=0))


def beside(lines: Sequence[Line], ceiling: Ceiling) -> tuple[list[Line], Ceiling]:
    """Lines of accuracies with the ceiling, and a word where one is above it.

    Also the ceiling with what the highest of these has.
    """
    if ceiling.percent is None:
        return list(lines), ceiling
    judged = {line.metric for line in lines if line.total is not None}
    if judged and verdicts.ACCURACY.metric not in judged:
        return list(lines), Ceiling()  # of what nobody was asked for
    mean, found, beaten = float(ceiling.percent.mean()), [], []
    for line in lines:
        if line.metric == verdicts.ACCURACY.metric and line.total is not None:
            rows = metrics.rows_of_mean([number.n for number in line.clients])
            value, line = line.total.value, line._replace(ceiling=mean)
            if verdicts.is_impossible(value, rows, mean):
                line = line.and_that(f"{verdicts.IMPOSSIBLE} under the declared noise")
                beaten.append(value)
        found.append(line)
    return found, ceiling._replace(beaten=max(beaten, default=None))


def _why_not(view: AdversaryView, declared: Declared, imputed: Imputed | None) -> str:
    """In a few words; empty if there is a ceiling as far as can be told."""
    assert declared.spec is not None
    if view.continuous:
        return "it is of accuracies, and the sensitive column is a number"
    if reason := specs.unpromised(declared.spec):
        return f"nothing is promised; {reason}"
    if imputed is None:
        return "without the control imputation the other columns are not known"
    return declaration.unknown(declared, view)


def _without(truth: Truth, imputed: Imputed) -> np.ndarray:
    """Largest share `[C]` that is told of each client's rows without them."""
    rows = zip(truth.sensitive, truth.mask, strict=True)
    real = [value[mask] for value, mask in rows]
    usual = metrics.usual_values(real, continuous=False)
    guesses = zip(usual, imputed.own, imputed.from_all, strict=True)
    return np.array(
        [
            max(np.mean(guess == own) for guess in told)
            for told, own in zip(guesses, real, strict=True)
        ]
    )


def _bounds(
    view: AdversaryView, declared: Declared, left_out: np.ndarray, share: np.ndarray
) -> Iterator[np.ndarray]:
    """`[C]` of each way to make batches that the defense takes."""
    spec, releases = declared.spec, declaration.releases(view, left_out)
    assert spec is not None
    ways: tuple[Sampling, ...] = ("poisson", "fixed")
    for way in ways[: 1 if specs.needs_poisson(spec) else 2]:
        numbers = declaration.numbers(declared, view, way)
        bound = specs.bind(spec, declaration.setting(view, way), numbers)
        most = privacy.ceiling(bound, releases, share)
        if most is not None:
            yield most
