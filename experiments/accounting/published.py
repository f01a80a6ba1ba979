"""Table VI of Wei et al. (2021), which a run without a method stands beside."""

from collections.abc import Mapping
from typing import Any

from experiments.report.cards import Number, Reference
from experiments.report.published import stored


def of_run(flags: Mapping[str, Any], data: str) -> Reference | None:
    """Table VI of Wei et al. (2021), which a run of experiments.accounting stands beside.

    Its numbers are computed, so that they can be had to the last digit.

    Args:
      flags: what the run was told; a configuration of one's own stands beside nothing.
      data: any.
    """
    del data
    if flags.get("accounting_method") is not None:
        return None
    numbers = {
        (
            f"{line['dataset']};{line['setting']}",
            line["method"],
            line["metric"],
        ): Number(
            float(line["value"]), unit=10.0 ** -len(line["value"].partition(".")[2])
        )
        for line in stored("wei2021")
        if line["table"] == "table6"
    }
    return Reference(
        table="Table VI",
        data="five data sets",
        same_data=True,
        model="any",
        defended=True,
        numbers=numbers,
    )
