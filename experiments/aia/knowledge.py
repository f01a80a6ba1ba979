"""What an adversary knows of clients' rows where it does not know everything.

Cells of the public columns are wrong or missing, targets are not known, or only some rows
are. Only `Known` changes: clients train on their rows as they are, and scores compare with
the truth. Strangers and the majority stay as they are; imputation is done from exact
columns and targets, and from what is known of them.

Draws are nested: what is wrong, missing or unknown at one share is so at every larger one.
"""

from collections.abc import Sequence

import jax
import numpy as np

from experiments.aia import population
from experiments.aia.knowledge_config import KnowledgeConfig
from experiments.aia.setup import Setup
from fljax import imputation
from fljax.data import encoder
from fljax.driver.config import ConfigError
from fljax.types import Features, Known

_NOISE, _MISSING, _ROWS, _STAND_INS, _TARGETS = 11, 12, 13, 14, 15  # streams of a seed


def is_exact(config: KnowledgeConfig) -> bool:
    """Whether all columns and targets of the rows that are known at all are known."""
    return (config.noise, config.missing, config.targets) == (0, 0, 1)


def degraded(setup: Setup) -> Known:
    """Leaves `[seeds, C, n, ...]`.

    Args:
      setup: of a point, which has what is known where everything is.

    Raises:
      ConfigError: for flags that do not fit each other, or unknown rows for which there
        are no others.
    """
    config = setup.config.knowledge
    if config == KnowledgeConfig() or setup.targets is None:
        return setup.known
    _check(setup)
    every = []
    for at, seed in enumerate(setup.config.run.seeds):
        known = jax.tree.map(lambda leaf, at=at: np.array(leaf[at]), setup.known)
        if config.rows < 1:
            known = _with_stand_ins(setup, known, at)
        column_of = _column_of(setup.clients.datasets[at].encoder.dense, known)
        each = [
            _of_client(
                jax.tree.map(lambda leaf, c=c: leaf[c], known),
                column_of,
                config,
                seed,
                c,
            )
            for c in range(len(known.mask))
        ]
        known = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
        every.append(_with_imputed_targets(setup, known, at))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *every)


def of_rows(setup: Setup) -> np.ndarray:
    """Which rows are known, `[seeds, C, n]` bool: those that are scored."""
    assert setup.targets is not None
    mask, share = setup.targets.mask, setup.config.knowledge.rows
    if share == 1:
        return mask
    seeds = setup.config.run.seeds
    return np.stack(
        [
            np.stack([_rows_known(rows, share, seed, c) for c, rows in enumerate(own)])
            for seed, own in zip(seeds, mask, strict=True)
        ]
    )


def _check(setup: Setup) -> None:
    config = setup.config
    if config.attack.score == "pooled":
        raise ConfigError("--knowledge_*: expected --attack_score=own")
    if config.knowledge.rows < 1 and config.run.save_guesses:
        raise ConfigError("--save_guesses: expected --knowledge_rows=1")


def _rows_known(mask: np.ndarray, share: float, seed: int, client: int) -> np.ndarray:
    """So many of a client's rows, at least one where it has any."""
    own = np.flatnonzero(mask)
    order = np.random.default_rng([seed, _ROWS, client]).permutation(own)
    found = np.zeros_like(mask)
    found[order[: max(1, round(share * len(own)))]] = True
    return found


def _with_imputed_targets(setup: Setup, known: Known, at: int) -> Known:
    """What others' rows say in the place of unknown targets, `[C, ...]`.

    Learned from rows of other clients and held-out ones, by public columns as the
    adversary has them; nobody's sensitive value is among these.
    """
    share = setup.config.knowledge.targets
    if share == 1:
        return known
    everyone, seed = population.of_seed(setup, at), setup.config.run.seeds[at]
    task, y = setup.table.task, np.array(known.y)
    people = imputation.Population(
        imputation.columns(everyone.x, everyone.y)[:, :-1],
        everyone.y,
        imputation.coded(everyone.x, task)[:-1],
        task == "regression",
    )
    for client, mask in enumerate(np.asarray(known.mask, bool)):
        own = np.flatnonzero(mask)
        order = np.random.default_rng([seed, _TARGETS, client]).permutation(own)
        gone, others = order[round(share * len(own)) :], everyone.owner != client
        if len(gone) and not others.any():
            raise ConfigError(
                "--knowledge_targets: expected 1 where there are no rows but one client's"
            )
        x = Features(*(np.asarray(leaf)[client, gone] for leaf in known.public))
        asked = imputation.columns(x, y[client, gone])[:, :-1]
        y[client, gone] = imputation.impute(people.take(others), asked, seed)
    return known._replace(y=y)


