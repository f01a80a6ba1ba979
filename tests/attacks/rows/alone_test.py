"""Which batches count as the only ones that have their message."""

import numpy as np
import pytest

from fljax.attacks import rows
from fljax.attacks.rows import alone, polish

_WIDTH, _SEED = 24, 2


@pytest.fixture
def leaves_open(problem):
    """`alone` of a batch, two rows of which its message hardly tells apart."""
    schema, raw, _, params, loss_fn = problem((_WIDTH, _WIDTH), 2, _SEED)
    schema = schema._replace(whole=np.array([False, False]))
    raw[1], y = raw[0], np.array([0, 0, 0, 1])
    raw[0, 10:], raw[1, 10:] = (50, 60), (51.2, 58.5)
    network, x = rows.Network(params, loss_fn), schema.encode(raw)
    message = network.message(x, y, np.full(len(y), 1 / len(y)))
    return lambda: alone.alone(network, message, x, y, schema)


def test_a_batch_that_moves_without_its_message_is_not_alone(leaves_open):
    assert not leaves_open()


def test_rows_that_the_message_does_not_depend_on_are_not_alone(problem):
    schema, raw, y, params, loss_fn = problem((_WIDTH, _WIDTH), 2, _SEED)
    off = {n: {**p, "bias": p["bias"] - 1e3} for n, p in params.items()}
    off = {**params, **{n: p for n, p in off.items() if n.startswith("Tabular")}}
    network, x = rows.Network(off, loss_fn), schema.encode(raw)
    message = network.message(x, y, np.full(len(y), 1 / len(y)))
    assert not alone.alone(network, message, x, y, schema)


def test_a_message_that_is_too_large_is_not_looked_at(leaves_open, monkeypatch):
    monkeypatch.setattr(polish, "too_large", lambda *_: True)
    assert leaves_open()


@pytest.mark.parametrize(
    ("places", "expected"),
    [(None, False), ([0, 1, 2, 3], True), ([1, 0, 2, 3], True), ([1, 1, 2, 3], False)],
    ids=["nothing fits", "these fit", "in another order", "one twice"],
)
def test_only_who_comes_back_is_alone(leaves_open, places, expected, monkeypatch):
    def fitted(network, message, x, y, schema, aside):
        return [] if places is None else [x[places]]

    monkeypatch.setattr(alone, "_fitted", fitted)
    assert leaves_open() == expected
