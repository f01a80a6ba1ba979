"""Table 1 of Xu & Neglia (2021), which a run stands beside; needs no JAX.

Its data are a random draw, so that only means over clients and draws compare.
"""

from collections.abc import Mapping
from typing import Any

from experiments.report import published
from experiments.report.cards import Number, Reference

METRIC = "train_accuracy_percent"
_PAPER = "xu_neglia2021"
_TABLE, _DATA = "table1", "leaf_synthetic"


def reference(flags: Mapping[str, Any], data: str) -> Reference | None:
    """The numbers for the report, None for a run that does not stand beside them.

    Args:
      flags: what the run was told.
      data: name in its rows.
    """
    if flags.get("paper_table") != _TABLE or data != _DATA:
        return None
    values = {
        (setting.removesuffix(";mean"), method, METRIC): Number(value)
        for (setting, method), value in numbers().items()
        if setting.endswith(";mean")
    }
    return Reference("Table 1", "LEAF synthetic", True, "logistic", False, values)


def numbers() -> dict[tuple[str, str], float]:
    """`(local_steps=E;clientC or local_steps=E;mean, method) -> percent`."""
    return {
        (line["setting"], line["method"]): float(line["value"])
        for line in published.stored(_PAPER)
        if (line["table"], line["dataset"]) == (_TABLE, _DATA)
    }
