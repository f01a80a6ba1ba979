"""Table VII of Wei et al. (2021), which a run stands beside; needs no JAX.

Its types 0 and 1 are one column. The distance is called a root mean square deviation
and given the formula of a mean squared error; ours is the RMSE.
"""

import re
from collections.abc import Mapping
from typing import Any

from experiments.fed_cdp.published import column
from experiments.report import published
from experiments.report.cards import Number, Reference

TABLE = "table7"
_PAPER = "wei2021"
_LIMIT = 300  # iterations, after which the paper's attack gives up
_APART = ("0", "1")  # types that the paper does not keep apart
_TOGETHER = "0_1"
_NUMBERS = {  # of the paper's defenses
    "fed_sdp": {"clip": 4, "sigma": 6},
    "fed_cdp": {"clip": 4, "sigma": 6},
    "fed_cdp_decay": {"clip": 6, "decay_to": 2, "sigma": 6},
}


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
    values = {}
    for (setting, method, metric), value in found.items():
        ended = other if _gave_up(metric, value) else ""
        differs = "; ".join(filter(None, [_other_numbers(flags, method), ended]))
        for ours in _settings(flags, setting, method):
            values[ours, method, metric] = Number(value, differs=differs)
    name, same = column(data)
    return Reference("Table VII", name, same, "lenet", None, values)


def _gave_up(metric: str, value: float) -> bool:
    """Whether it only says when the paper's attack ends."""
    return (metric, value) == ("attack_iterations", _LIMIT)


def _settings(flags: Mapping[str, Any], setting: str, method: str) -> list[str]:
    """Ours that a printed one stands beside."""
    name, _, types = setting.partition("=")
    seen = [one for one in _APART if int(one) in flags.get("types", (0, 1))]
    server = any("where=server" in text for text in _run(flags, method))
    if types != _TOGETHER or (len(seen) == len(_APART) and not server):
        return [setting]
    return [f"{name}={one}" for one in seen]


def _other_numbers(flags: Mapping[str, Any], method: str) -> str:
    """What the paper's defense has where one of this method was run otherwise."""
    theirs = _NUMBERS.get(method, {})
    for text in _run(flags, method):
        ours = dict(re.findall(r"(\w+)=([\d.e|+-]+)", text))
        numbers = {k: {*map(float, v.split("|"))} for k, v in ours.items()}
        if any(numbers.get(key) != {value} for key, value in theirs.items()):
            said = ", ".join(f"{key}={value}" for key, value in theirs.items())
            return f"theirs has {said}"
    return ""


def _run(flags: Mapping[str, Any], method: str) -> list[str]:
    """Texts of the defenses of this name that were run."""
    texts = [text.strip() for text in str(flags.get("defense")).split(";")]
    decays = method.endswith("_decay")
    return [
        text
        for text in texts
        if text.split("(")[0] == method.removesuffix("_decay")
        and ("decay_to" in text) == decays
    ]


def printed(data: str, setting: str, method: str, metric: str) -> float | None:
    """What the paper prints in a cell, None where it prints nothing.

    Args:
      data: name in our rows.
      setting: ours, of types that the paper has together.
      method: as the paper calls the defense.
      metric: of our rows.
    """
    name, _, types = setting.partition("=")
    there = f"{name}={_TOGETHER if types in _APART else types}"
    return numbers(data).get((there, method, metric))


def numbers(data: str) -> dict[tuple[str, str, str], float]:
    """`(setting, method, metric) -> number`; empty for data that the paper lacks."""
    named, _ = column(data)
    return {
        (line["setting"], line["method"], line["metric"]): float(line["value"])
        for line in published.stored(_PAPER)
        if (line["table"], line["dataset"]) == (TABLE, named)
    }
