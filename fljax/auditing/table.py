"""From a CSV file to a checked table whose columns are in the order of the file.

The loader of `--data_name=csv` infers kinds and leaves out constant columns. A model
has an input for those too, so that they are put back here, as numbers.
"""

import dataclasses
import pathlib
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fljax import data
from fljax.auditing.settings import FilesConfig, RowsConfig
from fljax.data.csv_format import CsvFormat
from fljax.data.csv_reader import read_csv
from fljax.data.fetch import read_local
from fljax.data.missing import handle_missing, kept_rows
from fljax.data.table import get_column
from fljax.data.vocabulary import label, vocabulary
from fljax.driver.config import ConfigError
from fljax.driver.naming import named_as_flags
from fljax.transcript import told

_NAMES = "client_names"


class Owned(NamedTuple):
    """Rows and, for each, whose it is.

    Attributes:
      table: with constant columns; that of the client is no input.
      client: `[N]` int64 ids, or texts until `identified`; None where no column says.
      labels: different values of the target, as the file writes them.
      row: `[N]` where each row stands in the file, from 0.
      names: of clients by their ids, `hospital: Nord`, if the file has texts for them.
    """

    table: data.Table
    client: np.ndarray | None
    labels: pd.Index
    row: np.ndarray
    names: Mapping[int, str] = {}

    def members(self, clients: np.ndarray, column: str | None) -> tuple[str, ...]:
        """What the column calls those of the clients that it has; empty if it has no others."""
        if self.client is None or np.isin(self.client, clients).all():
            return ()
        there = np.intersect1d(clients, self.client).tolist()
        named = (self.names.get(each, str(each)) for each in there)
        return tuple(each.removeprefix(f"{column}: ") for each in named)


def read(path: str, files: FilesConfig, config: RowsConfig) -> Owned:
    """Reads the audited clients' rows.

    Args:
      path: CSV file; errors call it as `files` does.
      files: names of columns.
      config: how columns are read.

    Raises:
      ConfigError: a flag names no column, or one that cannot be what it says.
      DataError: the file makes no table.
    """
    raw = frame_of(path, config)
    _check_named(files, raw)
    _check_pairs(files, config, raw)
    ids = files.client_column
    aside = list(dict.fromkeys([*config.drop, *([ids] if ids else ())]))
    with warnings.catch_warnings(), named_as_flags("csv"):
        # They are put back below.
        warnings.filterwarnings("ignore", ".*constant columns left out")
        table = data.load(
            "csv",
            path=path,
            target=files.target,
            sensitive=files.sensitive,
            numeric=config.numeric,
            categorical=config.categorical,
            drop=aside,
            missing=config.missing,
            **written(config),
            **({} if config.task is None else {"task": config.task}),
        )
    used = raw.drop(columns=aside)
    kept = kept_rows(used, config.missing, (files.target, files.sensitive))
    left = raw.iloc[kept]
    if table.task == "multiclass":
        _check_classes(files, left)
    table = _with_constants(table, left, files, config)
    client = None if ids is None else _ids(get_column(table.frame, ids))
    labels = vocabulary(get_column(left, files.target).dropna())
    return Owned(table, client, labels, kept)


def identified(owned: Owned, about: Mapping[str, Any], files: FilesConfig) -> Owned:
    """The same with ids in place of names, by the recording's `client_names`.

    Whole numbers are names, too, where all of them are there; else they are ids, unless
    one reads as a name does. Rows of texts that it does not name are those of clients who
    are not audited.

    Args:
      owned: from `read`.
      about: description of the recording.
      files: names of columns.

    Raises:
      ConfigError: the column has texts, and the recording does not say whose; or numbers
        that may be either.
      TranscriptError: `client_names` is not what it should be.
    """
    if owned.client is None:
        return owned
    where = f"about of {files.transcript}"
    ids, labels = told.client_names(about, where), owned.client.astype(str)
    where = f"in column {files.client_column!r} of {files.known}"
    if owned.client.dtype != object and not set(labels) <= set(ids):
        # A stranger's name may be longer than any number.
        numbers = {int(n) for n in ids if n.isdecimal() and len(n) < 20}
        either = numbers & set(owned.client.tolist())
        if either:
            raise ConfigError(
                f"--client_column: {min(either)} {where} may be an id of the transcript or "
                f"a name of the recording's {_NAMES}; expected every value among the "
                f"names, written as they are ({', '.join(map(str, list(ids)[:5]))}), or "
                "none"
            )
        return owned
    if not ids:
        raise ConfigError(
            "--client_column: expected whole numbers, the client ids of the transcript, "
            f"{where}, or a recording whose about has {_NAMES}={{text: id}}"
        )
    found = {text: id_ for text, id_ in ids.items() if text in set(labels)}
    if not found:
        raise ConfigError(
            f"--client_column: expected some of {', '.join(map(str, ids))}, the "
            f"{_NAMES} of the recording, {where}"
        )
    return owned._replace(
        client=np.array([found.get(text, -1) for text in labels.tolist()]),
        names={id_: f"{files.client_column}: {text}" for text, id_ in found.items()},
    )


def written(config: RowsConfig) -> dict[str, Any]:
    """How the CSV files are written, as options of `CsvFormat`."""
    names = (field.name for field in dataclasses.fields(CsvFormat))
    return {name: getattr(config, name) for name in names}


