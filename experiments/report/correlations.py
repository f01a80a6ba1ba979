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
    own = [row for row in rows if score.is_of(row._replace(metric=score.row.metric))]
    shares = [
        row.value
        for row in own
        if row.metric == shrinkage.BEYOND and row.client == "all"
    ]
    share = float(np.mean(shares)) if shares else None
    r, partial = (
        _over_seeds(own, metric)
        for metric in (shrinkage.CORRELATION, shrinkage.PARTIAL)
    )
    return shrinkage.said(r, share, partial)


def _over_seeds(rows: Iterable[Row], metric: str) -> Interval | None:
    """Student's interval over the seeds; of one seed Fisher's over its rows."""
    seeds: dict[int, list[Row]] = {}
    for row in rows:
        if row.metric == metric and isinstance(row.client, int):
            seeds.setdefault(row.seed, []).append(row)
    each = [
        shrinkage.mean_correlation([row.value for row in some], [r.n for r in some])
        for some in seeds.values()
    ]
    if len(each) < 2 or None in each:
        return each[0] if len(each) == 1 else None
    found = metrics.interval([r.mean for r in each if r is not None])
    return Interval(found.mean, max(found.low, -1.0), min(found.high, 1.0))
