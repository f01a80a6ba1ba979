"""How often a row is in its client's steps, by the way batches are made."""

import numpy as np
import pytest

from fljax.federation import Tables
from fljax.privacy.audits import chances
from fljax.privacy.audits.canaries import Canary
from fljax.types import Features, Rows


def _tables(**plan):
    x = Features(np.zeros((60, 2), np.float32), np.zeros((60, 0), np.int32))
    parts = [np.arange(20), np.arange(20, 60)]
    told = {"batch_size": 2, "num_rounds": 2} | plan
    return Tables.of(Rows(x, np.zeros(60, np.float32)), parts, **told)


@pytest.mark.parametrize(
    ("plan", "client", "steps", "rate"),
    [
        ({"epochs": 3}, 0, 3, 1.0),
        ({"epochs": 3}, 1, 3, 1.0),
        ({"steps": 5}, 0, 1, 0.5),
        ({"steps": 5}, 1, 1, 0.25),
        ({"steps": 15}, 0, 2, 0.75),
        ({"epochs": 3, "batch_size": 8, "drop_last": True}, 0, 3, 0.8),
        ({"epochs": 3, "batch_size": 8, "drop_last": True}, 1, 3, 1.0),
    ],
)
def test_a_pass_has_a_row_once_and_part_of_one_has_it_by_chance(
    plan, client, steps, rate
):
    found = chances.inclusions(_tables(**plan), Canary("row", client=client, row=0))
    assert (found.steps, found.rate) == (steps, pytest.approx(rate))
    assert found.total == 2 * steps
