"""What is told without a message: the majority, and imputation from other columns.

Imputation learns from held-out rows and those of other clients; by number of rows known
it is a curve (`fljax.imputation`).
"""

import numpy as np
from rich.progress import Progress

from experiments.aia import population, scoring
from experiments.aia.population import Population
from experiments.aia.scoring import Labels
from experiments.aia.setup import Setup
from experiments.aia.targets import Targets, pool
from fljax import imputation, verdicts
from fljax.results import Row

_CURVE = (100, 1000)  # rows known


def majority(labels: Labels, targets: Targets) -> list[Row]:
    """Each client's most frequent value, or its median for a continuous attribute."""
    guess = np.zeros_like(targets.value)
    for seed, client in np.ndindex(targets.value.shape[:2]):
        known = targets.value[seed, client][targets.mask[seed, client]]
        if not len(known):
            continue
        if targets.continuous:
            guess[seed, client] = np.median(known)
        else:
            guess[seed, client] = np.bincount(known).argmax()
    return scoring.guesses(labels, verdicts.MAJORITY, "baseline", guess, targets)


def imputed(
    setup: Setup, labels: Labels, targets: Targets, bars: Progress
) -> list[Row]:
    """Each client's rows imputed from all others, and from fewer of them.

    Args:
      setup: of a point, with a sensitive attribute.
      labels: of the rows.
      targets: of the attacked clients.
      bars: to show progress.
    """
    everyone = [population.of_seed(setup, s) for s in range(len(labels.seeds))]
    known = min(len(each.owner) - np.bincount(each.owner + 1)[1:].max()
                for each in everyone)  # fmt: skip
    curve = {f"rows_{most}": most for most in _CURVE if most < known}
    found = []
    bar = bars.add_task("imputation, seeds", total=len(everyone) * (1 + len(curve)))
    for setting, most in ({"baseline": None} | curve).items():
        guess = np.zeros_like(targets.value)
        for seed, each in enumerate(everyone):
            guess[seed] = _of_seed(setup, seed, each, most)
            bars.advance(bar)
        found += scoring.guesses(labels, verdicts.IMPUTATION, setting, guess, targets)
    return found


def _of_seed(setup: Setup, seed: int, rows: Population, most: int | None) -> np.ndarray:
    """Guesses as targets have them, `[C, n]`."""
    assert setup.targets is not None
    learned = imputation.Population(
        imputation.columns(rows.x, rows.y),
        rows.value,
        imputation.coded(rows.x, setup.table.task),
        setup.targets.continuous,
    )
    count, most_rows = setup.clients.sizes.shape[1], setup.clients.sizes.max()
    own = [np.flatnonzero(rows.owner == client) for client in range(count)]
    more = {} if most is None else {"most": most}
    values = imputation.of_clients(
        learned, rows.owner, own, setup.config.run.seeds[seed], **more
    )
    guess = np.zeros((count, most_rows), setup.targets.value.dtype)
    for client, value in enumerate(values):
        guess[client, : len(value)] = value
    if setup.config.attack.score == "pooled":
        return pool(guess[None])[0]
    return guess
