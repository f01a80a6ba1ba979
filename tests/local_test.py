"""One client's update against steps written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import local
from fljax.types import Batch, Sender

SENDER = Sender(np.int32(5), np.int32(3))


def _loss(params, x, y):
    return jnp.square(params["w"] * x - y)


def _batch(x, mask=None):
    x = np.asarray(x, np.float32)
    mask = np.ones(x.shape, bool) if mask is None else np.asarray(mask)
    return Batch(x, np.zeros_like(x), mask)


def _run(update, sent, batches):
    @jax.jit
    def whole(sent):
        carry = update.init(sent)
        for i, batch in enumerate(batches):
            carry = update.step(jax.random.key(i), carry, sent, batch)
        return update.final(jax.random.key(99), carry, sent, SENDER)

    return whole(sent)


def test_the_delta_is_sent_minus_returned():
    update = local.sgd(_loss, optax.sgd(0.1))
    message = _run(update, {"w": np.float32(1)}, [_batch([1.0]), _batch([2.0])])
    # w: 1 -> 1 - 0.1 * 2 = 0.8 -> 0.8 - 0.1 * 8 * 0.8 = 0.16
    assert message.delta["w"] == pytest.approx(0.84, rel=1e-6)


def test_the_loss_is_the_mean_of_the_batch_losses_before_each_step():
    update = local.sgd(_loss, optax.sgd(0.1))
    message = _run(update, {"w": np.float32(1)}, [_batch([1.0]), _batch([2.0])])
    assert message.loss == pytest.approx((1.0 + 4 * 0.8**2) / 2, rel=1e-6)


def test_a_step_uses_the_mean_over_real_rows():
    update = local.sgd(_loss, optax.sgd(0.1))
    message = _run(
        update, {"w": np.float32(1)}, [_batch([1.0, 3.0, 9.0], [True, True, False])]
    )
    assert message.delta["w"] == pytest.approx(0.1 * (2 + 18) / 2, rel=1e-6)


def test_without_a_step_nothing_changes():
    message = _run(local.sgd(_loss, optax.sgd(0.1)), {"w": np.float32(1)}, [])
    assert message.delta["w"] == 0.0
    assert message.loss == 0.0


def test_the_proximal_term_pulls_towards_what_was_sent():
    update = local.sgd(_loss, optax.sgd(0.1), proximal=3.0)
    message = _run(update, {"w": np.float32(1)}, [_batch([1.0]), _batch([1.0])])
    # w: 1 -> 0.8 -> 0.8 - 0.1 * (2 * 0.8 + 3 * (0.8 - 1)) = 0.7
    assert message.delta["w"] == pytest.approx(0.3, rel=1e-5)


def test_the_proximal_term_is_not_part_of_the_reported_loss():
    update = local.sgd(_loss, optax.sgd(0.1), proximal=3.0)
    message = _run(update, {"w": np.float32(1)}, [_batch([1.0]), _batch([1.0])])
    assert message.loss == pytest.approx((1 + 0.64) / 2, rel=1e-6)


def test_any_optax_optimiser_serves():
    update = local.sgd(_loss, optax.sgd(0.1, momentum=0.5))
    message = _run(update, {"w": np.float32(1)}, [_batch([1.0]), _batch([1.0])])
    # Momentum 2 then 0.5 * 2 + 1.6.
    assert message.delta["w"] == pytest.approx(0.1 * (2 + 1 + 1.6), rel=1e-6)


def test_a_learning_rate_falls_from_round_to_round():
    update = local.sgd(_loss, optax.sgd(0.1, momentum=0.5), decay=0.5)
    batch = _batch([1.0])._replace(round=jnp.int32(2))
    message = _run(update, {"w": np.float32(1)}, [batch])
    assert message.delta["w"] == pytest.approx(0.1 * 0.25 * 2, rel=1e-6)


@pytest.mark.parametrize("decay", [0.0, -0.5, np.inf, np.nan])
def test_a_decay_is_positive(decay):
    with pytest.raises(ValueError, match="decay must be > 0 and finite"):
        local.sgd(_loss, optax.sgd(0.1), decay=decay)


def test_hyperparameters_may_be_traced():
    def delta(rate, mu):
        update = local.sgd(_loss, optax.sgd(rate), proximal=mu)
        return _run(update, {"w": np.float32(1)}, [_batch([1.0])]).delta["w"]

    rates, mus = jnp.array([0.1, 0.2]), jnp.array([1.0, 2.0])
    np.testing.assert_allclose(jax.jit(jax.vmap(delta))(rates, mus), 2 * rates)


@pytest.mark.parametrize("mu", [-1, -0.5])
def test_a_negative_proximal_term_is_refused(mu):
    with pytest.raises(ValueError, match="proximal must be >= 0"):
        local.sgd(_loss, optax.sgd(0.1), proximal=mu)


def _constant(key, params, batch):
    del key, batch
    return {"w": jnp.full_like(params["w"], 2.0)}, np.float32(7)


def test_a_gradient_of_ones_own_takes_the_place_of_the_mean():
    update = local.sgd(_loss, optax.sgd(0.1), gradient=_constant)
    message = _run(update, {"w": np.float32(1)}, [_batch([1.0]), _batch([5.0])])
    assert message.delta["w"] == pytest.approx(0.1 * (2 + 2), rel=1e-6)
    assert message.loss == 7.0


def test_the_proximal_term_is_added_after_a_gradient_of_ones_own():
    update = local.sgd(_loss, optax.sgd(0.1), proximal=3.0, gradient=_constant)
    message = _run(update, {"w": np.float32(1)}, [_batch([1.0]), _batch([1.0])])
    # w: 1 -> 0.8 -> 0.8 - 0.1 * (2 + 3 * (0.8 - 1)) = 0.66
    assert message.delta["w"] == pytest.approx(0.34, rel=1e-5)
    assert message.loss == 7.0


def test_a_gradient_of_ones_own_gets_the_key_and_the_batch_of_its_step():
    def gradient(key, params, batch):
        del params
        return {"w": jax.random.uniform(key) + batch.client}, jnp.zeros(())

    update = local.sgd(_loss, optax.sgd(1.0), gradient=gradient)
    batch = _batch([1.0])._replace(client=np.int32(5))
    message = _run(update, {"w": np.float32(0)}, [batch, batch])
    drawn = [jax.random.uniform(jax.random.key(i)) for i in (0, 1)]
    np.testing.assert_allclose(message.delta["w"], sum(drawn) + 10, rtol=1e-6)


@pytest.mark.parametrize(
    "gradient, said",
    [
        (lambda key, params, batch: params, "gradient, mean loss.* got dict"),
        (lambda key, params, batch: (jnp.zeros(()), params), "^gradient: expected"),
        (lambda key, params, batch: (params, batch.y), r"mean loss \[\] of a batch"),
    ],
)
def test_a_gradient_of_another_form_is_named(gradient, said):
    update = local.sgd(_loss, optax.sgd(0.1), gradient=gradient)
    with pytest.raises(ValueError, match=said):
        _run(update, {"w": np.float32(1)}, [_batch([1.0])])


def test_a_message_of_another_form_is_named():
    update = local.sgd(_loss, optax.sgd(0.1), encode=lambda key, delta, _: [delta["w"]])
    with pytest.raises(ValueError, match=r"^encode: expected \['w'\] \[\], got \[0\]"):
        _run(update, {"w": np.float32(1)}, [_batch([1.0])])
