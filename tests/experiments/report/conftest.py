"""Rows to make reports of."""

import pytest

from fljax.results import Row


@pytest.fixture
def rows(row):
    """Makes one row per value, over as many seeds."""
    base = row._replace(model="mlp", attack="model")

    def make(*values: float, **fields) -> list[Row]:
        if fields.get("attack") == "majority":
            fields = {"setting": "baseline"} | fields
        return [
            base._replace(seed=seed, value=value, **fields)
            for seed, value in enumerate(values)
        ]

    return make
