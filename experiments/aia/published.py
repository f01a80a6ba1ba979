"""Numbers of Diana et al. (2025) and what they were measured on.

Methods have the names of our attacks. "Ours" in the passive setting of Table 2 is
Algorithm 2 as the authors run it, on the messages of a square system, so it is
`reconstruct_subset` here; in the active settings it is `model`.
"""

from collections.abc import Mapping
from typing import Any

from experiments.report.cards import Number, Reference
from experiments.report.published import stored
from fljax.driver.config import ConfigError

_PAPER = "diana2025"
TITLES = {
    "figure2": "Figure 2",
    "table1": "Table 1",
    "table2": "Table 2",
    "table3": "Table 3",
}
_LINEAR = ("figure2", "table2")
_DRAWS = {"figure2": 5}  # trainings that means without a deviation are of
_DEFENDED = ("table3",)
NAMES = {
    "income_l": "Income-L",
    "income_a": "Income-A",
    "medical": "Medical",
    "toy": "toy data",
}
# Name of our data and rows kept of the largest state -> the paper's name.
_SAME = {
    ("acs_income_LA_2018", None): "income_l",
    ("acs_income_51_states_2018", 39133): "income_a",
    ("medical", None): "medical",
    ("toy", None): "toy",
}
# What attacks infer there; of other columns nothing is published.
_INFERRED = {"income_l": "SEX", "income_a": "SEX", "medical": "smoker"}
# Ours, up to a first difference in year or survey -> the paper's data that it is like.
_STAND_INS = {
    "pums2016": "income_l",
    "acs_income_LA_": "income_l",
    "acs_income_51_states_": "income_a",
    "acs_shaped": "income_a",
}


def check_table(table: str | None) -> None:
    """Refuses a table of Diana et al. of which no number is stored; None is no table.

    Raises:
      ConfigError: naming the tables that there are.
    """
    tables = sorted({line["table"] for line in stored(_PAPER)})
    if table is not None and table not in tables:
        expected = f"--paper_table: expected one of {', '.join(tables)}"
        raise ConfigError(f"{expected}, got {table!r}")


def reference(
    table: str | None, data: str, flags: Mapping[str, Any]
) -> Reference | None:
    """The numbers that a run on `data` stands beside, None if there are none.

    Args:
      table: value of `--paper_table`.
      data: name in the run's rows.
      flags: what the run was told. Rows of one's own file, whatever its name, stand
        beside nothing, and so do other columns than the papers'.

    Raises:
      ConfigError: as `check_table`.
    """
    check_table(table)
    if table is None or flags.get("data_name") == "csv":
        return None
    run = data, flags.get("data_largest_state")
    same = next((name for ours, name in _SAME.items() if ours == run), None)
    column = same or next(
        (name for ours, name in _STAND_INS.items() if data.startswith(ours)), None
    )
    asked = flags.get("data_sensitive") or _INFERRED.get(str(column))
    if asked != _INFERRED.get(str(column)) or flags.get("data_also_sensitive"):
        return None
    numbers = {
        (line["setting"], line["method"], line["metric"]): _number(line)
        for line in stored(_PAPER)
        if line["table"] == table and line["dataset"] == column
    }
    if column is None or not numbers:
        return None
    return Reference(
        table=TITLES.get(table, table),
        data=NAMES[column],
        same_data=same is not None,
        model="linear" if table in _LINEAR else "mlp",
        defended=table in _DEFENDED,
        numbers=numbers,
    )


def _number(line: Mapping[str, str]) -> Number:
    std = float(line["std"]) if line["std"] else None
    return Number(float(line["value"]), std, draws=_DRAWS.get(line["table"]))


def of_run(flags: Mapping[str, Any], data: str) -> Reference | None:
    """As `reference`, of the table that the flags name."""
    return reference(flags.get("paper_table"), data, flags)
