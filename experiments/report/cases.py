"""Attacks, cost and promise of each defense, or none, as a run measured it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from experiments.report import gains
from experiments.report.cards import Card
from experiments.report.figures import selection
from experiments.report.gains import Score
from fljax import fit
from fljax.results import Summary, summarise

_EPSILONS = (
    "epsilon_pld", "epsilon_rdp", "client_epsilon_pld", "client_epsilon_rdp",
)  # fmt: skip


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
      epsilon: in words, empty where nothing is promised.
    """

    run: str
    defense: str
    point: str
    scores: Sequence[Score]
    loss: float
    explained: float
    epsilon: str

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
        name, equals, value = self.point.partition("=")
        if not equals or value == self.defense:
            return self.defense
        return f"{self.defense} {name}={value}"


def of_run(card: Card) -> list[Case]:
    """All of a run that have attacks with a baseline."""
    totals = [s for s in summarise(card.rows) if s.row.client == "all"]
    losses, fits = selection.utility(card.rows), selection.explained(card.rows)
    found: dict[tuple[str, str], list[Score]] = {}
    for score in gains.scores(card.rows):
        found.setdefault((score.row.defense, score.row.point), []).append(score)
    return [
        Case(
            card.name, *at, each,
            losses[at].estimate.mean if at in losses else math.nan,
            fits.get(at, {}).get(selection.EXPLAINED[0], math.nan),
            _epsilon(totals, at),
        )
        for at, each in found.items()
    ]  # fmt: skip


def _epsilon(totals: Sequence[Summary], at: tuple[str, str]) -> str:
    for metric in _EPSILONS:
        for s in totals:
            value = s.estimate.mean
            here = (s.row.defense, s.row.point) == at and s.row.metric == metric
            if here and 0 < value < 1e100:
                whose = " of a client" if metric.startswith("client") else ""
                return f"epsilon {value:.3g}{whose}"
    return ""
