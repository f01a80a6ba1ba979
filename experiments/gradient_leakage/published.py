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
_LIMIT = 300  # iterations, after which the paper's attack gives up


def reference(flags: Mapping[str, Any], data: str) -> Reference | None:
    """The numbers for the report, None for a run that does not stand beside them.

    Args:
      flags: what the run was told.
      data: name in its rows.
    """
    found = numbers(data) if flags.get("paper_table") == TABLE else {}
    if not found:
        return None
    ends = {flags.get("iterations"), flags.get("give_up")} - {None}
    other = "" if ends == {_LIMIT} else f"theirs gives up after {_LIMIT}"
    values = {
        key: Number(value, differs=other if _gave_up(key[-1], value) else "")
        for key, value in found.items()
    }
    name, same = column(data)
    return Reference("Table VII", name, same, "lenet", None, values)


def _gave_up(metric: str, value: float) -> bool:
    """Whether it only says when the paper's attack ends."""
    return (metric, value) == ("attack_iterations", _LIMIT)


def numbers(data: str) -> dict[tuple[str, str, str], float]:
    """`(setting, method, metric) -> number`; empty for data that the paper lacks."""
    named, _ = column(data)
    return {
        (line["setting"], line["method"], line["metric"]): float(line["value"])
        for line in published.stored(_PAPER)
        if (line["table"], line["dataset"]) == (TABLE, named)
    }
