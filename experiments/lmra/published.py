"""Table 1 of Xu & Neglia (2021), which a run stands beside; needs no JAX.

Its data are a random draw, so that only means over its clients compare, with one more
draw of ours. What decoding gains over the last returned model is the difference of two
printed means.
"""

from collections.abc import Mapping
from typing import Any

from experiments.report import published
from experiments.report.cards import Number, Reference

METRIC = "train_accuracy_percent"
OVER_LAST = "gain_over_last_returned_points"
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
    means = {
        (setting.removesuffix(";mean"), method): value
        for (setting, method), value in numbers().items()
        if setting.endswith(";mean")
    }
    values = {(*key, METRIC): Number(v, draws=1) for key, v in means.items()}
    for (setting, method), value in means.items():
        if method == "decoded":
            gain = round(value - means[setting, "last_returned"], 2)
            number = Number(gain, draws=1, is_printed=False)
            values[setting, method, OVER_LAST] = number
    return Reference("Table 1", "LEAF synthetic", True, "logistic", False, values)


def numbers() -> dict[tuple[str, str], float]:
    """`(local_steps=E;clientC or local_steps=E;mean, method) -> percent`."""
    return {
        (line["setting"], line["method"]): float(line["value"])
        for line in published.stored(_PAPER)
        if (line["table"], line["dataset"]) == (_TABLE, _DATA)
    }
