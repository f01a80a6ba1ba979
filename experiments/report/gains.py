"""What attacks gain over what needs no message, by the rule of `fljax.verdicts`.

Gains are paired by seed; with one seed by client, where the rows have clients; else they
have the intervals over the clients that the rows keep as half widths.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scipy import stats

from experiments.report.cards import Card
from experiments.report.figures import selection
from experiments.report.program_report import Gain
from experiments.report.programs import PROGRAMS
from fljax import metrics, verdicts
from fljax.metrics import Estimate
from fljax.results import Row, Summary, summarise, within
from fljax.verdicts import Baseline, Verdict

_HALF_WIDTH = "_half_width"
_PART = "alpha="  # points of some of the clients
_EPSILONS = (
    "epsilon_pld", "epsilon_rdp", "client_epsilon_pld", "client_epsilon_rdp",
)  # fmt: skip
_MOST_ROWS = 2**31


class Score(NamedTuple):
    """One attack in one case.

    Attributes:
      row: its labels.
      estimate: of the measure, over seeds or clients.
      gain: by which it is judged.
      verdict: the rule's.
    """

    row: Row
    estimate: Estimate
    gain: Gain
    verdict: Verdict

    @property
    def name(self) -> str:
        """Attack and setting."""
        return f"{self.row.attack} ({self.row.setting})"

    @property
    def shown(self) -> Estimate:
        """The estimate, its interval cut to what the measure can be."""
        return within(self.estimate, self.row.metric)


class Case(NamedTuple):
    """A defense, or none, and a point as one run measured it.

    Attributes:
      run: name of the run.
      defense: as the rows name it.
      point: of a sweep.
      scores: of the attacks that an adversary could run.
      loss: of the last model sent, NaN if unknown.
      epsilon: in words, empty where nothing is promised.
    """

    run: str
    defense: str
    point: str
    scores: Sequence[Score]
    loss: float
    epsilon: str

    @property
    def defended(self) -> bool:
        """Whether there is a defense."""
        return self.defense != "none"

    @property
    def label(self) -> str:
        """Defense and what of it was swept."""
        name, equals, value = self.point.partition("=")
        if not equals or value == self.defense:
            return self.defense
        return f"{self.defense} {name}={value}"


def cases(card: Card) -> list[Case]:
    """All of a run that have attacks with a baseline."""
    totals = [s for s in summarise(card.rows) if s.row.client == "all"]
    losses = selection.utility(card.rows)
    found: dict[tuple[str, str], list[Score]] = {}
    for score in scores(card.rows):
        found.setdefault((score.row.defense, score.row.point), []).append(score)
    return [
        Case(
            card.name, *at, each,
            losses[at].estimate.mean if at in losses else math.nan,
            _epsilon(totals, at),
        )
        for at, each in found.items()
    ]  # fmt: skip


def scores(rows: Sequence[Row]) -> Iterator[Score]:
    """Every attack that is judged, in order of appearance, measure by measure."""
    program = PROGRAMS.get(rows[0].experiment)
    for gain in program.gains if program else ():
        measured = _measured(rows, gain.measure.metric)
        bases: dict[tuple[str, ...], _Measured] = {}
        for at, each in measured.items():
            if at[2] == gain.baseline:
                bases[(*at[:2], at[3])] = each
                bases.setdefault(at[:2], each)
        for at, each in measured.items():
            base = bases.get((*at[:2], at[3]), bases.get(at[:2]))
            if base is None or not _is_judged(at, gain):
                continue
            if seeds := sorted(each.totals.keys() & base.totals.keys()):
                score = _score(each, base, gain, seeds)
                if math.isfinite(score.verdict.gain):
                    yield score


class _Measured(NamedTuple):
    """One attack by one metric: seed -> its rows, and half of its interval."""

    row: Row
    totals: dict[int, float]
    halves: dict[int, float]
    clients: dict[int, dict[int, Row]]


def _measured(rows: Sequence[Row], metric: str) -> dict[tuple[str, ...], _Measured]:
    """By defense, point, attack and setting."""
    found: dict[tuple[str, ...], _Measured] = {}
    for row in rows:
        if row.metric in (metric, metric + _HALF_WIDTH):
            at = row.defense, row.point, row.attack, row.setting
            empty = _Measured(row._replace(metric=metric, client="all"), {}, {}, {})
            each = found.setdefault(at, empty)
            if row.metric != metric:
                each.halves[row.seed] = row.value
            elif isinstance(row.client, int):
                each.clients.setdefault(row.seed, {})[row.client] = row
            else:
                each.totals[row.seed] = row.value
    return {at: each for at, each in found.items() if each.totals}


def _is_judged(at: Sequence[str], gain: Gain) -> bool:
    _, point, attack, setting = at
    return (
        verdicts.is_judged(attack, setting)
        and attack != gain.baseline
        and attack.startswith(gain.attacks)
        and _PART not in point
    )


def _score(each: _Measured, base: _Measured, gain: Gain, seeds: list[int]) -> Score:
    """Judged over the seeds, else over the clients of the one that there is."""
    ours = [each.totals[seed] for seed in seeds]
    theirs = [base.totals[seed] for seed in seeds]
    estimate = metrics.interval(list(each.totals.values()))
    if len(seeds) > 1:
        verdict = _judge(gain, ours, theirs)
        return Score(each.row, estimate, gain, verdict)
    seed = seeds[0]
    mine, base_rows = each.clients.get(seed, {}), base.clients.get(seed, {})
    clients = sorted(mine.keys() & base_rows.keys())
    if clients:
        verdict = _by_client(
            [mine[c] for c in clients], [base_rows[c] for c in clients], gain
        )
    else:
        half = each.halves.get(seed, math.nan)
        own = [(ours[0] - half, ours[0] + half)]
        verdict = _judge(gain, ours, theirs, own, [base.halves.get(seed, 0.0)])
        if len(each.totals) == 1 and math.isfinite(half):
            estimate = estimate._replace(low=own[0][0], high=own[0][1])
    return Score(each.row, estimate, gain, verdict)


def _judge(gain: Gain, ours, theirs, own=None, halves=None) -> Verdict:
    base = Baseline(gain.baseline, theirs, halves)
    return verdicts.judge(ours, base, gain.measure, own)


def _by_client(mine: Sequence[Row], base: Sequence[Row], gain: Gain) -> Verdict:
    own = None
    if gain.own_rows:
        level = verdicts.own_level(len(mine))
        own = [_wilson(row, level) for row in mine]
    return _judge(gain, [r.value for r in mine], [r.value for r in base], own)


def _wilson(row: Row, level: float) -> tuple[float, float]:
    """Interval of a client's percentage over its rows; NaN where the row has none."""
    hits = row.value / 100 * row.n
    if not (0 < row.n < _MOST_ROWS and 0 <= hits <= row.n):
        return math.nan, math.nan
    interval = stats.binomtest(round(hits), row.n).proportion_ci(level, "wilson")
    return 100 * interval.low, 100 * interval.high


def _epsilon(totals: Sequence[Summary], at: tuple[str, str]) -> str:
    for metric in _EPSILONS:
        for s in totals:
            value = s.estimate.mean
            here = (s.row.defense, s.row.point) == at and s.row.metric == metric
            if here and 0 < value < 1e100:
                whose = " of a client" if metric.startswith("client") else ""
                return f"epsilon {value:.3g}{whose}"
    return ""