def frame_of(path: str, config: RowsConfig, flag: str = "") -> pd.DataFrame:
    """The rows of a CSV file as they stand there.

    Raises:
      ConfigError: with a `flag`, naming it, where a DataError would be raised.
    """
    try:
        with named_as_flags("csv"):
            file = read_local(path)
            form = CsvFormat(**written(config))
            return read_csv(file.content, file.record.name, form=form)
    except data.DataError as error:
        if not flag:
            raise
        raise ConfigError(f"{flag}: {error}") from error


def proxy_rows(path: str, files: FilesConfig, config: RowsConfig) -> pd.DataFrame:
    """The adversary's own rows; missing values are dealt with as those of the others.

    Raises:
      ConfigError: there is no such file, or it makes no table.
    """
    frame = frame_of(path, config, "--proxy")
    if config.missing == "error":
        return frame
    kept = [name for name in (files.target, files.sensitive) if name in frame.columns]
    aside = [*config.drop, files.client_column]
    used = frame.drop(columns=[name for name in aside if name in frame.columns])
    how = {"never_imputed": kept, "categorical": config.categorical}
    try:
        with named_as_flags("csv"):
            name = pathlib.PurePath(path).name
            return handle_missing(used, name, config.missing, **how)
    except data.DataError as error:
        raise ConfigError(f"--proxy: {error}") from error


def _check_named(files: FilesConfig, raw: pd.DataFrame) -> None:
    flags = ("target", "sensitive", "client_column")
    names = {flag: getattr(files, flag) for flag in flags}
    for flag, name in names.items():
        if name is not None and name not in raw.columns:
            raise ConfigError(
                f"--{flag}: {files.known} has no column {name!r}, columns are "
                f"{', '.join(map(str, raw.columns))}"
            )
    if len(set(names.values())) < len(names):
        raise ConfigError(
            "--target, --sensitive, --client_column: expected different columns"
        )
    ids = files.client_column
    nobody = np.zeros(0) if ids is None else get_column(raw, ids).isna().to_numpy()
    if nobody.any():
        raise ConfigError(
            f"--client_column: {files.known} has no client in {nobody.sum()} rows of {ids!r}, "
            f"the first in row {nobody.argmax() + 1} below the header; expected one in each"
        )


def _check_pairs(files: FilesConfig, config: RowsConfig, raw: pd.DataFrame) -> None:
    """Two numbers are one input as they stand, whatever they are called, but for 0 and 1."""
    inputs = {*config.categorical} - {files.target, files.sensitive, *config.drop}
    for name in sorted(inputs & {*raw.columns}):
        series = get_column(raw, name).dropna()
        found = np.unique(series) if pd.api.types.is_numeric_dtype(series) else []
        if len(found) == 2 and not {*found} <= {0, 1} and not config.standardise:
            raise ConfigError(
                f"--categorical: column {name!r} has two numbers, {found[0]:g} and "
                f"{found[1]:g}, which are one input as they stand; write them as texts, or "
                "leave the column out of the list"
            )


def _check_classes(files: FilesConfig, raw: pd.DataFrame) -> None:
    """Numbers of classes must be what the model takes them for."""
    series = raw[files.target].dropna()
    if not pd.api.types.is_numeric_dtype(series):
        return
    found = np.unique(series.to_numpy(np.float64))
    if not np.array_equal(found, np.arange(len(found))):
        raise ConfigError(
            f"--target: expected classes 0 to K - 1, each in some row, found "
            f"{', '.join(f'{each:g}' for each in found[:10])}; rows of clients who are "
            "not audited may fill the gaps"
        )


def _with_constants(
    table: data.Table, raw: pd.DataFrame, files: FilesConfig, config: RowsConfig
) -> data.Table:
    kinds: dict[str, data.Kind] = {}
    frame = table.frame
    for name in raw.columns:
        if name in (*config.drop, files.target, files.client_column):
            continue
        if name not in frame.columns:
            frame = frame.assign(**{name: _constant(get_column(raw, name))})
        kinds[name] = table.kinds.get(name, "numeric")
    return dataclasses.replace(table, frame=frame, kinds=kinds)


def _constant(series: pd.Series) -> float:
    if series.isna().all() or not pd.api.types.is_numeric_dtype(series):
        raise ConfigError(
            f"--known: column {series.name!r} has one text or nothing in every row, so "
            "its other categories are unknown; list it in --drop, or add rows of other "
            "clients"
        )
    return float(series.dropna().iloc[0])


def _ids(series: pd.Series) -> np.ndarray:
    """Whole numbers, or else texts.

    Raises:
      ConfigError: one is infinite, or so large that it may have been another one.
    """
    exact = pd.api.types.is_integer_dtype(series)
    if exact or pd.api.types.is_float_dtype(series):
        fits = series.abs() < 2 ** (63 if exact else 53)  # decimals are rounded beyond
        if not fits.all():
            raise ConfigError(
                f"--client_column: expected ids below 2^63, without a decimal point, in "
                f"{series.name!r}, got {series.loc[~fits].iloc[0]}"
            )
        if exact or (series % 1 == 0).all():
            return series.to_numpy(np.int64)
    return np.array([label(value) for value in series], object)
