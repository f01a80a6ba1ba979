"""Attacks, cost and promise of each defense, or none, as a run measured it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from experiments import epsilons
from experiments.epsilons import Stated
from experiments.report import gains
from experiments.report.cards import Card
from experiments.report.figures import selection
from experiments.report.gains import Score
from fljax import fit, verdicts
from fljax.results import summarise


class Case(NamedTuple):
    """A defense, or none, and a point as one run measured it.

    Attributes:
      run: name of the run.
      defense: as the rows name it.
      point: of a sweep.
      scores: of the attacks that an adversary could run.
      loss: of the last model sent, NaN if unknown.
      explained: percent of the variation of the training rows' targets that it
        explains, NaN likewise.
      epsilon: where one is promised.
      ceiling: percent that no adversary is above, NaN where nothing promises that.
    """

    run: str
    defense: str
    point: str
    scores: Sequence[Score]
    loss: float
    explained: float
    epsilon: Stated | None
    ceiling: float

    @property
    def defended(self) -> bool:
        """Whether there is a defense."""
        return self.defense != "none"

    @property
    def has_learnt(self) -> bool:
        """Whether the model explains anything, as far as is known."""
        return fit.has_learnt(self.explained)

    @property
    def label(self) -> str:
        """Defense and what of it was swept."""
        return selection.defense_label(self.defense, self.point)


def of_run(card: Card) -> list[Case]:
    """All of a run that have attacks with a baseline."""
    promised = epsilons.stated(card.rows)
    losses, fits = selection.utility(card.rows), selection.explained(card.rows)
    bounds = [row for row in card.rows if row.metric == verdicts.CEILING]
    ceilings = {
        (s.row.defense, s.row.point): s.estimate.mean
        for s in summarise(bounds)
        if s.row.client == "all"
    }
    found: dict[tuple[str, str], list[Score]] = {}
    for score in gains.scores(card.rows):
        found.setdefault((score.row.defense, score.row.point), []).append(score)
    return [
        Case(
            card.name, *at, each,
            losses[at].estimate.mean if at in losses else math.nan,
            fits.get(at, {}).get(selection.EXPLAINED[0], math.nan),
            promised.get(at),
            ceilings.get(at, math.nan),
        )
        for at, each in found.items()
    ]  # fmt: skip
