"""Replaying one client's round from the model that the transcript says was sent."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local, losses, models, rounds, schedule
from fljax.types import Features, Rows

AVERAGE = optax.sgd(1.0)
_advance = jax.jit(rounds.advance, static_argnames=("local", "server_optimiser"))


class _Recorded:
    """A multilayer perceptron of the paper's kind on 9 ragged clients, B = 32."""

    sizes = (100, 70, 33, 64, 200, 31, 90, 5, 150)
    client, round = 4, 2

    def __init__(self):
        model = models.mlp(8, hidden=(64,))
        rng = np.random.default_rng(0)
        num_rows = sum(self.sizes)
        numeric = jnp.asarray(rng.normal(size=(num_rows, 8)), jnp.float32)
        codes = jnp.zeros((num_rows, 0), jnp.int32)
        target = jnp.asarray(rng.normal(size=num_rows), jnp.float32)
        self.rows = Rows(Features(numeric, codes), target)
        loss_fn = losses.example_loss(model.apply, losses.squared)
        self.local = local.sgd(loss_fn, optax.sgd(0.01))
        plan = self.plan(lanes=8)
        params = jax.tree.map(
            lambda leaf: jnp.asarray(rng.normal(0, 0.2, leaf.shape), leaf.dtype),
            jax.eval_shape(model.init, jax.random.key(0)),
        )
        run = rounds.start(params, plan, AVERAGE)
        self.transcript = self.advance(run, plan, 3).transcript

    def plan(self, **how):
        return schedule.build(self.sizes, num_rounds=3, batch_size=32, **how)

    def advance(self, run, plan, stop):
        return _advance(
            jax.random.key(3),
            run,
            self.rows,
            plan,
            stop,
            local=self.local,
            server_optimiser=AVERAGE,
        )

    def message(self, transcript):
        """What the client sent back in the round."""
        (slot,) = np.flatnonzero(transcript.client[self.round] == self.client)
        return jax.tree.map(lambda leaf: leaf[self.round, slot], transcript.delta)

    def replay(self, **how):
        """Its message of the round, from the model that the transcript says was sent."""
        plan = self.plan(**how)
        sent = jax.tree.map(lambda leaf: leaf[self.round], self.transcript.params)
        run = rounds.start(sent, plan, AVERAGE)
        run = run._replace(server=run.server._replace(round=jnp.int32(self.round)))
        return self.message(self.advance(run, plan, self.round + 1).transcript)


@pytest.fixture(scope="module")
def recorded():
    return _Recorded()


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [{"lanes": 8}, {"lanes": 2, "participants": [np.array([4, 7])]}],
    ids=["same lanes", "beside one other in two lanes"],
)
def test_a_replayed_round_is_bit_identical_in_two_or_more_lanes(recorded, how):
    found = recorded.replay(**how)
    expected = recorded.message(recorded.transcript)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_a_round_replayed_alone_in_one_lane_agrees_to_rounding(recorded):
    # One lane is a matrix product and no longer a batched one: sums in another order.
    found = recorded.replay(participants=[np.array([4])])
    expected = recorded.message(recorded.transcript)
    for a, b in zip(*map(jax.tree.leaves, (found, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * np.abs(b).max())


def test_a_replay_of_another_round_is_not_her_message(recorded):
    sent = jax.tree.map(lambda leaf: leaf[0], recorded.transcript.delta)
    other = jax.tree.map(lambda leaf: leaf[recorded.client], sent)
    found = recorded.message(recorded.transcript)
    assert not np.allclose(
        found["Dense_0"]["kernel"], other["Dense_0"]["kernel"], rtol=1e-2
    )
