"""Accuracies and times of Wei et al. (2021) that a run stands beside; needs no JAX."""

import re
from collections.abc import Mapping
from typing import Any

from experiments.report import published
from experiments.report.cards import Number, Reference

AS_CODED = "_per_batch"  # behind a method with the noise of the published code
FINAL = "final"  # setting of what the last model reaches
ACCURACY = "accuracy_percent"
TUNED = "tuning_accuracy_percent"  # of every rate, mean over the first tuning_seeds
MILLISECONDS = "ms_per_local_iteration"
_PAPER = "wei2021"
_CLIPS_AT = "sigma=6"  # of Table IV
# Name of our data -> the paper's, of the same data or of data that ours are only like:
# another alignment of the photographs, half of the images, other digits.
_SAME = {"breast_cancer": "cancer"}
_STAND_INS = {
    "lfw_deepfunneled": "lfw", "cifar10_half": "cifar10", "digits": "mnist"
}  # fmt: skip
_TITLES = {
    "table1": "Table I",
    "table2": "Table II",
    "table3": "Table III",
    "table4": "Table IV",
    "table5": "Table V",
}


def reference(flags: Mapping[str, Any], data: str) -> Reference | None:
    """The numbers for the report, None for a run that does not stand beside them.

    Args:
      flags: what the run was told.
      data: name in its rows.
    """
    table = flags.get("paper_table")
    values = {
        (point or FINAL, method, metric): Number(value)
        for (point, method, metric), value in beside(flags, data).items()
        if metric != MILLISECONDS  # no result: times are in the manifest
    }
    if not values:
        return None
    model = "mlp" if data in ("adult", "breast_cancer") else "cnn"
    name, same = column(data)
    return Reference(_TITLES[table], name, same, model, None, values)


def beside(flags: Mapping[str, Any], data: str) -> dict[tuple[str, str, str], float]:
    """`(point, method, metric) -> value` of a run, as it names its methods.

    Fed-CDP's numbers bear the name of the noise of the published code, if run. They stand
    for both where a run has the noise of the algorithm as printed, too. Table IV is over
    clips at one sigma, which the code's multiplier is not: its numbers stand beside the
    multiplier that was run.
    """
    table, defense = flags.get("paper_table"), str(flags.get("defense"))
    values = numbers(table, data)
    ours = [text for text in defense.split(";") if "fed_cdp(" in text]
    coded = [text for text in ours if "mode=per_batch" in text]
    if not coded:
        return values
    multiplier = re.search(r"sigma=[\d.]+(?=[,)])", coded[0])  # one, not several

    def drawn(point: str) -> str:
        if table != "table4" or multiplier is None:
            return point
        return re.sub(r"sigma=[\d.]+", multiplier[0], point)

    named = {
        (drawn(point), method + AS_CODED, metric): number
        for (point, method, metric), number in values.items()
        if method.startswith("fed_cdp")
    }
    printed = {} if len(coded) == len(ours) else values
    others = {k: v for k, v in values.items() if not k[1].startswith("fed_cdp")}
    return printed | others | named


def as_printed(table: str, point: str, method: str) -> tuple[str, str]:
    """Point and method of the printed number that stands beside a run's, by `beside`."""
    if table == _TITLES["table4"]:
        point = re.sub(r"sigma=[\d.]+", _CLIPS_AT, point)
    return point, method.removesuffix(AS_CODED)


def numbers(table: str | None, data: str) -> dict[tuple[str, str, str], float]:
    """`(point, method, metric) -> value` in our units; empty where the paper has none."""
    named, _ = column(data)
    ours = {"accuracy": (ACCURACY, 100), MILLISECONDS: (MILLISECONDS, 1)}
    found = {}
    for line in published.stored(_PAPER):
        if (line["table"], line["dataset"]) == (table, named):
            metric, factor = ours[line["metric"]]
            point = line["setting"].replace("default", "")
            found[point, line["method"], metric] = factor * float(line["value"])
    return found


def column(data: str) -> tuple[str, bool]:
    """The paper's name of the data in our rows, and whether they are the same data."""
    if data in _STAND_INS:
        return _STAND_INS[data], False
    return _SAME.get(data, data), True


def heading(data: str) -> str:
    """Of the paper's numbers beside a run's: which data, where the run's stand in."""
    name, same = column(data)
    return "paper" if same else f"paper,\n{name}"
