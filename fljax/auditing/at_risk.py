"""The records of which an adversary is surest; nothing here knows whether rightly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fljax.auditing.lines import Line

SURE = 0.99


def attack(lines: Sequence[Line], foremost: Line | None) -> str | None:
    """Whose posterior orders the records: the foremost attack's, else the last one's."""
    names = [line.attack for line in lines if line.records is not None]
    if foremost is not None and foremost.attack in names:
        return foremost.attack
    return names[-1] if names else None


def order(records: pd.DataFrame, attack: str | None) -> pd.DataFrame:
    """Records by how sure an attack is of them, the surest first.

    Args:
      records: as `Findings.records`.
      attack: one with a posterior; None gives no record.

    Returns:
      Columns `client`, `row`, `value` (named by the attack) and `probability`; of equally
      sure ones those with the values that it names least often come first.
    """
    names = ["client", "row", "value", "probability"]
    if attack is None:
        return pd.DataFrame(columns=names)
    found = records.loc[:, ["client", "row", attack, f"{attack}_probability"]]
    found = found.set_axis(names, axis=1)
    times = found.groupby("value", observed=True).value.transform("size")
    return found.iloc[np.lexsort((times, -found.probability))]


def shown(
    found: pd.DataFrame, names: dict[int, str], most: int
) -> list[dict[str, Any]]:
    """The first records as texts."""
    return [
        {
            "client": names[int(client)],
            "row": str(row),
            "value": str(value),
            "sure": _percent(float(probability)),
        }
        for client, row, value, probability in found.head(most).itertuples(index=False)
    ]


def of_clients(
    found: pd.DataFrame, clients: Sequence[int] | np.ndarray
) -> list[tuple[int, int]]:
    """`[C]` records of which the adversary is at least `SURE`, and all."""
    sure = found[found.probability >= SURE].client.value_counts()
    every = found.client.value_counts()
    return [(int(sure.get(c, 0)), int(every.get(c, 0))) for c in np.asarray(clients)]


def _percent(share: float) -> str:
    return "above 99.9 %" if share > 0.999 else f"{100 * share:.1f} %"
