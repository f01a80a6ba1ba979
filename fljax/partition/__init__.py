"""Partition: who owns which row (data -> partition -> schedule). NumPy only.

Every function returns one int64 array of row numbers per client, in the order in which
it holds them. No client is empty. In `disjoint` no row has two owners, in
`overlapping` it may have. What cannot be met is a `ValueError` that names the argument,
what was expected and what came.

The same words mean the same everywhere: `rng` feeds all draws and comes first,
`num_rows` is `N`, `num_clients` is `C`, `labels` is `[N]` of any sortable type.
"""

from fljax.partition.checks import Parts
from fljax.partition.disjoint import (
    by_column,
    contiguous,
    correlation,
    dirichlet,
    dominant_label,
    iid,
    label_shards,
    ordered,
    sampled,
)
from fljax.partition.overlapping import (
    bucket_shards,
    class_shards,
    copies,
    few_classes,
    resampled,
)

__all__ = [
    "Parts",
    "bucket_shards",
    "by_column",
    "class_shards",
    "contiguous",
    "copies",
    "correlation",
    "dirichlet",
    "dominant_label",
    "few_classes",
    "iid",
    "label_shards",
    "ordered",
    "resampled",
    "sampled",
]
