"""Rows that a neuron of a sum has for itself."""

import numpy as np
import pytest

from fljax.attacks.rows import exclusive
from fljax.attacks.rows.clients import Round


def test_a_row_that_a_neuron_has_for_itself_is_read_and_a_mixture_is_not():
    row = np.array([0.0, 5.0, 16.0, 2.0]) / 16
    other = np.array([3.0, 0.0, 1.0, 9.0]) / 16
    alone = np.array([1.0, *row]) * 0.3
    mixed = np.array([1.0, *(0.45 * row + 0.55 * other)])
    update = np.stack([alone, mixed, np.zeros(5)], axis=1)
    seen = [Round(update, update, np.zeros((3, 2)))]
    np.testing.assert_array_equal(exclusive.recover(seen, 16), [16 * row])


@pytest.mark.parametrize(("rounds", "white"), [(0, 16), (1, 0)])
def test_without_a_round_or_a_largest_value_it_is_said_what_is_expected(rounds, white):
    seen = [Round(np.zeros((5, 3)), np.zeros((5, 3)), np.zeros((3, 2)))] * rounds
    with pytest.raises(ValueError, match="rounds, white: expected one or more"):
        exclusive.recover(seen, white)
