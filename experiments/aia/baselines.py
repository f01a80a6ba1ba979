"""What is told without a message: the majority, and imputation from other columns.

Imputation learns from held-out rows and those of other clients, and where clients differ
from a client's own, too (`fljax.imputation.informed`); by number of rows known it is a
curve. Where an adversary does not know the attacked rows as they are (`knowledge`), it is
done from what is known of them, too. It does not depend on the training: points of a sweep
that have the same rows share it.
"""

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.progress import Progress

from experiments.aia import errors, knowledge, population, scoring
from experiments.aia.errors import Imputed
from experiments.aia.population import Population
from experiments.aia.setup import Setup
from experiments.aia.strangers import Strangers
from experiments.tabular.targets import Targets, pool
from fljax import imputation, metrics, verdicts
from fljax.results import Labels, Row

_CURVE = (100, 1000)  # rows known


class Imputation(NamedTuple):
    """By imputation alone.

    Attributes:
      rows: how right it is.
      own: of a continuous attribute, the clients' rows; else None.
      strangers: likewise their strangers; None without any.
    """

    rows: list[Row]
    own: Imputed | None
    strangers: Imputed | None


class Shared:
    """What was imputed of some rows, for every point that has the same."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}

    def of(self, rows: Population, what: str, compute: Callable[[], Any]) -> Any:
        """What `compute` returns, or returned for the same rows."""
        digest = hashlib.sha256(what.encode())
        for leaf in (*rows.x, rows.y, rows.value, rows.owner):
            digest.update(np.ascontiguousarray(leaf).tobytes())
        key = digest.hexdigest()
        if key not in self._found:
            self._found[key] = compute()
        return self._found[key]


def majority(labels: Labels, targets: Targets) -> list[Row]:
    """Each client's most frequent value, or its median (`metrics.usual_values`)."""
    guess = np.zeros_like(targets.value)
    for seed, (values, mask) in enumerate(
        zip(targets.value, targets.mask, strict=True)
    ):
        own = [each[real] for each, real in zip(values, mask, strict=True)]
        usual = metrics.usual_values(own, continuous=targets.continuous)
        guess[seed] = usual[:, None]
    about = labels, verdicts.MAJORITY, "baseline", guess, targets
    if not targets.continuous:
        return scoring.guesses(*about)
    return [row for row in errors.rows(*about) if row.metric == errors.ERROR]


def imputed(
    setup: Setup,
    labels: Labels,
    targets: Targets,
    strange: Strangers | None,
    shared: Shared,
    bars: Progress,
) -> Imputation:
    """Each client's rows imputed from all others, and from fewer of them.

    Args:
      setup: of a point, with a sensitive attribute.
      labels: of the rows.
      targets: of the attacked clients.
      strange: of a continuous attribute they are imputed, too.
      shared: with other points.
      bars: to show progress.
    """
    everyone = [population.of_seed(setup, at) for at in range(len(targets.seeds))]
    most = max(np.bincount(each.owner + 1)[1:].max() for each in everyone)
    known = min(len(each.owner) for each in everyone) - most
    curve = {f"rows_{some}": some for some in _CURVE if some < known}
    bar = bars.add_task("imputation, seeds", total=len(everyone) * (1 + len(curve)))
    rows, values = [], {}
    for setting, some in ({"baseline": None} | curve).items():
        guess = np.zeros_like(targets.value)
        for at, each in enumerate(everyone):
            guess[at] = _of_seed(setup, at, each, some, shared)
            bars.advance(bar)
        values[setting] = guess
        about = labels, verdicts.IMPUTATION, setting, guess, targets
        rows += errors.rows(*about) if targets.continuous else scoring.guesses(*about)
    if not targets.continuous and not knowledge.is_exact(setup.config.knowledge):
        guess = np.zeros_like(targets.value)
        for at, each in enumerate(everyone):
            guess[at] = _of_seed(setup, at, each, None, shared, as_known=True)
        about = labels, verdicts.IMPUTATION, verdicts.AS_KNOWN, guess, targets
        rows += scoring.guesses(*about)
    if not targets.continuous:
        return Imputation(rows, None, None)
    numbers = [_left(setup, at, each, shared) for at, each in enumerate(everyone)]
    left = np.array([variance for variance, _ in numbers])
    own = Imputed(values["baseline"], left)
    if strange is None:
        return Imputation(rows, own, None)
    theirs = [every[at] for (_, every), at in zip(numbers, strange.rows, strict=True)]
    return Imputation(rows, own, Imputed(np.stack(theirs), left))


def _of_seed(
    setup: Setup, at: int, rows: Population, most: int | None, shared: Shared,
    *, as_known: bool = False,
) -> np.ndarray:  # fmt: skip
    """Guesses as targets have them, `[C, n]`."""
    assert setup.targets is not None
    count, size = setup.clients.sizes.shape[1], setup.clients.sizes.max()
    seed = setup.config.run.seeds[at]
    own = [np.flatnonzero(rows.owner == client) for client in range(count)]

    def compute():
        given = learned(setup, rows), rows.owner, own, seed
        if as_known:
            return imputation.of_clients(*given, asked=_asked(setup, at, rows))
        if most is not None:
            return imputation.of_clients(*given, most=most)
        every = from_all(setup, at, rows, shared)
        return imputation.informed(given[0], own, imputation.of_clients(*given), every)

    what = f"clients {seed} {most} {count}"
    values = compute() if as_known else shared.of(rows, what, compute)
    guess = np.zeros((count, size), setup.targets.value.dtype)
    for client, value in enumerate(values):
        guess[client, : len(value)] = value
    if setup.config.attack.score == "pooled":
        return pool(guess[None])[0]
    return guess


def from_all(setup: Setup, at: int, rows: Population, shared: Shared) -> np.ndarray:
    """Every row from all others of a five-fold split, and from whose it is: `[N]`."""
    seed = setup.config.run.seeds[at]

    def compute() -> np.ndarray:
        return imputation.crossed_with_owner(learned(setup, rows), rows.owner, seed)

    return shared.of(rows, f"others and owners {seed}", compute)


def _left(
    setup: Setup, at: int, rows: Population, shared: Shared
) -> tuple[float, np.ndarray]:
    """Variance that imputation leaves, and every row imputed from others, `[N]`."""
    seed = setup.config.run.seeds[at]
    known = learned(setup, rows)

    def compute():
        return imputation.residual(known, seed), imputation.crossed(known, seed)

    return shared.of(rows, f"everyone {seed}", compute)


def _asked(setup: Setup, at: int, rows: Population) -> np.ndarray:
    """Columns of all rows `[N, D]`, those of clients as the adversary has them."""
    assert setup.targets is not None
    mask = setup.targets.mask[at]
    known = jax.tree.map(lambda leaf: np.asarray(leaf)[at][mask], setup.known)
    found = imputation.columns(rows.x, rows.y)
    found[rows.owner != population.HELD_OUT] = imputation.columns(known.public, known.y)
    return found


def learned(setup: Setup, rows: Population) -> imputation.Population:
    """Rows as imputation takes them."""
    assert setup.targets is not None
    return imputation.Population(
        imputation.columns(rows.x, rows.y),
        rows.value,
        imputation.coded(rows.x, setup.table.task),
        setup.targets.continuous,
    )
