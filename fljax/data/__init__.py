"""Data sets by name, their preprocessing presets, and encoding to arrays.

    table = data.load("diabetes")
    dataset = data.prepare(table, data.preset("diabetes", "linear"), seed=42)
    images = data.load_images("digits")

Runs on the host with NumPy and pandas. Importing this package reads no file and
opens no connection; a data set's module is imported when it is asked for.

* tables, one module each: `acs_income`, `acs_shaped`, `adult`, `breast_cancer`,
  `california`, `diabetes`, `leaf_synthetic`, `medical`, `pums2016`, `toy`; `income` is
  what those of the census share, `bundled` what those of scikit-learn do;
* images: `cifar10`, `digits`, `lfw`, `mnist`, all of which return `images`;
* any CSV file: `csv_table`, of `csv_reader`, `csv_format`, `csv_kinds`, `csv_spellings`
  and `missing`;
* from a `table` to arrays: `options`, `split`, `vocabulary`, `encoder`, `preprocess`;
  `listing` says what becomes of each column;
* files: `sources` and `source` say where they are, `fetch` finds them, `download`,
  `archive` and `idx` read them without trusting them.
"""

import importlib
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from fljax.data.images import Images, Labelled
from fljax.data.listing import Listed, columns
from fljax.data.options import Preprocessing
from fljax.data.preprocess import Dataset, Split, prepare
from fljax.data.table import Attribute, DataError, FileRecord, Kind, Table

__all__ = [
    "Attribute",
    "DataError",
    "Dataset",
    "FileRecord",
    "Images",
    "Kind",
    "Labelled",
    "Listed",
    "Preprocessing",
    "Split",
    "Table",
    "columns",
    "image_names",
    "image_options",
    "load",
    "load_images",
    "names",
    "options",
    "prepare",
    "preset",
    "presets",
]

_MODULES = {
    "acs_income": "acs_income",
    "acs_shaped": "acs_shaped",
    "adult": "adult",
    "breast_cancer": "breast_cancer",
    "california": "california",
    "csv": "csv_table",
    "diabetes": "diabetes",
    "digits": "digits",
    "leaf_synthetic": "leaf_synthetic",
    "medical": "medical",
    "pums2016": "pums2016",
    "toy": "toy",
}
_IMAGES = ("cifar10", "digits", "lfw", "mnist")


def names() -> tuple[str, ...]:
    """Names that `load` knows, sorted."""
    return tuple(sorted(_MODULES))


def image_names() -> tuple[str, ...]:
    """Names that `load_images` knows, sorted."""
    return _IMAGES


def load(name: str, *, data_dir: str | None = None, **chosen: Any) -> Table:
    """Loads a data set by name.

    Args:
      name: one of `names()`.
      data_dir: folder that holds local copies of files.
      **chosen: options of that data set, see `options`.

    Raises:
      DataError: the name or an option is unknown, or the data are not as expected.
    """
    _check_options(name, options(name), chosen)
    return _module(name).load(data_dir=data_dir, **chosen)


def load_images(name: str, *, data_dir: str | None = None, **chosen: Any) -> Images:
    """Loads an image data set by name.

    Args:
      name: one of `image_names()`.
      data_dir: folder that holds local copies of files.
      **chosen: options of that data set, see `image_options`.

    Raises:
      DataError: the name or an option is unknown, or the data are not as expected.
    """
    _check_options(name, image_options(name), chosen)
    return _image_module(name).load_images(data_dir=data_dir, **chosen)


def options(name: str) -> Mapping[str, Any]:
    """Options of a data set and their defaults (`Parameter.empty`: required)."""
    return _options(_module(name).load)


def image_options(name: str) -> Mapping[str, Any]:
    """Options of an image data set and their defaults."""
    return _options(_image_module(name).load_images)


def preset(name: str, which: str) -> Preprocessing:
    """A data set's preprocessing by name, for example `neural` or `linear`.

    Raises:
      DataError: the data set has no such preset.
    """
    if which not in presets(name):
        known = ", ".join(presets(name))
        raise DataError(f"{name}: unknown preset {which!r}, presets: {known}")
    return _module(name).PRESETS[which]


def presets(name: str) -> tuple[str, ...]:
    """Names of a data set's presets; every data set has `neural` and `linear`."""
    return tuple(_module(name).PRESETS)


def _module(name: str) -> types.ModuleType:
    if name not in _MODULES:
        raise DataError(f"unknown data set {name!r}, known are {', '.join(names())}")
    return _import(name, _MODULES[name])


def _image_module(name: str) -> types.ModuleType:
    if name not in _IMAGES:
        known = ", ".join(_IMAGES)
        raise DataError(f"unknown image data set {name!r}, known are {known}")
    return _import(name, name)


def _import(name: str, module: str) -> types.ModuleType:
    try:
        return importlib.import_module(f"fljax.data.{module}")
    except ModuleNotFoundError as error:
        raise DataError(
            f"{name} needs {error.name}: pip install -e '.[data]'"
        ) from error


def _options(function: Callable) -> Mapping[str, Any]:
    parameters = inspect.signature(function).parameters
    return {key: p.default for key, p in parameters.items() if key != "data_dir"}


def _check_options(
    name: str, known: Mapping[str, Any], chosen: Mapping[str, Any]
) -> None:
    for option in chosen:
        if option not in known:
            choices = ", ".join(known) or "none"
            raise DataError(f"{name}: unknown option {option!r}, options: {choices}")
    for option, default in known.items():
        if default is inspect.Parameter.empty and option not in chosen:
            raise DataError(f"{name}: the option {option}= is required")
