"""Table VII of Wei et al. (2021), which a run stands beside; needs no JAX.

Its types 0 and 1 are one column. The distance is called a root mean square deviation
and given the formula of a mean squared error; ours is the RMSE.
"""

from collections.abc import Mapping
from typing import Any

from experiments.fed_cdp.published import column
from experiments.report import published
from experiments.report.cards import Number, Reference

TABLE = "table7"
_PAPER = "wei2021"


def reference(flags: Mapping[str, Any], data: str) -> Reference | None:
    """The numbers for the report, None for a run that does not stand beside them.

    Args:
      flags: what the run was told.
      data: name in its rows.
    """
    found = numbers(data) if flags.get("paper_table") == TABLE else {}
    if not found:
        return None
    values = {key: Number(value) for key, value in found.items()}
    name, same = column(data)
    return Reference("Table VII", name, same, "lenet", None, values)


def numbers(data: str) -> dict[tuple[str, str, str], float]:
    """`(setting, method, metric) -> number`; empty for data that the paper lacks."""
    named, _ = column(data)
    return {
        (line["setting"], line["method"], line["metric"]): float(line["value"])
        for line in published.stored(_PAPER)
        if (line["table"], line["dataset"]) == (TABLE, named)
    }
