"""ACSIncome: income in dollars of one or more states, sex inferred.

Ding et al., "Retiring Adult: New Datasets for Fair Machine Learning", 2021, whose
package folktables defines the features and the filter; the target stays in dollars, as
Diana et al., "Attribute Inference Attacks for Federated Regression Tasks", 2025, use
it. Income-L is `states="LA"`; Income-A is `states="all", largest_state=39133` with a
preset that ends in `by_state`.

folktables downloads without time-outs or checks, so files are fetched here. Surveys
from 2019 on call RELP RELSHIPP, with other codes, and from 2023 on ST STATE.
"""

import dataclasses
from collections.abc import Sequence

import pandas as pd
from folktables import ACSIncome
from folktables.acs import adult_filter
from folktables.load_acs import _STATE_CODES as STATE_CODES

from fljax.data import income
from fljax.data.csv_reader import read_csv
from fljax.data.fetch import fetch
from fljax.data.source import Source
from fljax.data.sources import ACS_INCOME
from fljax.data.table import DataError, FileRecord, Table, get_column

PRESETS = income.PRESETS

_RENAMED = {"RELSHIPP": "RELP", "STATE": "ST"}
_COLUMNS = {*ACSIncome.features, *income.COLUMNS, *_RENAMED, "PWGTP", "SERIALNO"}


def load(
    *,
    data_dir: str | None = None,
    states: str | Sequence[str] = "LA",
    year: int = 2018,
    horizon: str = "1-Year",
    features: str = "all",
    task: str = "regression",
    largest_state: int | None = None,
    sample_seed: int = 0,
) -> Table:
    """Reads the person files of the census, one per state.

    Args:
      data_dir: folder of local copies, flat or in folktables' layout.
      states: two-letter codes, as a list or separated by commas, or `all` for the 50
        states and Puerto Rico.
      year: last year of the survey, 2014 or later.
      horizon: `1-Year` or `5-Year`.
      features: `all`, or `reduced` for least squares.
      task: `regression`, or `binary` for incomes above the median.
      largest_state: rows to keep of the largest state, every state keeping the same
        proportion; None keeps all.
      sample_seed: seed of that sampling.

    Raises:
      DataError: an option is unknown or a file is not as expected.
    """
    codes = _state_list(states)
    income.check_options("acs_income", features, task)
    if horizon not in ("1-Year", "5-Year") or year < 2014:
        raise DataError(
            f"acs_income: expected year >= 2014 and horizon 1-Year or 5-Year, "
            f"got {year=}, {horizon=}"
        )
    frames, records = [], []
    for state in codes:
        frame, record = _read_state(state, year, horizon, data_dir)
        frames.append(frame)
        records.append(record)
    return income.income_table(
        pd.concat(frames, ignore_index=True),
        name=_name(codes, year, horizon),
        features=features,
        task=task,
        coding=income.CENSUS,
        files=tuple(records),
        largest_state=largest_state,
        sample_seed=sample_seed,
    )


def person_file(*, state: str, year: int, horizon: str) -> Source:
    """Source of one state's person file, for example `csv_pla.zip` of 2018."""
    st, place = state.lower(), f"{year}/{horizon}"
    member = f"psam_p{STATE_CODES[state]}.csv"
    if year < 2017:
        member = f"ss{year % 100:02d}p{st}.csv"
    return dataclasses.replace(
        ACS_INCOME,
        filename=ACS_INCOME.filename.format(st=st),
        url=ACS_INCOME.url.format(year=year, horizon=horizon, st=st),
        folders=(place, f"acs/{place}", f"acs_income/{place}", "acs", "acs_income"),
        member=member,
    )


def _state_list(states: str | Sequence[str]) -> tuple[str, ...]:
    if states == "all":
        return tuple(STATE_CODES)
    words = states.split(",") if isinstance(states, str) else states
    codes = tuple(word.strip().upper() for word in words)
    for code in codes:
        if code not in STATE_CODES:
            raise DataError(
                f"acs_income: unknown state {code!r}, expected all or some of "
                f"{','.join(STATE_CODES)}"
            )
    if not codes or len(set(codes)) < len(codes):
        raise DataError(f"acs_income: {states=} is empty or names a state twice")
    return codes


def _read_state(
    state: str, year: int, horizon: str, data_dir: str | None
) -> tuple[pd.DataFrame, FileRecord]:
    source = person_file(state=state, year=year, horizon=horizon)
    file = fetch(source, data_dir)
    frame = read_csv(
        file.content,
        file.record.name,
        columns=tuple(_COLUMNS),
        dtype={"SERIALNO": str},
    )
    if "RELP" not in frame.columns or "ST" not in frame.columns:
        frame = frame.rename(columns=_RENAMED)
    for name in (*income.COLUMNS, "PWGTP"):
        if name not in frame.columns:
            raise DataError(f"{file.record.name}: no column {name!r}")
    _check_year(frame, file.record.name, year)
    return adult_filter(frame), file.record


def _check_year(frame: pd.DataFrame, name: str, year: int) -> None:
    """Every year's file has the same name, but serial numbers begin with the year."""
    if "SERIALNO" not in frame.columns:
        return
    newest = get_column(frame, "SERIALNO").max()
    # Before 2017 serial numbers are shorter and do not hold a year.
    if len(newest) == 13 and newest[:4] != str(year):
        raise DataError(f"{name}: holds the survey of {newest[:4]}, expected {year}")


def _name(codes: tuple[str, ...], year: int, horizon: str) -> str:
    where = "_".join(codes) if len(codes) <= 3 else f"{len(codes)}_states"
    name = f"acs_income_{where}_{year}"
    return name if horizon == "1-Year" else f"{name}_{horizon}"
