"""Rows of whole numbers: what proves one, and which of them lie in a space."""

import numpy as np
import pytest

from fljax.attacks.rows.grid import Grid

_WHITE, _INPUTS = 255, 60
_GRID = Grid(_WHITE)


def _rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, _WHITE + 1, (count, _INPUTS))


def _space(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """An orthonormal basis of them, in which none of them is seen."""
    ones = np.concatenate([np.ones((len(rows), 1)), rows / _WHITE], axis=1)
    mixed = ones.T @ np.random.default_rng(seed).normal(size=(len(rows), len(rows)))
    return np.linalg.qr(mixed)[0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_a_space_of_few_rows_these_are_whole_and_nothing_else(count):
    rows = _rows(count)
    found = _GRID.within(_space(rows))
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(rows, axis=0))


@pytest.mark.parametrize("coarse", [255, 17])
def test_rows_of_which_mixtures_are_whole_are_not_told(coarse):
    rows = np.round(_rows(2) / coarse).astype(int) * coarse
    assert not len(_GRID.within(_space(rows)))


def test_a_space_without_a_row_has_none():
    draws = np.random.default_rng(1)
    assert not len(_GRID.within(np.linalg.qr(draws.normal(size=(61, 3)))[0]))
    assert not len(_GRID.within(np.eye(61)[:, 1:3]))  # of no row, the bias being 0
    assert not len(Grid(2**16).within(_space(_rows(3))))  # too much to try


def test_a_row_is_proven_by_whole_numbers_alone():
    rows = _rows(3)
    twice = np.concatenate([rows, rows[:1]]) / _WHITE
    np.testing.assert_array_equal(_GRID.proven(twice), rows)
    off = twice.copy()
    off[:, 7] += 0.4 / _WHITE
    beyond = twice + 2
    dark = np.where(np.arange(_INPUTS) < 10, twice, 0)
    for none in off, beyond, dark, np.full((1, _INPUTS), 0.2):
        assert not len(_GRID.proven(none))
