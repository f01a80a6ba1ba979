"""Messages of a client, averaged over runs of rounds."""

import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.reconstruction.decoding import Messages, messages


def test_averages_leave_out_rounds_without_the_client():
    sent = jnp.arange(14.0).reshape(7, 2)
    mask = jnp.asarray([True, True, False, True, False, False, False])
    seen = Messages(sent, jnp.where(mask[:, None], 2 * sent, jnp.nan), mask)
    found = messages.averaged(seen, 3)
    np.testing.assert_array_equal(found.count, [2, 0])
    np.testing.assert_array_equal(found.mask, [True, False])
    np.testing.assert_array_equal(found.sent, sent[1:].reshape(2, 3, 2))
    np.testing.assert_array_equal(found.share, [[0.5, 0, 0.5], [0, 0, 0]])
    np.testing.assert_array_equal(found.centre[0], (sent[1] + sent[3]) / 2)
    np.testing.assert_array_equal(found.delta[0], sent[1] + sent[3])
    assert np.isfinite(found.delta).all()
    same = messages.averaged(seen, 1)
    np.testing.assert_array_equal(same.sent[:, 0], sent)
    with pytest.raises(ValueError, match="run must be 1 to 7, got 8"):
        messages.averaged(seen, 8)


def test_the_last_model_sent_is_the_one_of_the_clients_last_round():
    sent = jnp.arange(8.0).reshape(4, 2)
    seen = Messages(sent, sent, jnp.asarray([True, False, True, False]))
    np.testing.assert_array_equal(messages.last_sent(seen), sent[2])
    nowhere = seen._replace(mask=jnp.zeros(4, bool))
    np.testing.assert_array_equal(messages.last_sent(nowhere), sent[0])
