"""The benchmark of Table III, at a tiny size."""

import pytest

from experiments.benchmarks import local_iterations
from experiments.fed_cdp import published


@pytest.mark.slow
def test_every_defense_stands_beside_none_and_the_printed_ratio():
    config = local_iterations.Config(
        networks=("breast_cancer",), clients=1, steps=2, repeats=1
    )
    rows, targets = local_iterations.run(config)
    assert not targets
    assert [row["defense"].partition("(")[0] for row in rows] == [
        "none", "fed_sdp", "fed_cdp", "fed_cdp",
    ]  # fmt: skip
    assert rows[0]["ratio"] == 1 and min(row["milliseconds"] for row in rows) > 0
    printed = published.numbers("table3", "breast_cancer")
    milliseconds = {method: value for (_, method, _), value in printed.items()}
    assert rows[2]["printed"] == milliseconds["fed_cdp"] / milliseconds["non_private"]
