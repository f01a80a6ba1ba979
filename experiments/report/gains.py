"""What attacks gain over what needs no message, by the rule of `fljax.verdicts`.

Gains are paired by seed; with one seed by client, where the rows have clients, with
intervals over their rows; else they have the intervals over the clients that the rows
keep as half widths.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.report import measured as measured_lib
from experiments.report.measured import Measured, student
from experiments.report.program_report import Gain
from experiments.report.programs import PROGRAMS
from fljax import attack_names, metrics, verdicts
from fljax.metrics import Estimate
from fljax.results import Row, within
from fljax.verdicts import Reference, Verdict

PART = "alpha="  # points of some of the clients
CURVE = "rows_"  # settings of imputation from fewer rows


class Score(NamedTuple):
    """One attack in one case.

    Attributes:
      row: its labels.
      estimate: of the measure, over seeds or clients.
      gain: by which it is judged.
      verdict: the rule's.
      beside: reference -> its measure, weighted as the estimate is.
      is_blind: whether an attack that is right throughout would not be shown, either.
    """

    row: Row
    estimate: Estimate
    gain: Gain
    verdict: Verdict
    beside: Mapping[str, float]
    is_blind: bool = False

    def is_of(self, row: Row) -> bool:
        """Whether a row has the same number, of one seed or client."""
        return row._replace(seed=0, client="all", value=0, n=0) == self.row._replace(
            seed=0, client="all", value=0, n=0
        )

    @property
    def is_by_seed(self) -> bool:
        """Whether the gains are paired by seed."""
        return self.estimate.repetitions > 1

    @property
    def is_stopped(self) -> bool:
        """Whether it does no better than what anyone could guess."""
        return self.verdict.is_stopped and self.verdict.kind != verdicts.LEAKS

    @property
    def name(self) -> str:
        """Attack and setting."""
        return f"{self.row.attack} ({self.row.setting})"

    @property
    def shown(self) -> Estimate:
        """The estimate, its interval cut to what the measure can be."""
        return within(self.estimate, self.row.metric)


def scores(rows: Sequence[Row]) -> Iterator[Score]:
    """Every attack that is judged, in order of appearance, measure by measure."""
    program = PROGRAMS.get(rows[0].experiment)
    uses = {
        (row.defense, row.point, row.seed): row.value
        for row in rows
        if row.metric == verdicts.USES
    }
    for gain in program.gains if program else ():
        measured = measured_lib.by_attack(rows, gain.measure.metric)
        judged = [at for at in measured if _is_judged(at, gain)]
        attacks = Counter(at[:2] for at in judged)
        for at in judged:
            beside = _references(measured, at, gain)
            seeds = measured[at].totals.keys()
            for _, each in beside:
                seeds &= each.totals.keys()
            if beside and seeds:
                again = {seed: uses.get((*at[:2], seed), 1.0) for seed in seeds}
                compared = _Compared(gain, attacks[at[:2]], beside, again)
                score = _score(measured[at], compared, sorted(seeds))
                if math.isfinite(score.verdict.gains[0].mean):
                    blind = _is_blind(score, measured[at], compared, sorted(seeds))
                    yield score._replace(is_blind=blind)


class _Compared(NamedTuple):
    """By what an attack is judged, beside how many, over which references.

    And of each seed, how often a stranger is used.
    """

    gain: Gain
    attacks: int
    references: list[tuple[str, Measured]]
    uses: Mapping[int, float]


def _is_judged(at: Sequence[str], gain: Gain) -> bool:
    _, point, attack, setting = at
    return (
        attack_names.is_judged(attack, setting)
        and attack not in gain.references
        and attack.startswith(gain.attacks)
        and not point.startswith(PART)
    )


def _references(measured: Mapping, at: Sequence[str], gain: Gain):
    """Name and numbers of each that was run; none without the first."""
    found = []
    for pattern in gain.references:
        name = pattern.format(attack=at[2])
        own = name != pattern
        each = measured.get((*at[:2], name, at[3]))
        if each is None and not own:
            each = next(
                (m for key, m in measured.items()
                 if key[:3] == (*at[:2], name) and not key[3].startswith(CURVE)),
                None,
            )  # fmt: skip
        if each is not None:
            found.append((verdicts.STRANGERS if own else name, each))
        elif not found:
            return []
    return found


def _score(each: Measured, compared: _Compared, seeds: list[int]) -> Score:
    """Judged over the seeds, else over the clients of the one that there is."""
    estimate = metrics.interval(list(each.totals.values()))
    beside = {
        name: float(np.mean([*other.totals.values()]))
        for name, other in compared.references
    }
    if len(seeds) > 1:
        if compared.gain.own_rows and estimate.low == estimate.high:  # equal seeds
            low, high = metrics.of_rows(estimate.mean, min(each.rows.values()))
            estimate = estimate._replace(low=low, high=high)
        verdict = _by_seed(each, compared, seeds)
        return Score(each.row, estimate, compared.gain, verdict, beside)
    (seed,) = seeds
    alone = len(each.totals) == 1
    everyone = [each, *(beside for _, beside in compared.references)]
    clients = sorted(
        set.intersection(*(set(m.clients.get(seed, ())) for m in everyone))
    )
    if clients:
        verdict = _by_client(each, compared, seed, clients)
        if alone and compared.gain.own_rows:
            low, high = metrics.of_rows(each.totals[seed], each.rows[seed])
            estimate = estimate._replace(low=low, high=high)
    else:
        verdict = _by_half_width(each, compared, seed)
    half = each.halves.get(seed, math.nan)
    if alone and math.isfinite(half):
        total = each.totals[seed]
        estimate = estimate._replace(low=total - half, high=total + half)
    return Score(each.row, estimate, compared.gain, verdict, beside)


def _is_blind(
    score: Score, each: Measured, compared: _Compared, seeds: list[int]
) -> bool:
    if score.verdict.kind == verdicts.LEAKS:
        return False
    best = 100.0 if compared.gain.measure.sign > 0 else 0.0
    perfect = _score(each.perfect(best), compared, seeds)
    return perfect.verdict.kind != verdicts.LEAKS


def _judge(
    ours, references, compared: _Compared, own=None, errors=None, resolution=0.0
) -> Verdict:
    return verdicts.judge(
        ours,
        references,
        compared.gain.measure,
        own=own,
        attacks=compared.attacks,
        errors=errors,
        resolution=resolution,
    )


def _by_seed(each: Measured, compared: _Compared, seeds: list[int]) -> Verdict:
    references = [
        Reference(name, [beside.totals[seed] for seed in seeds])
        for name, beside in compared.references
    ]
    ours = [each.totals[seed] for seed in seeds]
    resolution = 0.0
    if compared.gain.own_rows:  # a share of rows
        resolution = 100 / min(each.rows[seed] for seed in seeds)
    return _judge(ours, references, compared, resolution=resolution)


def _by_client(
    each: Measured, compared: _Compared, seed: int, clients: list[int]
) -> Verdict:
    level = verdicts.own_level(len(clients), compared.attacks)

    def own(measured: Measured):
        rows = [measured.clients[seed][client] for client in clients]
        values = [row.value for row in rows]
        if compared.gain.own_rows:
            ends = [metrics.of_rows(row.value, row.n, level) for row in rows]
        else:
            ends = student(values, measured.own_halves.get(seed, {}), clients, level)
        known = np.isfinite(values)  # of the others there is nothing to know
        if not np.isfinite(np.asarray(ends)[known]).all():
            return values, None, None
        errors = None
        if compared.gain.own_rows:
            errors = [metrics.standard_error(row.value, row.n) for row in rows]
        return values, ends, errors

    ours, ends, errors = own(each)
    references = []
    for name, beside in compared.references:
        values, theirs, off = own(beside)
        exact = name == verdicts.MAJORITY or ends is None
        pairs = None
        if name == verdicts.IMPUTATION and each.paired.get(seed):
            gain = compared.gain.measure.sign * np.subtract(ours, values)
            pairs = student(gain, each.paired[seed], clients, level)
        uses = compared.uses[seed] if name == verdicts.STRANGERS else 1.0
        known, off = (None, None) if exact else (theirs, off)
        references.append(Reference(name, values, known, pairs, uses, off))
    return _judge(ours, references, compared, ends, errors)


def _by_half_width(each: Measured, compared: _Compared, seed: int) -> Verdict:
    """Over clients that the rows do not name; they keep half of a 95 % interval."""
    level = verdicts.level(compared.attacks)
    wider = verdicts.deviations(level) / verdicts.deviations(0.95)

    def own(measured: Measured, unknown: float):
        total = measured.totals[seed]
        half = wider * measured.halves.get(seed, unknown)
        return [total], [(total - half, total + half)]

    references = [
        Reference(name, *own(beside, 0.0)) for name, beside in compared.references
    ]
    ours, ends = own(each, math.nan)
    return _judge(ours, references, compared, ends)
