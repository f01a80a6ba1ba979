"""Rows behind local steps: the attack that fits them is taken."""

import numpy as np
import pytest

from fljax.attacks import rows
from fljax.attacks.rows.steps import Steps, moved


@pytest.mark.parametrize(
    "steps",
    [Steps(1, 0.05), Steps(2, 0.05, rows=2), Steps(3, 0.05)],
    ids=["one step", "over other rows", "over the same rows"],
)
def test_rows_behind_steps_of_any_kind_are_proven(problem, steps):
    given = problem((24, 24), 2, 1)
    x, y = given.schema.encode(given.raw), given.y
    message = moved(given.params, given.loss_fn, x, y, steps)
    sent = given.params, message, given.loss_fn, steps
    found = rows.recover_steps(*sent, given.schema, len(y), np.arange(2))
    assert found.exact
    at = np.lexsort(found.raw.T), np.lexsort(given.raw.T)
    np.testing.assert_allclose(found.raw[at[0]], given.raw[at[1]], rtol=1e-3)


@pytest.mark.parametrize("steps", [Steps(1, 0.05), Steps(2, 0.05, 2), Steps(3, 0.05)])
def test_nothing_to_find_is_refused(problem, steps):
    given = problem((24, 24), 2, 1)
    sent = given.params, given.params, given.loss_fn, steps, given.schema
    for count, targets in ((0, np.arange(2)), (4, np.zeros(0))):
        with pytest.raises(ValueError, match="rows, targets: expected at least 1"):
            rows.recover_steps(*sent, count, targets)


@pytest.mark.parametrize("steps", [Steps(1, 0.05, 2), Steps(2, 0.05, 3)])
def test_steps_that_are_not_over_so_many_rows_are_refused(problem, steps):
    given = problem((24, 24), 2, 1)
    sent = given.params, given.params, given.loss_fn, steps, given.schema
    with pytest.raises(ValueError, match="steps: expected 4 rows in all, got"):
        rows.recover_steps(*sent, 4, np.arange(2))