def _with_stand_ins(setup: Setup, known: Known, at: int) -> Known:
    """Held-out rows and those of other clients in the place of unknown ones, `[C, ...]`."""
    assert setup.targets is not None
    everyone, seed = population.of_seed(setup, at), setup.config.run.seeds[at]
    unknown = setup.targets.mask[at] & ~of_rows(setup)[at]
    for client, rows in enumerate(unknown):
        others = np.flatnonzero(everyone.owner != client)
        if rows.any() and not len(others):
            raise ConfigError(
                "--knowledge_rows: expected 1 where there are no rows but one client's"
            )
        rng = np.random.default_rng([seed, _STAND_INS, client])
        some = rng.choice(others, len(rows))[rows] if rows.any() else others[:0]
        for leaf, source in zip(
            (*known.public, known.y), (*everyone.x, everyone.y), strict=True
        ):
            leaf[client, rows] = np.asarray(source)[some]
    return known


def _column_of(columns: Sequence[encoder.Column], known: Known) -> np.ndarray:
    """Which column each public number `[Dn - W]` is of: a category has several dummies."""
    widths = [column.width for column in columns]
    numbers = np.repeat(np.arange(len(columns)), widths)
    public = numbers[: known.public.numeric.shape[-1]]  # the sensitive one comes last
    return np.unique(public, return_inverse=True)[1]  # without those of no input


def _of_client(
    known: Known, column_of: np.ndarray, config: KnowledgeConfig, seed: int, client: int
) -> Known:
    """One client's, `[n, ...]`, with wrong and missing cells."""
    numeric, codes = (np.array(leaf) for leaf in known.public)
    columns = (
        _Columns(numeric, known.mask, column_of),
        _Columns(codes, known.mask, np.arange(codes.shape[-1])),
    )
    for part, each in enumerate(columns):
        each.replace(config.noise, np.random.default_rng([seed, _NOISE, client, part]))
        each.forget(
            config.missing, np.random.default_rng([seed, _MISSING, client, part])
        )
    return known._replace(public=Features(*(each.cells for each in columns)))


class _Columns:
    """Numbers, or codes of categories, `[n, D]`, changed in place.

    Attributes:
      cells: these.
    """

    def __init__(
        self, cells: np.ndarray, mask: np.ndarray, column_of: np.ndarray
    ) -> None:
        self.cells, self._mask, self._column_of = cells, mask.astype(bool), column_of
        self._shape = len(mask), column_of.max(initial=-1) + 1

    def replace(self, share: float, rng: np.random.Generator) -> None:
        """Some cells by those of random rows."""
        own, chosen = np.flatnonzero(self._mask), self._chosen(share, rng)
        if len(own):
            others = rng.choice(own, self._shape)[:, self._column_of]
            there = np.take_along_axis(self.cells, others, axis=0)
            self.cells[chosen] = there[chosen]

    def _chosen(self, share: float, rng: np.random.Generator) -> np.ndarray:
        """`[n, D]` bool, all inputs of a column alike."""
        chosen = (rng.random(self._shape) < share)[:, self._column_of]
        return chosen & self._mask[:, None]

    def forget(self, share: float, rng: np.random.Generator) -> None:
        """Some cells, in whose place comes what the column's others say."""
        for number, column in enumerate(self._chosen(share, rng).T):
            left = self.cells[self._mask & ~column, number]
            if column.any():
                self.cells[column, number] = _usual(left)


def _usual(left: np.ndarray) -> float | int:
    """Mean of numbers and dummies, most frequent code; 0 where nothing is left."""
    if not len(left):
        return 0
    if np.issubdtype(left.dtype, np.integer):
        return np.bincount(left).argmax()
    return left.mean()
