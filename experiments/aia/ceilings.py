"""The most that any adversary can have under the defense of a run, or why nothing is said.

`privacy.bounds` derives it from the noise and from what is told of a row without it. That
is taken to be the best, for each client, of its most frequent value, of imputation from
others' rows, and of imputation from ALL other rows, its own client's among them, since
messages may tell of those. A row's guarantee protects no more than the row.
"""

import numpy as np

from experiments.aia import baselines, population, privacy_report, result_rows, scoring
from experiments.aia.baselines import Shared
from experiments.aia.setup import Setup
from experiments.tabular import budgets
from experiments.tabular.targets import Targets
from fljax import privacy, verdicts
from fljax.privacy import Releases
from fljax.results import Labels, Row
from fljax.types import NoiseSpec

_ALL_OTHERS = "rows_of_all_others"


def why_not(setup: Setup) -> str:
    """Why a run says nothing, in one line; empty if it does."""
    config, truth = setup.config, setup.targets
    assert setup.problem.bound_defense is not None
    if truth is None or not config.attack.kinds:
        return "nothing is inferred"
    if truth.continuous:
        return "it is of accuracies, and the sensitive column is a number"
    if config.attack.score == "pooled":
        return "--attack_score=pooled: rows are scored with messages of other clients"
    if "imputation" not in config.attack.controls:
        return "--attack_controls: without imputation the other columns are not known"
    if any(_ceiling(setup, at, 1.0) is None for at in range(len(config.run.seeds))):
        return "nothing is promised against whoever sees the messages"
    return ""


def rows(
    setup: Setup, labels: Labels, targets: Targets, told: list[Row], shared: Shared
) -> list[Row]:
    """Bounds of every client and their mean, and imputation from all other rows.

    Args:
      setup: of a point; nothing comes back where `why_not` says why.
      labels: of the rows.
      targets: of the attacked clients.
      told: rows of the majority and of imputation.
      shared: with other points.
    """
    if setup.problem.bound_defense is None or why_not(setup):
        return []
    seeds = range(len(targets.seeds))
    guess = np.stack([_imputed(setup, at, shared) for at in seeds])
    found = scoring.guesses(labels, verdicts.IMPUTATION, _ALL_OTHERS, guess, targets)
    share = _best([*told, *found], targets)
    most = np.stack([_ceiling(setup, at, share[at]) for at in seeds])
    about = labels, "none", privacy_report.SETTING, verdicts.CEILING
    return found + result_rows.by_client(*about, 100 * most, targets)


def _ceiling(setup: Setup, at: int, share: np.ndarray | float) -> np.ndarray | None:
    """`[C]` in the run of one seed, whose attacks see messages.

    Where a number of clients is drawn for each round, those who are scored have come, and
    it is seen how often: the mean over draws, of which an epsilon is, has rounds of nobody.
    """
    bound = setup.problem.bound_defense
    assert bound is not None
    built, releases = bound.build(bound.of_seed(at)), bound.releases(at)
    if bound.setting.drawn == "fixed":
        each = releases.steps // bound.rounds
        more = bound.rounds - setup.config.train.num_rounds
        came = budgets.rounds_of_each(setup.problem.schedule)[at] + more
        came = np.maximum(came, 1)
        releases = Releases(each * came, came)
        built = built._replace(noise=tuple(map(_known_to_come, built.noise)))
    return privacy.ceiling(built, releases, share)


def _known_to_come(noise: NoiseSpec) -> NoiseSpec:
    if (noise.unit, noise.sampling) != ("client", "fixed"):
        return noise
    return noise._replace(sampling="all", sampling_rate=1.0)


def _best(rows: list[Row], targets: Targets) -> np.ndarray:
    """Largest share `[seeds, C]` that was told of each client without a message."""
    fewest = 1 / targets.candidates.shape[1]
    share = np.full(targets.mask.shape[:2], fewest)
    place = {seed: at for at, seed in enumerate(targets.seeds)}
    for row in rows:
        if row.metric == verdicts.ACCURACY.metric and row.client != "all":
            at = place[row.seed], int(row.client)
            share[at] = max(share[at], row.value / 100)
    return share


def _imputed(setup: Setup, at: int, shared: Shared) -> np.ndarray:
    """Clients' rows of `baselines.from_all`, `[C, n]`."""
    assert setup.targets is not None
    everyone = population.of_seed(setup, at)
    value = baselines.from_all(setup, at, everyone, shared)
    guess = np.zeros_like(setup.targets.value[at])
    guess[setup.targets.mask[at]] = value[everyone.owner != population.HELD_OUT]
    return guess
