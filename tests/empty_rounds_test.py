"""Rounds in which nobody takes part: the server's model stays as it is."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import federation
from fljax.federation import FedAvg, Federation, Tables, Training
from fljax.types import Model, Rows

_MODEL = Model(lambda key: {"w": jnp.ones(3)}, lambda params, x: params["w"] @ x)


def _loss(params, x, y):
    return jnp.square(params["w"] @ x - y)


def _lonely(participants, server):
    """The initial model, and a training of three rounds."""
    rows = Rows(np.ones((7, 3), np.float32), np.ones(7, np.float32))
    tables = Tables.of(
        rows, [np.arange(3), np.arange(3, 7)], num_rounds=3, batch_size=2,
        participants=participants,
    )  # fmt: skip
    method = FedAvg(
        model=_MODEL, loss_fn=_loss, optimiser=lambda _: optax.sgd(0.01),
        server_optimiser=lambda _: server,
    )  # fmt: skip
    found = federation.train(
        Federation(method, tables), Training.of_seeds(0), stops=(0, 3),
        evaluate=lambda run, training, tables: run.server.params["w"],
    )  # fmt: skip
    return found.evaluations[0, 0], found.run


def test_a_training_in_which_nobody_takes_part_leaves_the_model():
    start, run = _lonely([[], [], []], optax.sgd(1.0))
    np.testing.assert_array_equal(run.server.params["w"][0], start)
    assert (run.loss == 0).all()


@pytest.mark.parametrize("momentum", [pytest.param(None, marks=pytest.mark.slow), 0.9])
def test_weight_decay_of_the_server_waits_for_a_message(momentum):
    decay = optax.chain(
        optax.add_decayed_weights(0.1), optax.sgd(1.0, momentum=momentum)
    )
    start, run = _lonely([[], [0, 1], []], decay)
    sent = run.transcript.params["w"][0]
    np.testing.assert_array_equal(sent[1], start)
    np.testing.assert_array_equal(run.server.params["w"][0], sent[2])
    assert (sent[2] != start).all()
