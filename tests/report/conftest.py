"""Rows to make reports of."""

import pytest

from fljax.results import Row

_ROW = Row(
    experiment="aia",
    data="medical",
    model="mlp",
    defense="none",
    attack="model",
    setting="passive",
    point="",
    seed=0,
    client="all",
    metric="aia_accuracy_percent",
    value=80.0,
    n=100,
)


@pytest.fixture
def rows():
    """Makes one row per value, over as many seeds."""

    def make(*values: float, **fields) -> list[Row]:
        if fields.get("attack") == "majority":
            fields = {"setting": "baseline"} | fields
        return [
            _ROW._replace(seed=seed, value=value, **fields)
            for seed, value in enumerate(values)
        ]

    return make
