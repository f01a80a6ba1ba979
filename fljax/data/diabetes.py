"""Diabetes: 442 patients, disease progression after one year, sex inferred.

Efron et al., "Least Angle Regression", Annals of Statistics 32, 2004. Ships with
scikit-learn, so that it is the data set to start with; raw units, not its scaled copy.
"""

from typing import Any

from fljax.data.bundled import bundled_record
from fljax.data.options import Preprocessing
from fljax.data.sources import DIABETES
from fljax.data.table import Kind, Table

PRESETS = {
    "neural": Preprocessing(target="standardise"),
    "linear": Preprocessing(target="standardise"),
}


def load(*, data_dir: str | None = None, sensitive: str | None = "sex") -> Table:
    """Reads the copy inside scikit-learn.

    Args:
      data_dir: unused, no file is needed.
      sensitive: the attribute that attacks infer.
    """
    del data_dir
    from sklearn.datasets import load_diabetes  # slow import

    bunch: Any = load_diabetes(scaled=False, as_frame=True)
    frame = bunch.frame.rename(columns={"target": "progression"})
    kinds: dict[str, Kind] = {
        name: "binary" if name == "sex" else "numeric" for name in bunch.feature_names
    }
    return Table(
        name="diabetes",
        frame=frame,
        target="progression",
        kinds=kinds,
        sensitive=sensitive,
        task="regression",
        files=(bundled_record(DIABETES),),
    )
