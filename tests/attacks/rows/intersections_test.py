"""Rows from sums over clients and rounds."""

import numpy as np
import pytest

from fljax.attacks.rows import intersections

_ALL, _INPUTS, _NEURONS = 18, 30, 40


def _rounds(there: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rows, and updates to which those that are there add something."""
    draws = np.random.default_rng(0)
    x = draws.uniform(size=(_ALL, _INPUTS))
    ones = np.concatenate([np.ones((_ALL, 1)), x], axis=1)
    weights = draws.normal(size=(len(there), _ALL, _NEURONS))
    return x, [
        np.float32(ones[now].T @ weight[now])
        for now, weight in zip(there, weights, strict=True)
    ]


def test_rows_that_are_drawn_anew_every_round_are_told_apart():
    draws = np.random.default_rng(1)
    there = draws.permuted(np.tile(np.arange(_ALL) < 7, (30, 1)), axis=1)
    x, updates = _rounds(there)
    found = intersections.recover(updates)
    assert found.x.shape == x.shape and not found.left.any()
    far = np.abs(found.x[:, None] - x[None]).max(axis=2)
    assert far.min(axis=0).max() < 1e-3
    np.testing.assert_array_equal(found.rounds, there.T[far.argmin(axis=1)])


def test_rows_that_always_come_together_stay_together():
    there = np.repeat(np.eye(3, dtype=bool), _ALL // 3, axis=1)
    found = intersections.recover(_rounds(there)[1])
    assert len(found.x) == 0
    np.testing.assert_array_equal(found.left, _ALL // 3)


@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_read_from_noise(seed):
    draws = np.random.default_rng(seed)
    noise = [draws.normal(size=(_INPUTS + 1, _NEURONS)) for _ in range(4)]
    assert len(intersections.recover(noise, seed).x) == 0
