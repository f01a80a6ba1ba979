"""What each defense of a kept result costs, in accuracy, seed by seed."""

from experiments.report import kept
from experiments.report.documents import writing
from fljax import metrics
from fljax.driver.config import ConfigError

_METRIC, _SETTING, _NONE = "accuracy_percent", "final", "none"


def text(name: str) -> str:
    """A line for each defense: the trained models' accuracy, and points less than without.

    Args:
      name: of a kept result of one point, some of whose trainings have no defense.

    Raises:
      ConfigError: none has none, or there are two numbers for one seed and defense.
    """
    found: dict[str, dict[int, float]] = {}
    for row in kept.read(name).rows:
        if (row.metric, row.setting, row.client) == (_METRIC, _SETTING, "all"):
            if row.seed in found.setdefault(row.defense, {}):
                raise ConfigError(f"cost.{name}: two accuracies under {row.defense}")
            found[row.defense][row.seed] = row.value
    if _NONE not in found:
        raise ConfigError(f"cost.{name}: expected accuracies without a defense")
    free, body = found[_NONE], []
    for defense, own in found.items():
        seeds = sorted(own.keys() & free.keys())
        less = metrics.interval([free[seed] - own[seed] for seed in seeds])
        accuracy = metrics.interval(list(own.values()))
        lost = "" if defense == _NONE else writing.plain(less)
        body.append([defense, writing.plain(accuracy), lost, str(len(seeds))])
    header = ["defense", "accuracy %", "points less, paired by seed", "seeds"]
    return writing.table(header, body, header[1:])
