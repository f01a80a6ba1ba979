"""One attack of an audit, scored: its numbers and what is concluded from them."""

import types
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fljax import certainty
from fljax.verdicts import Gain

NOT_APPLICABLE = "not applicable"
NOT_JUDGED = "not judged: the population's model"
MISFIT = "messages do not fit these rows"


class Number(NamedTuple):
    """One attack on one client, or on all.

    Attributes:
      value: the number.
      low: lower end of its 95 % interval, NaN without one.
      high: upper end.
      n: rows.
      references: name -> what is reached without messages of these rows.
    """

    value: float
    low: float
    high: float
    n: int
    references: Mapping[str, float]

    @property
    def baseline(self) -> float:
        """The first reference: majority, median, or the like."""
        return next(iter(self.references.values()))


class PerRecord(NamedTuple):
    """How sure an attack is of each record, and how rightly.

    Attributes:
      scores: metric of `fljax.certainty` -> number over the records of all clients.
      clients: `[C]` of the same over each client's records.
      counts: `[C]` records of each client.
      plot: all records by confidence.
    """

    scores: Mapping[str, float]
    clients: Sequence[Mapping[str, float]]
    counts: Sequence[int]
    plot: certainty.Bins


class Named(NamedTuple):
    """How often a value is named.

    Attributes:
      rightly: rows of those that have it.
      of: rows that have it.
      wrongly: rows of those that have another.
      others: rows that have another.
    """

    rightly: int
    of: int
    wrongly: int
    others: int

    @property
    def beyond_chance(self) -> float:
        """Share of those that have it less that of the others: 0 for who does not look."""
        return self.rightly / max(self.of, 1) - self.wrongly / max(self.others, 1)


class Rarest(NamedTuple):
    """The rarest value, of which accuracies tell little.

    Attributes:
      value: its number among the categories.
      attack: how often the attack names it.
      references: name -> the same of what needs no message of these rows.
      is_unusual: whether nearly all rows have one other value.
    """

    value: int
    attack: Named
    references: Mapping[str, Named]
    is_unusual: bool = False


class Line(NamedTuple):
    """One attack.

    Attributes:
      attack: its name.
      setting: what the adversary needs.
      metric: what was measured; empty if the attack does not apply.
      total: mean over the clients, None likewise.
      clients: number of each client.
      verdict: of `fljax.verdicts`, or one of the constants above.
      detail: why, or how much, or for how many clients.
      diagnostics: metric -> `[C]`.
      gains: over each reference.
      records: of an attack with a posterior.
      ceiling: percent that no adversary is above under the declared defense, on average;
        None where nothing is promised, or it is of another measure.
      doubts: kinds of what takes from its certainty, which the detail says in words.
      rarest: of a category that not all rows share, None else.
      unusual: what the verdict rests on, in words, if that is not accuracies (`unusual`).
    """

    attack: str
    setting: str
    metric: str
    total: Number | None
    clients: Sequence[Number]
    verdict: str
    detail: str = ""
    diagnostics: Mapping[str, np.ndarray] = types.MappingProxyType({})
    gains: Sequence[Gain] = ()
    records: PerRecord | None = None
    ceiling: float | None = None
    doubts: tuple[str, ...] = ()
    rarest: Rarest | None = None
    unusual: str = ""

    def and_that(self, *texts: str, doubt: str = "") -> "Line":
        """The same with more to its detail, which may be a doubt of some kind."""
        return self._replace(
            detail="; ".join(filter(None, (self.detail, *texts))),
            doubts=(*self.doubts, doubt) if doubt else self.doubts,
        )
