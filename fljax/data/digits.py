"""Digits: 1797 handwritten digits of 8 x 8 pixels, as a table of 64 columns.

Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI, 1998. Ships
with scikit-learn. Pixels are divided by 16, their largest value.
"""

from typing import Any

from fljax.data.bundled import bundled_record
from fljax.data.options import Preprocessing
from fljax.data.sources import DIGITS
from fljax.data.table import Kind, Table

PRESETS = {"neural": Preprocessing(numeric="raw"), "linear": Preprocessing()}


def load(*, data_dir: str | None = None) -> Table:
    """Reads the copy inside scikit-learn.

    Args:
      data_dir: unused, no file is needed.
    """
    del data_dir
    from sklearn.datasets import load_digits  # slow import

    bunch: Any = load_digits(as_frame=True)
    frame = bunch.frame.rename(columns={"target": "digit"})
    frame[bunch.feature_names] /= 16.0
    kinds: dict[str, Kind] = dict.fromkeys(bunch.feature_names, "numeric")
    return Table(
        name="digits",
        frame=frame,
        target="digit",
        kinds=kinds,
        sensitive=None,
        task="multiclass",
        files=(bundled_record(DIGITS),),
    )
