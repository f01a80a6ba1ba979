"""What was measured of each defense of a grid, from the rows of its runs."""

import math
from collections.abc import Sequence

import numpy as np

from experiments.aia.setup import Setup
from experiments.choose_defense.rule import POINTS, Candidate
from experiments.epsilons import PREFIX
from experiments.report import gains
from experiments.report.figures import selection
from experiments.report.gains import Score
from experiments.report.programs import PROGRAMS
from fljax import metrics, privacy, results, verdicts
from fljax.defenses.specs import Spec
from fljax.metrics import Estimate
from fljax.privacy import Releases
from fljax.results import Labels, Row

EPSILON = "epsilon_rdp_against_who_attacks"
TUNED = "epsilon_rdp_with_choice_of_clip"
AUDITED = "epsilon_audited"  # lower bounds, of who is audited
_STRONGEST = PROGRAMS["aia"].strongest
_NOTHING = Estimate(math.nan, math.nan, math.nan, math.nan, 0)


def of_rows(rows: Sequence[Row]) -> list[Candidate]:
    """Every defense, in order of appearance.

    Args:
      rows: of `experiments.aia`, and of `epsilon_rows`.
    """
    scores: dict[str, list[Score]] = {}
    for score in gains.scores(rows):
        if score.gain.measure in (verdicts.ACCURACY, verdicts.ERROR):
            scores.setdefault(score.row.defense, []).append(score)
    by_defense: dict[str, list[Row]] = {}
    for row in rows:
        by_defense.setdefault(row.defense, []).append(row)
    return [_of(name, own, scores.get(name, [])) for name, own in by_defense.items()]


def epsilon_rows(setup: Setup, grid: Sequence[Spec]) -> list[Row]:
    """Epsilons of the noise that holds against who attacks, the least where several do.

    Of one training, and if every training that was tried with the same noise is charged,
    whatever its clip, the clip that this decays to, or parts that draw none: all of them,
    which draw independently (`aia.program.start`, `apart`), then count as released; which
    of the grid's epsilons is needed is not charged, nor what the attacks said, nor that
    trainings are repeated.

    Args:
      setup: of one defense.
      grid: all of them.
    """
    bound, config = setup.problem.bound_defense, setup.config
    if bound is None:
        return []
    tried = sum(noise(each) == noise(bound.spec) for each in grid)
    labels = Labels(
        "aia", setup.table.name, config.model.name, str(bound.spec), setup.label
    )
    views = {sight.view for sight in config.adversary.sights}
    found = []
    for at, seed in enumerate(config.run.seeds):
        made, once = bound.build(bound.of_seed(at)), bound.releases(at)
        all_tried = Releases(tried * once.steps, tried * once.rounds)
        count = setup.clients.sizes[at].sum()
        for metric, releases in ((EPSILON, once), (TUNED, all_tried)):
            promised = privacy.promises(made, releases, bound.delta)
            held = privacy.against(promised, views)
            found += [
                labels.row(
                    "none",
                    "defense",
                    seed,
                    PREFIX[unit] + metric,
                    float(promise.guarantee.epsilon_rdp.max()),
                    count,
                )
                for unit, promise in held.items()
            ]
    return found


def noise(spec: Spec) -> tuple:
    """Of what each part that says its noise, or its budget, draws it: all but the clips."""
    given = [(part.name, dict(part.given)) for part in spec.parts]
    return tuple(
        (
            name,
            *sorted((n, v) for n, v in said.items() if n not in ("clip", "decay_to")),
        )
        for name, said in given
        if said.keys() & {"sigma", "epsilon"}
    )


def _of(name: str, rows: Sequence[Row], scores: Sequence[Score]) -> Candidate:
    totals = [row for row in rows if row.client == "all"]
    known = [each for each in scores if math.isfinite(each.verdict.beyond.mean)]
    top = max(known, key=lambda score: score.verdict.beyond.mean, default=None)
    beyond = None if top is None else top.verdict.beyond
    epsilon, tuned, unit = next(
        (
            (mean, tuned, unit)
            for unit, prefix in PREFIX.items()
            if math.isfinite(tuned := _mean(totals, prefix + TUNED))
            and 0 <= (mean := _mean(totals, prefix + EPSILON)) < math.inf
        ),
        (math.inf, math.inf, "record"),
    )
    return Candidate(
        name,
        epsilon,
        tuned,
        _of_held_out(totals, selection.EXPLAINED),
        "" if top is None else top.row.attack,
        _NOTHING
        if beyond is None
        else Estimate(beyond.mean, beyond.low, beyond.high, beyond.mean, 0),
        any(score.verdict.kind == verdicts.LEAKS for score in scores),
        _mean(totals, verdicts.CEILING) - _reference(totals, top),
        verdicts.IMPUTATION if beyond is None else beyond.name,
        unit,
        max(
            (row.n for row in totals if row.metric == selection.EXPLAINED[1]), default=0
        ),
        _of_held_out(totals, selection.RIGHT).mean,
        POINTS
        if top is None or top.gain.measure is verdicts.ACCURACY
        else top.gain.better,
        ""
        if any(score.row.attack in _STRONGEST for score in scores)
        else _STRONGEST[0],
    )


def _of_held_out(totals: Sequence[Row], names: Sequence[str]) -> Estimate:
    """On held-out rows, the second; on the training rows where there are none."""
    for metric in reversed(names):
        values = [row.value for row in totals if row.metric == metric]
        if values:
            return results.within(metrics.interval(values), metric)
    return _NOTHING


def _reference(totals: Sequence[Row], top: Score | None) -> float:
    """What the strongest attack is compared with; without one, the best baseline."""
    if top is not None and top.verdict.beyond.name in top.beside:
        return top.beside[top.verdict.beyond.name]
    known = [
        _mean([r for r in totals if r.attack == name], verdicts.ACCURACY.metric)
        for name in (verdicts.MAJORITY, verdicts.IMPUTATION)
    ]
    return float(np.nanmax([*known, -math.inf]))


def _mean(rows: Sequence[Row], metric: str) -> float:
    """NaN without any; of the baseline's settings the plain one."""
    found = [
        row.value
        for row in rows
        if row.metric == metric
        and not row.setting.startswith(gains.CURVE)
        and row.setting != verdicts.AS_KNOWN
    ]
    return float(np.mean(found)) if found else math.nan
