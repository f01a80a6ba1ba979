"""Digits: 1797 handwritten digits of 8 x 8 pixels, as a table of 64 columns or images.

Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI, 1998. Ships
with scikit-learn. Pixels go up to 16, by which the columns of the table are divided.
"""

from typing import Any

import numpy as np

from fljax.data.bundled import bundled_record
from fljax.data.images import Images, hold_out
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


def load_images(*, data_dir: str | None = None) -> Images:
    """Reads the copy inside scikit-learn; the last fifth is kept for validation.

    Args:
      data_dir: unused, no file is needed.
    """
    del data_dir
    from sklearn.datasets import load_digits  # slow import

    bunch: Any = load_digits()
    x = bunch.images.astype(np.uint8)[..., None]
    train, validation = hold_out(x, bunch.target, len(x) // 5)
    return Images(
        name="digits",
        classes=tuple("0123456789"),
        train=train,
        validation=validation,
        white=16,
        files=(bundled_record(DIGITS),),
    )
