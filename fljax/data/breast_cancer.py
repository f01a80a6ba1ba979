"""Breast cancer: 569 tumours, 30 measurements, malignant (0) or benign (1).

Wolberg et al., "Breast Cancer Wisconsin (Diagnostic)", UCI, 1993. Ships with
scikit-learn.
"""

from typing import Any

from fljax.data.bundled import bundled_record
from fljax.data.options import Preprocessing
from fljax.data.sources import BREAST_CANCER
from fljax.data.table import DataError, Kind, Table

PRESETS = {
    "neural": Preprocessing(),
    "linear": Preprocessing(),
    # Wei et al. 2021: 426 training and 143 validation rows of 30 features.
    "fed_cdp": Preprocessing(test_fraction=0.25),
}


def load(*, data_dir: str | None = None, sensitive: str | None = None) -> Table:
    """Reads the copy inside scikit-learn; spaces in names become underscores.

    Args:
      data_dir: unused, no file is needed.
      sensitive: what attacks infer: a measurement, as a continuous attribute, or
        `high_` and what is measured, e.g. `high_texture`: whether its mean is above the
        median of all tumours. Its mean, error and worst value are no inputs then.
    """
    del data_dir
    from sklearn.datasets import load_breast_cancer  # slow import

    bunch: Any = load_breast_cancer(as_frame=True)
    frame = bunch.frame
    frame.columns = [str(name).replace(" ", "_") for name in frame.columns]
    frame = frame.rename(columns={"target": "benign"})
    kinds: dict[str, Kind] = dict.fromkeys(frame.columns.drop("benign"), "numeric")
    if sensitive is not None and sensitive.startswith("high_"):
        measured = sensitive.removeprefix("high_")
        own = [f"mean_{measured}", f"{measured}_error", f"worst_{measured}"]
        if own[0] not in kinds:
            raise DataError(f"breast_cancer: nothing is measured as {measured!r}")
        frame[sensitive] = (frame[own[0]] > frame[own[0]].median()).astype(int)
        frame = frame.drop(columns=own)
        kinds = {name: kind for name, kind in kinds.items() if name not in own}
        kinds[sensitive] = "binary"
    return Table(
        name="breast_cancer",
        frame=frame,
        target="benign",
        kinds=kinds,
        sensitive=sensitive,
        task="binary",
        files=(bundled_record(BREAST_CANCER),),
    )
