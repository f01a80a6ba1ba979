"""Rows that are not a client's: nobody's before those of others, none twice."""

import numpy as np

from fljax import strangers

_OWNER = np.array([0, 1, -1, 0, 1, -1, 2])


def _draw(count, seed=0):
    return strangers.draw(np.random.default_rng(seed), _OWNER, 1, count).tolist()


def test_rows_of_nobody_are_drawn_first_and_those_of_others_fill_up():
    assert set(_draw(2)) == {2, 5}
    assert set(_draw(3)[:2]) == {2, 5} and _OWNER[_draw(3)[2]] in (0, 2)
    assert len({tuple(_draw(3, seed)) for seed in range(20)}) > 3


def test_its_own_are_never_drawn_and_no_row_twice():
    assert sorted(_draw(99)) == [0, 2, 3, 5, 6]


def test_where_all_rows_are_its_own_there_are_none():
    rng = np.random.default_rng(0)
    assert not len(strangers.draw(rng, np.zeros(4, int), 0, 4))
