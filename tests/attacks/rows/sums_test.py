"""Rows of whole numbers from sums over clients and rounds."""

import numpy as np
import pytest

from fljax.attacks.rows import intersections, sums
from fljax.attacks.rows.clients import Round
from fljax.attacks.rows.grid import Grid

_ALL, _INPUTS, _NEURONS, _WHITE = 18, 60, 80, 255


def _rounds(there: np.ndarray, on: np.ndarray, weakest: float = 1):
    """Integers `[n, D]`, and rounds to whose updates those that are there add something.

    Args:
      there: `[R, n]` bool.
      on: `[n, H]` bool, neurons that a row has on.
      weakest: what the last row adds as a share of what the first does.
    """
    draws = np.random.default_rng(0)
    x = draws.integers(0, _WHITE + 1, (_ALL, _INPUTS))
    ones = np.concatenate([np.ones((_ALL, 1)), x / _WHITE], axis=1)
    # A layer that has these neurons on for these rows.
    first = np.linalg.pinv(ones) @ np.where(on, 1.0, -1.0)
    rounds = []
    for now in there:
        part = draws.normal(size=(_ALL, _NEURONS)) * on * 0.01
        part *= np.geomspace(1, weakest, _ALL)[:, None]
        after = np.float32(first) + np.float32(ones[now].T @ part[now])
        update = after - np.float32(first)
        rounds.append(Round(update, np.float32(first), np.zeros((_NEURONS, 2))))
    return x, rounds


def _drawn(rounds: int, rows: int) -> np.ndarray:
    draws = np.random.default_rng(1)
    return draws.permuted(np.tile(np.arange(_ALL) < rows, (rounds, 1)), axis=1)


def _same(found: np.ndarray, x: np.ndarray) -> None:
    np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(x, axis=0))


_EVERY = np.ones((_ALL, _NEURONS), bool)


def test_rows_that_are_drawn_anew_every_round_are_told_apart():
    x, rounds = _rounds(_drawn(30, 7), _EVERY)
    _same(sums.recover(rounds, _WHITE), x)


def test_quotients_of_few_steps_of_rounding_prove_nothing():
    draws, step = np.random.default_rng(0), np.spacing(np.float32(0.1))
    first = np.full((1 + _INPUTS, 2), 0.1, np.float32)
    first[1, 1] = 1e-6  # rounded finer than all others
    change = np.concatenate([[16], draws.integers(0, 17, _INPUTS)])
    update = np.stack([change * step, np.zeros(1 + _INPUTS)], axis=1)
    update[1, 1] = np.spacing(np.float32(1e-6))
    there = Round(np.float32(update), first, np.zeros((2, 2)))
    assert not len(sums._alone(Grid(16), [sums._seen(there)]))
    some = np.concatenate([first, np.zeros((1 + _INPUTS, 5), np.float32)], axis=1)
    wide = np.concatenate([update, np.zeros((1 + _INPUTS, 5))], axis=1)
    dead = there._replace(first=some, update=np.float32(wide))  # neurons of zeros
    assert not len(sums._alone(Grid(16), [sums._seen(dead)]))
    exact = there._replace(first=np.float64(first), update=update)  # models in float64
    assert sums._seen(exact).step < 1e-12


def test_rows_that_add_little_are_told_from_rounding():
    x, rounds = _rounds(_drawn(40, 16), _EVERY, weakest=1e-5)
    found = sums.recover(rounds, _WHITE)
    assert len(found) > 12  # 2 without the spans around known rows
    assert (found[:, None] == x[None]).all(axis=2).any(axis=1).all()


@pytest.mark.parametrize("together", [2, 3])
def test_few_rows_that_always_come_together_are_told_by_being_whole(together):
    groups = np.arange(_ALL) // together
    there = _drawn(30, 7)[:, groups]
    x, rounds = _rounds(there, _EVERY)
    _same(sums.recover(rounds, _WHITE), x)


_CHAIN = ({0}, {0, 1}, {0, 1, 2}, {1, 3}, {2, 3, 4}, {0, 4, 5})
# Of six rows those that some neurons have on; the others have all.


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 1, 4, 6])
def test_of_many_those_are_told_that_have_a_neuron_beside_few_known(length):
    there = np.repeat(~np.eye(3, dtype=bool), _ALL // 3, axis=1)  # two of three blocks
    on = _EVERY.copy()
    for neuron, some in enumerate(_CHAIN[:length]):
        on[:, neuron] = np.isin(np.arange(_ALL) % 6, list(some))
    x, rounds = _rounds(there, on)
    found = sums.recover(rounds, _WHITE)
    _same(found, x[np.arange(_ALL) % 6 < length])


def test_spans_around_known_rows_hold_them_and_what_is_left():
    x, (seen, *_) = _rounds(_drawn(1, 7), _EVERY)
    rows = np.concatenate([np.ones((_ALL, 1)), x / _WHITE], axis=1)
    there = rows[_drawn(1, 7)[0]]
    around = intersections.span_around(np.float64(seen.update), there[:4], 1e-7)
    assert around.shape == (1 + _INPUTS, 7)
    assert intersections.inside([around], there).all()
    assert not intersections.inside([around], rows[~_drawn(1, 7)[0]]).any()


def test_no_round_is_refused():
    with pytest.raises(ValueError, match="rounds, white: expected one or more, got 0"):
        sums.recover([], _WHITE)


@pytest.mark.parametrize("rank", [1, 3, 7, 61])
@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_read_from_noise(seed, rank):
    draws = np.random.default_rng(seed)
    noise = [
        Round(
            draws.normal(size=(_INPUTS + 1, rank))
            @ draws.normal(size=(rank, _NEURONS)),
            draws.normal(size=(_INPUTS + 1, _NEURONS)),
            np.zeros((_NEURONS, 2)),
        )
        for _ in range(4)
    ]
    assert len(sums.recover(noise, _WHITE, seed)) == 0


def _in_steps(rounds, bits):
    """The same as a protocol adds them: whole numbers of so many bits over the range."""
    most = max(np.abs(each.update).max() for each in rounds)
    step = 2 * most / 2**bits
    return [
        each._replace(update=np.float32(step * np.round(each.update / step)))
        for each in rounds
    ]


@pytest.mark.parametrize(("bits", "rows"), [(14, _ALL), (6, 0)])
def test_of_sums_of_whole_numbers_quotients_of_small_ones_prove_nothing(bits, rows):
    x, rounds = _rounds(_drawn(30, 7), _EVERY)
    found = sums.recover(_in_steps(rounds, bits), _WHITE)
    assert len(found) == rows
    if rows:
        _same(found, x)
