"""Which batches count as the only ones that have their message."""

import numpy as np
import pytest

from fljax import losses, models
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


@pytest.mark.parametrize("loss", [losses.squared, losses.absolute])
def test_targets_of_whose_errors_the_sign_alone_is_known_are_not_told(problem, loss):
    schema, raw, _, params, _ = problem((_WIDTH, _WIDTH), 1, _SEED)
    model = models.mlp(len(schema.mean), hidden=(_WIDTH, _WIDTH))
    loss_fn = losses.example_loss(model.apply, loss)
    network, x = rows.Network(params, loss_fn), schema.encode(raw)
    y = np.linspace(5, 9, len(x), dtype=np.float32)
    message = network.message(x, y, np.full(len(y), 1 / len(y)))
    known = loss is losses.squared
    assert alone.are_told(network, message, x, y, y) == known
    found = rows.recover(params, message, loss_fn, schema, len(x), y)
    assert found.exact == known


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
