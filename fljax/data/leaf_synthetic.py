"""LEAF synthetic: clients drawn from clusters, each with its own linear classifier.

Caldas et al., "LEAF: A Benchmark for Federated Settings", 2018, appendix A, with the
client sizes of Xu and Neglia, "What else is leaked when eavesdropping Federated
Learning?", 2021. The bias coordinate of the generator is not a column: models bring
their own intercept.

Their public generator, the default here, differs from their text in two things. The
mean of a cluster's centre is drawn for each cluster, not once for all. And its softmax
divides by the sum over a client's rows, not over the classes: a row has the class whose
weight is largest as a share of what the class weighs in all rows of the client. So no
client has rows of a single class, as two in five have by the text.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from scipy import special

from fljax.data.options import Preprocessing
from fljax.data.table import DataError, Kind, Table

_RAW = Preprocessing(split="none", numeric="raw")
PRESETS = {"neural": _RAW, "linear": _RAW}

SIZES = (280, 184, 1536, 256, 208)
GENERATORS = ("code", "text")
_NOISE = 0.1  # standard deviation of a client's weights and of the class scores


def load(
    *,
    data_dir: str | None = None,
    seed: int = 0,
    sizes: Sequence[int] = SIZES,
    num_features: int = 10,
    num_classes: int = 2,
    num_clusters: int = 5,
    generator: Literal["code", "text"] = "code",
) -> Table:
    """Generates the table; the column `client` says who owns a row.

    Args:
      data_dir: unused, no file is needed.
      seed: seed of the draw; the paper repeats its experiment over draws.
      sizes: rows of each client.
      num_features: number of features `D`.
      num_classes: classes; two make a binary task.
      num_clusters: clusters that clients are drawn from, all equally likely.
      generator: whether as the public code draws, or as the text says.
    """
    del data_dir
    if not sizes or min(sizes) < 1:
        raise DataError(f"leaf_synthetic: {sizes=} must hold numbers >= 1")
    if num_features < 1 or num_classes < 2 or num_clusters < 1:
        raise DataError(
            f"leaf_synthetic: {num_features=} must be >= 1, {num_classes=} >= 2, "
            f"{num_clusters=} >= 1"
        )
    if generator not in GENERATORS:
        raise DataError(f"leaf_synthetic: {generator=} must be one of {GENERATORS}")
    rng = np.random.default_rng(seed)
    # Q of the paper: from a client's position among clusters to its weights.
    mixing = rng.normal(size=(num_features + 1, num_classes, num_clusters))
    around = rng.normal(size=(num_clusters, 1) if generator == "code" else ())
    centres = rng.normal(around, 1.0, size=(num_clusters, num_clusters))
    clients = [
        _client(rng, size, mixing, centres, by_rows=generator == "code")
        for size in sizes
    ]
    frame = pd.concat(clients, ignore_index=True)
    frame["client"] = np.repeat(np.arange(len(sizes)), sizes)
    kinds: dict[str, Kind] = {f"x{i}": "numeric" for i in range(num_features)}
    return Table(
        name="leaf_synthetic",
        frame=frame,
        target="y",
        kinds=kinds,
        sensitive=None,
        task="binary" if num_classes == 2 else "multiclass",
    )


def _client(
    rng: np.random.Generator,
    size: int,
    mixing: np.ndarray,
    centres: np.ndarray,
    *,
    by_rows: bool,
) -> pd.DataFrame:
    """Rows of one client: mixing `[D + 1, classes, clusters]`, centres `[k, k]`."""
    num_features, num_classes = mixing.shape[0] - 1, mixing.shape[1]
    centre = centres[rng.integers(len(centres))]
    weights = mixing @ rng.normal(centre, _NOISE)  # [D + 1, classes]
    mean = rng.normal(rng.normal(), 1.0, size=num_features)
    std = np.arange(1, num_features + 1) ** -0.6  # variance i^-1.2
    x = rng.normal(mean, std, size=(size, num_features))
    scores = weights[0] + x @ weights[1:] + rng.normal(0, _NOISE, (size, num_classes))
    if by_rows:
        scores -= special.logsumexp(scores, axis=0)
    frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(num_features)])
    # The largest score is the most probable class; no sampling, as in the generator.
    return frame.assign(y=scores.argmax(axis=1))
