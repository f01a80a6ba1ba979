"""Everyone's rows, and what they are for: imputation, and strangers to the messages.

Like the truth, this is for scores only; attacks get the public columns of strangers as
if they were rows of the client whose messages they have.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from fljax import imputation
from fljax import strangers as strangers_lib
from fljax.auditing import rows as rows_lib
from fljax.auditing import unusual
from fljax.auditing.measuring import Imputed
from fljax.auditing.rows import Encoding
from fljax.auditing.truth import Truth
from fljax.data.preprocess import Split
from fljax.imputation import Population
from fljax.types import Known

_DRAW = 1  # stream of the seed


class Everyone(NamedTuple):
    """All rows that an audit has.

    Attributes:
      split: encoded, those of the file and then the adversary's own.
      owner: `[N]` position of the audited client that has the row; negative: none.
      own: of each audited client, numbers of its rows.
      population: the same rows for imputation.
      elsewhere: numbers of rows of clients who took part and are not audited.
    """

    split: Split
    owner: np.ndarray
    own: list[np.ndarray]
    population: Population
    elsewhere: np.ndarray = np.zeros(0, int)

    def with_others(
        self, client: np.ndarray | None, took_part: np.ndarray
    ) -> "Everyone":
        """With the clients who took part: `client [n]` of the file's rows, which come first."""
        if client is None:
            return self
        there = np.flatnonzero(np.isin(client, took_part))
        return self._replace(elsewhere=there[self.owner[there] < 0])


class Strangers(NamedTuple):
    """As many rows for each client as it has, that are not its own.

    Attributes:
      known: public columns, leaves `[C, n, ...]`.
      truth: their sensitive values.
      rows: their numbers, of each client.
    """

    known: Known
    truth: Truth
    rows: list[np.ndarray]

    @property
    def uses(self) -> float:
        """How often a drawn row is drawn, on average over the draws."""
        return strangers_lib.uses(self.rows)


def gather(
    encoding: Encoding, own: list[np.ndarray], proxy: pd.DataFrame | None
) -> Everyone:
    """All rows, and whose they are.

    Raises:
      DataError: the adversary's own rows are not like those of the file.
    """
    split = rows_lib.everyone(encoding, proxy)
    owner = np.full(len(split.y), -1)
    for client, rows in enumerate(own):
        owner[rows] = client
    public, task = rows_lib.public(encoding, split), encoding.columns.task
    population = Population(
        imputation.columns(public, split.y),
        split.truth,
        imputation.coded(public, task),
        encoding.columns.continuous,
    )
    return Everyone(split, owner, own, population)


def strangers(
    everyone: Everyone,
    encoding: Encoding,
    outputs: int,
    seed: int,
    summed: Sequence[np.ndarray] | None = None,
) -> Strangers | None:
    """Rows for each client that never were its own; None if some client has none.

    Args:
      everyone: all rows.
      encoding: of them.
      outputs: of the model.
      seed: of the draw.
      summed: of each client, numbers of the rows that its sums hold, which are no
        strangers to them; None where its messages are its own.
    """
    drawn, most = [], max(map(len, everyone.own))
    for client, own in enumerate(everyone.own):
        rng = np.random.default_rng([seed, _DRAW, client])
        owner = everyone.owner.copy()
        owner[everyone.elsewhere] = len(everyone.own)  # somebody's, and none of these
        if summed is not None:
            owner[summed[client]] = client
        some = strangers_lib.draw(rng, owner, client, len(own))
        if len(own) and not len(some):
            return None
        drawn.append(some)
    split = everyone.split
    return Strangers(*rows_lib.split(encoding, split, drawn, outputs, most), drawn)


def imputed(everyone: Everyone, strange: Strangers | None, seed: int) -> Imputed:
    """What each client's other columns, and others' rows, tell."""
    people = everyone.population
    others = imputation.of_clients(people, everyone.owner, everyone.own, seed)
    every = imputation.crossed_with_owner(people, everyone.owner, seed)
    found = Imputed(
        imputation.informed(people, everyone.own, others, every),
        from_all=[every[rows] for rows in everyone.own],
    )
    if not people.continuous:
        return found._replace(unusual=_unusual(everyone, seed))
    found = found._replace(left=imputation.residual(people, seed))
    if strange is None:
        return found
    crossed = imputation.crossed(people, seed)
    return found._replace(strangers=[crossed[rows] for rows in strange.rows])


def _unusual(everyone: Everyone, seed: int) -> list[list[np.ndarray]]:
    """How likely each row has another value than most, if most have one.

    By both methods of imputation, for the one with the smaller error need not be the one
    that ranks rows better.
    """
    people, own = everyone.population, everyone.own
    common = unusual.usual([people.value[rows] for rows in own])
    if common is None:
        return []
    other = people._replace(value=1.0 * (people.value != common), continuous=True)
    found = []
    for method in (imputation.LINEAR, imputation.BOOSTING):
        told = other, everyone.owner
        every = imputation.crossed_with_owner(*told, seed, method)
        found.append([every[rows] for rows in own])
        found.append(imputation.of_clients(*told, own, seed, method=method))
    return found
