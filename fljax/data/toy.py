"""Toy regression of Figure 2: ten features, the last one binary and inferred.

Diana et al., "Attribute Inference Attacks for Federated Regression Tasks", 2025:
y = X w + b + noise with w ~ N(0, 1), X ~ U[0, 1), the last column thresholded at one
half, noise of standard deviation 0.1. Two clients hold half of the rows each. The
intercept is drawn from U[0, 1), as in the authors' notebook; the paper says N(0, 1).
"""

import numpy as np
import pandas as pd

from fljax.data.options import Preprocessing
from fljax.data.table import DataError, Kind, Table

_RAW = Preprocessing(split="none", numeric="raw", binary="zero_one")
PRESETS = {"neural": _RAW, "linear": _RAW}


def load(
    *,
    data_dir: str | None = None,
    seed: int = 42,
    num_rows: int = 2048,
    num_features: int = 10,
    noise: float = 0.1,
) -> Table:
    """Generates the table; `parameters` holds `weights` `[D]` and `bias` `[]`.

    Args:
      data_dir: unused, no file is needed.
      seed: seed of the legacy generator that the notebook used.
      num_rows: rows of both clients together.
      num_features: number of features `D`, the binary one included.
      noise: standard deviation of the target's noise.
    """
    del data_dir
    if num_rows < 2 or num_features < 1:
        raise DataError(f"toy: {num_rows=} must be >= 2 and {num_features=} >= 1")
    rng = np.random.RandomState(seed)
    weights = rng.randn(num_features)
    bias = rng.rand()
    x = rng.rand(num_rows, num_features)
    x[:, -1] = x[:, -1] > 0.5
    y = x @ weights + bias + noise * rng.randn(num_rows)
    columns = [f"x{i}" for i in range(num_features)]
    frame = pd.DataFrame(x, columns=columns)
    frame["y"] = y
    frame["client"] = (2 * np.arange(num_rows) >= num_rows).astype(np.int64)
    kinds: dict[str, Kind] = dict.fromkeys(columns, "numeric")
    kinds[columns[-1]] = "binary"
    return Table(
        name="toy",
        frame=frame,
        target="y",
        kinds=kinds,
        sensitive=columns[-1],
        task="regression",
        parameters={"weights": weights, "bias": np.asarray(bias)},
    )
