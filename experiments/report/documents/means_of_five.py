"""Where the mean of five trainings that somebody published lies among such means of ours.

Of errors with heavy tails a mean over all seeds is that of the few worst ones, and more
seeds widen its interval.
"""

import numpy as np

from experiments.report import kept
from experiments.report.documents import writing
from fljax.driver.config import ConfigError

_FIVE = 5
_COLUMNS = (
    "attack", "point", "metric", "median of ours", "95 % of ours", "published",
    "ours below it, %",
)  # fmt: skip


def text(name: str) -> str:
    """A line for each number of a kept result that has a published one.

    Raises:
      ConfigError: the result has fewer than five seeds.
    """
    card = kept.shown(name)
    body, groups = [], 0
    for each in card.compared:
        assert each.number is not None
        label = each.line.row.repeated
        own = [row.value for row in card.rows if row.repeated == label]
        groups = len(own) // _FIVE
        if not groups:
            raise ConfigError(f"{name}: expected five seeds or more, got {len(own)}")
        means = np.mean(np.reshape(own[: groups * _FIVE], (groups, _FIVE)), axis=1)
        low, median, high = np.quantile(means, [0.025, 0.5, 0.975])
        body.append([
            label.attack, label.point, each.line.metric, f"{median:.4g}",
            f"{low:.4g} to {high:.4g}", str(each.number),
            f"{100 * np.mean(means < each.number.mean):.0f}",
        ])  # fmt: skip
    made = writing.table(_COLUMNS, body, _COLUMNS[3:])
    return f"{writing.command(card.manifest['command'])}\n\n{made}\n\n{groups} means of five."
