"""Adult: 48,842 persons of the 1994 census, income above 50,000 dollars or not.

Becker and Kohavi, "Adult", UCI, 1996. Both official files together. With
`features="reduced"` the weight of the survey (fnlwgt) and the native country are left
out; `education` is kept for partitions and stands among the features as its rank,
`education_num`.

`features="all"` with the preset `fed_cdp` and no sensitive column gives the 105 inputs
and the 36,631 and 12,211 rows of Wei et al., "Gradient-Leakage Resilient Federated
Learning", 2021: 6 numbers and 99 categories, sex being two of them and unknown values
none. The paper does not say how it arrives at 105, and neither how it scales.

With `missing="drop"` and `features="all"` the preset `tableak` standardises all inputs,
the written out categories too, as Vero et al., "TabLeak", 2023: 45,222 rows, and 104
inputs, one less than theirs, whose category `Never-worked` has no row.

`degree="bachelors"` keeps persons with at least a Bachelor's degree, as Xu and Neglia,
"What else is leaked when eavesdropping Federated Learning?", 2021. The official files
hold 12,110 of them, not the 12,300 that the paper states.
"""

import numpy as np
import pandas as pd

from fljax.data.csv_reader import read_csv
from fljax.data.fetch import File, fetch
from fljax.data.options import Preprocessing
from fljax.data.sources import ADULT_TEST, ADULT_TRAIN
from fljax.data.table import DataError, Kind, Table, get_column

PRESETS = {
    "neural": Preprocessing(),
    "linear": Preprocessing(categorical="dummies"),
    "fed_cdp": Preprocessing(test_fraction=0.25, drop_first=False, unknown="?"),
    "fed_cdp_dummies": Preprocessing(
        test_fraction=0.25, drop_first=False, unknown="?", categorical="dummies"
    ),
    "tableak": Preprocessing(
        test_fraction=0.25, drop_first=False, categorical="standardised_dummies"
    ),
}

_COLUMNS = (
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,"
    "relationship,race,sex,capital_gain,capital_loss,hours_per_week,native_country,"
    "income"
)
_KINDS: dict[str, Kind] = {
    "age": "numeric",
    "education_num": "numeric",
    "capital_gain": "numeric",
    "capital_loss": "numeric",
    "hours_per_week": "numeric",
    "sex": "binary",
    "workclass": "categorical",
    "marital_status": "categorical",
    "occupation": "categorical",
    "relationship": "categorical",
    "race": "categorical",
}
_ALL_KINDS: dict[str, Kind] = {
    "age": "numeric",
    "fnlwgt": "numeric",
    **_KINDS,
    "sex": "categorical",
    "education": "categorical",
    "native_country": "categorical",
}
_BACHELORS = 13  # education_num of a Bachelor's degree; higher degrees follow


def load(
    *,
    data_dir: str | None = None,
    degree: str = "all",
    missing: str = "category",
    features: str = "reduced",
    sensitive: str | None = "sex",
) -> Table:
    """Reads `adult.data` and `adult.test`, the target is 1 above 50,000 dollars.

    Args:
      data_dir: folder of local copies, plain or `.gz`.
      degree: `all`, or `bachelors` for at least a Bachelor's degree.
      missing: `category` keeps an unknown value as the category `?`, `drop` leaves
        out persons with one among the features.
      features: `reduced`, or `all` 14 columns with sex as two categories.
      sensitive: the attribute that attacks infer.

    Raises:
      DataError: an option is unknown or a file is not as expected.
    """
    if degree not in ("all", "bachelors"):
        raise DataError(f"adult: {degree=} is not one of all, bachelors")
    if missing not in ("category", "drop"):
        raise DataError(f"adult: {missing=} is not one of category, drop")
    if features not in ("all", "reduced"):
        raise DataError(f"adult: {features=} is not one of all, reduced")
    kinds = _ALL_KINDS if features == "all" else _KINDS
    files = [fetch(source, data_dir) for source in (ADULT_TRAIN, ADULT_TEST)]
    frame = pd.concat([parse(file) for file in files])
    if degree == "bachelors":
        frame = frame.loc[frame["education_num"] >= _BACHELORS]
    if missing == "drop":
        unknown = (frame.loc[:, list(kinds)] == "?").to_numpy().any(axis=1)
        frame = frame.loc[~unknown]
    return Table(
        name="adult" if degree == "all" else f"adult_{degree}",
        frame=frame.reset_index(drop=True),
        target="income",
        kinds=kinds,
        sensitive=sensitive,
        task="binary",
        files=tuple(file.record for file in files),
    )


def parse(file: File) -> pd.DataFrame:
    """Rows of one official file: no header, and the test file opens with a note."""
    lines = file.content.split(b"\n")
    rows = [line for line in lines if not line.startswith(b"|")]
    frame = read_csv(b"\n".join([_COLUMNS.encode(), *rows]), file.record.name)
    # Labels of the test file end in a dot.
    label = get_column(frame, "income").astype(str).str.rstrip(".")
    if unknown := set(label) - {"<=50K", ">50K"}:
        raise DataError(f"{file.record.name}: unknown income {min(unknown)!r}")
    return frame.assign(income=np.where(label == ">50K", 1, 0))
