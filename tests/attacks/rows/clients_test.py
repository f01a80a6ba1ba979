"""Rows behind sums grouped by client, of a network of one hidden layer."""

import numpy as np
import pytest

from fljax.attacks.rows import clients

_INPUTS, _NEURONS, _CLASSES, _CLIENTS, _EACH = 40, 120, 3, 2, 9
_OWNER = np.arange(_CLIENTS * _EACH) // _EACH


def _trained(first, second, x, y, rate=0.5):
    """Both layers `[1 + D, H]`, `[H, K]` after steps over `x` `[S, B, 1 + D]`."""
    for rows, targets in zip(x, y, strict=True):
        before = rows @ first
        outputs = np.maximum(before, 0)
        scores = np.exp(outputs @ second)
        slope = scores / scores.sum(axis=1, keepdims=True) - np.eye(_CLASSES)[targets]
        part = (slope @ second.T) * (before > 0)
        first = first - rate * rows.T @ part / len(rows)
        second = second - rate * outputs.T @ slope / len(rows)
    return first, second


def _federation(num_rounds: int = 8, steps: int = 2, batch: int = 3):
    """Rows `[n, D]` of all clients, and the rounds as the server has them."""
    draws = np.random.default_rng(0)
    x = draws.uniform(size=(_CLIENTS * _EACH, _INPUTS))
    y = draws.integers(_CLASSES, size=len(x))
    ones = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    first = draws.normal(size=(1 + _INPUTS, _NEURONS)) / np.sqrt(_INPUTS)
    second = draws.normal(size=(_NEURONS, _CLASSES)) / np.sqrt(_NEURONS)
    rounds = []
    for _ in range(num_rounds):
        ends = []
        for client in range(_CLIENTS):
            own = draws.permutation(np.flatnonzero(client == _OWNER))
            used = own[: steps * batch].reshape(steps, batch)
            ends.append(_trained(first, second, ones[used], y[used]))
        after, new = (np.mean(each, axis=0) for each in zip(*ends, strict=True))
        update = np.float32(after - first)
        rounds.append(clients.Round(update, np.float32(first), np.float32(second)))
        first, second = first + update, new
    return x, rounds


def test_rows_of_which_nothing_tells_an_earlier_batch_are_not_joined(monkeypatch):
    second = np.ones((30, 2))
    told = {0: np.array([True, True])}  # of the first batch; 1 and 2 have none of it

    def fit(columns, part, on):
        row = int(part[0])
        if columns.shape[1] == 2:
            return told.get(row)
        return np.array([True, True, False])

    monkeypatch.setattr(clients, "_fit", fit)
    values = np.tile(np.arange(3.0)[:, None], (1, 30))
    parts = clients._Parts(values, values > -1, values, np.ones(30, bool))
    assert not list(clients._second_steps(parts, second))


def test_rows_of_two_clients_are_told_from_sums_and_none_wrongly():
    x, rounds = _federation()
    names = clients.group(rounds, x)
    alike = names[:, None] == names[None]
    same = _OWNER[:, None] == _OWNER[None]
    assert not (alike & ~same).any()
    assert alike[same].mean() > 0.95


def test_one_step_a_round_tells_nothing():
    x, rounds = _federation(num_rounds=3, steps=1)
    np.testing.assert_array_equal(clients.group(rounds, x), np.arange(len(x)))


def test_a_row_missing_leaves_the_others_apart_or_right():
    x, rounds = _federation()
    names = clients.group(rounds, x[1:])
    owner = _OWNER[1:]
    assert all(len(set(owner[names == name])) == 1 for name in names)


def test_what_one_row_alone_tells_makes_no_group_of_two(monkeypatch):
    told = [([0, 1, 2], True), ([3, 4], True), ([2, 3, 5], False), ([0, 6], False)]
    steps = [(np.array(rows), twice) for rows, twice in told]
    monkeypatch.setattr(clients, "_second_steps", lambda *_: steps)
    x = np.eye(7, 9)
    nothing = clients.Round(np.zeros((10, 2)), np.zeros((10, 2)), np.ones((2, 3)))
    np.testing.assert_array_equal(clients.group([nothing], x), [0, 0, 0, 3, 3, 5, 0])


@pytest.mark.parametrize("count", [0, 10, _INPUTS + 1])
def test_of_rows_that_are_none_nothing_is_told(count):
    _, rounds = _federation(num_rounds=2)
    x = np.random.default_rng(1).uniform(size=(count, _INPUTS))
    np.testing.assert_array_equal(clients.group(rounds, x), np.arange(count))


def test_one_neuron_tells_of_a_row_and_of_one_joined_to_it_before():
    x = np.eye(4, 9)
    rows = np.concatenate([np.ones((4, 1)), x], axis=1)
    first = np.zeros((10, 2))
    first[1:5] = np.array([[1, 1], [-1, 1], [-1, -1], [-1, -1]])
    parts = np.array([[1, 1], [1, 1], [0, 1], [0, 0]])
    single = clients.Round(rows.T @ parts, first, np.ones((2, 3)))
    np.testing.assert_array_equal(clients.group([single], x), [0, 0, 0, 3])
    other = single._replace(update=rows.T @ (parts * [0, 1]))
    np.testing.assert_array_equal(clients.group([other], x), np.arange(4))
