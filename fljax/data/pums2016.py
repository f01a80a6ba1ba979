"""Full-time workers of the American Community Survey 2016, income in dollars.

22,241 persons of the whole United States, from Zumel and Mount, "Practical Data
Science with R", 2nd edition, 2019, with the ten features of ACSIncome. It stands in
for Income-L where the census files cannot be had, and is reported as what it is.

Categories are text. Schooling is ordered and becomes the rank 1 (no diploma) to 9
(doctorate), because the protocol treats SCHL as a number; men come before women, as
in the official codes.
"""

import pandas as pd

from fljax.data import income
from fljax.data.csv_reader import read_csv
from fljax.data.fetch import fetch
from fljax.data.sources import PUMS2016
from fljax.data.table import Table, get_column
from fljax.data.vocabulary import positions

PRESETS = income.PRESETS

SCHOOLING = (
    "no high school diploma",
    "Regular high school diploma",
    "GED or alternative credential",
    "some college credit, no degree",
    "Associate's degree",
    "Bachelor's degree",
    "Master's degree",
    "Professional degree",
    "Doctorate degree",
)
_CODING = income.Coding(
    married="Married",
    white="White alone",
    private=("Employee of a private for profit", "Private not-for-profit employee"),
    government=(
        "Local government employee",
        "State government employee",
        "Federal government employee",
    ),
)


def load(
    *, data_dir: str | None = None, features: str = "all", task: str = "regression"
) -> Table:
    """Reads the file, repeated rows dropped.

    Args:
      data_dir: folder of local copies.
      features: `all`, or `reduced` for least squares.
      task: `regression`, or `binary` for incomes above the median.
    """
    income.check_options("pums2016", features, task)
    file = fetch(PUMS2016, data_dir)
    frame = read_csv(file.content, PUMS2016.filename)
    return parse(frame, features, task, (file.record,))


def parse(
    frame: pd.DataFrame, features: str, task: str = "regression", files: tuple = ()
) -> Table:
    """Table of rows in this file's format; takes the arguments of `load`."""
    frame = frame.assign(
        SCHL=positions(get_column(frame, "SCHL"), pd.Index(SCHOOLING)) + 1,
        SEX=pd.Categorical(frame["SEX"], categories=["Male", "Female"], ordered=True),
    )
    return income.income_table(
        frame,
        name="pums2016",
        features=features,
        task=task,
        coding=_CODING,
        files=files,
    )
