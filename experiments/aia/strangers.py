"""Rows that a client did not train on, in the place of its own.

Held-out rows first. Where these are too few, as on Medical, rows of other clients follow.
What an attack tells of them it would tell of anyone. Of sums that is so of held-out rows
alone: those of other clients are in the sums, too, and a leak is shown less easily. Their
truth is for scores, the attack gets what it gets of a client's own rows.
"""

from typing import NamedTuple

import jax
import numpy as np

from experiments.aia import population
from experiments.aia.population import Population
from experiments.aia.setup import Setup
from experiments.tabular.targets import Targets
from fljax import strangers, verdicts
from fljax.results import Labels, Row
from fljax.types import Known

_DRAW = 2  # stream of a seed


class Strangers(NamedTuple):
    """As many for each client as it has rows, or fewer where there are no more.

    Attributes:
      known: what is known of them, leaves `[seeds, C, n, ...]`.
      targets: their sensitive values; a client without any has no weight.
      rows: `[seeds, C, n]` their numbers in the population, 0 for padding.
    """

    known: Known
    targets: Targets
    rows: np.ndarray


def rows(labels: Labels, drawn: Strangers) -> list[Row]:
    """How often a stranger is drawn, seed by seed: one of several clients counts once."""
    found = []
    for at, seed in enumerate(drawn.targets.seeds):
        used = [
            n[m] for n, m in zip(drawn.rows[at], drawn.targets.mask[at], strict=True)
        ]
        count = sum(map(len, used))
        if count:
            about = verdicts.STRANGERS, "baseline", seed, verdicts.USES
            found.append(labels.row(*about, strangers.uses(used), count))
    return found


def draw(setup: Setup) -> Strangers | None:
    """Held-out rows first, then those of other clients; None where there are none."""
    if setup.targets is None or setup.config.attack.score == "pooled":
        return None
    sizes, most = setup.clients.sizes, setup.targets.mask.shape[2]
    every = [
        _of_seed(population.of_seed(setup, at), seed, sizes[at], most)
        for at, seed in enumerate(setup.config.run.seeds)
    ]
    rows, mask, drawn = jax.tree.map(lambda *leaves: np.stack(leaves), *every)
    if not mask.any():
        return None
    known = Known(rows.x, rows.y, mask)
    truth = setup.targets._replace(
        value=rows.value, mask=mask, weights=sizes * mask.any(axis=2), known=known
    )
    return Strangers(known, truth, drawn)


def _of_seed(
    everyone: Population, seed: int, sizes: np.ndarray, most: int
) -> tuple[Population, np.ndarray, np.ndarray]:
    """Leaves `[C, n, ...]`, which of them are no padding, and where they stood."""
    drawn = np.zeros((len(sizes), most), np.int64)
    mask = np.zeros(drawn.shape, bool)
    for client, size in enumerate(sizes):
        rng = np.random.default_rng([seed, _DRAW, client])
        some = strangers.draw(rng, everyone.owner, client, size)
        drawn[client, : len(some)] = some
        mask[client, : len(some)] = True
    rows = everyone.take(drawn)
    return jax.tree.map(lambda leaf: _padded(leaf, mask), rows), mask, drawn


def _padded(leaf: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Zeros outside the mask `[C, n]`."""
    wide = mask.reshape(*mask.shape, *[1] * (leaf.ndim - 2))
    return np.where(wide, leaf, np.zeros((), leaf.dtype))
