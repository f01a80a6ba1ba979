"""What guesses of a number tell beyond imputation, from the rows of a run."""

from collections.abc import Iterable

import numpy as np

from experiments.report.gains import Score
from fljax import metrics, shrinkage, verdicts
from fljax.results import Row
from fljax.shrinkage import Interval


def said(rows: Iterable[Row], score: Score) -> str:
    """Correlation with the truth and share of variance; empty for other measures.

    Args:
      rows: of the run.
      score: of one of its attacks.
    """
    if score.gain.measure is not verdicts.ERROR:
        return ""
    clients: dict[int, list[Row]] = {}
    shares = []
    for row in rows:
        if not score.is_of(row._replace(metric=score.row.metric)):
            continue
        if row.metric == shrinkage.CORRELATION and isinstance(row.client, int):
            clients.setdefault(row.seed, []).append(row)
        elif row.metric == shrinkage.BEYOND and row.client == "all":
            shares.append(row.value)
    share = float(np.mean(shares)) if shares else None
    return shrinkage.said(_over_seeds(clients.values()), share)


def _over_seeds(seeds: Iterable[list[Row]]) -> Interval | None:
    """Student's interval over the seeds; of one seed Fisher's over its rows."""
    each = [
        shrinkage.mean_correlation([row.value for row in rows], [r.n for r in rows])
        for rows in seeds
    ]
    if len(each) < 2 or None in each:
        return each[0] if len(each) == 1 else None
    found = metrics.interval([r.mean for r in each if r is not None])
    return Interval(found.mean, max(found.low, -1.0), min(found.high, 1.0))
