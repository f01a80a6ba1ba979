"""What a program brings to the report: words, published numbers, how it tells a leak."""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.report.cards import Card, Reference
from fljax import verdicts


class Gain(NamedTuple):
    """One number by which a program tells a leak, and over what.

    Attributes:
      measure: the number.
      references: names of what an attack must exceed, the weakest first; `{attack}`
        stands for the attack's. Those that were not run are left out, but the first.
      better: words for a gain, e.g. `points beyond`.
      worse: the same where there is none.
      own_rows: whether a client's number is a share of its rows, so that it has an
        interval of its own.
      attacks: how the names of attacks begin; empty for all.
    """

    measure: verdicts.Measure
    references: tuple[str, ...]
    better: str
    worse: str
    own_rows: bool = False
    attacks: str = ""


def no_reference(flags: Mapping[str, Any], data: str) -> None:
    """Of a program that stands beside no published number."""
    del flags, data


def no_sentences(cards: Sequence[Card]) -> list[str]:
    """Of a program with gains, about which the rule speaks."""
    del cards
    return []


class ProgramReport(NamedTuple):
    """One program.

    Attributes:
      name: in manifests and rows.
      title: of a report with this program alone.
      about: what is measured, for a reader who meets it first here.
      names: attack -> what it is.
      settings: setting, or how it begins -> what it is.
      gains: by which it tells a leak; empty where nothing has a baseline.
      strongest: attacks, the first by name, without which no leak means little.
      reference: flags and data -> the published numbers beside a run.
      sentences: of runs with the same data and model, in short, without gains.
      kept: how the names of the metrics begin that its kept results have.
      unkept: how the settings begin that they do without.
      wide: whether the numbers of a case stand beside one another in documents.
    """

    name: str
    title: str
    about: str
    names: Mapping[str, str] = types.MappingProxyType({})
    settings: Mapping[str, str] = types.MappingProxyType({})
    gains: Sequence[Gain] = ()
    strongest: Sequence[str] = ()
    reference: Callable[[Mapping[str, Any], str], Reference | None] = no_reference
    sentences: Callable[[Sequence[Card]], list[str]] = no_sentences
    kept: tuple[str, ...] = ("",)
    unkept: tuple[str, ...] = ()
    wide: bool = False
