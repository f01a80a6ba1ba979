"""How much of what a message leaves unexplained an optimiser keeps."""

import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.trajectory import kept


def _shuffled(rows, batch, drop_last=False):
    steps = rows // batch if drop_last else -(-rows // batch)
    noise = kept.of_steps(jnp.asarray(rows), batch, steps, drop_last)
    return np.asarray(kept.gains(0.9, noise, 40))


@pytest.mark.slow
def test_gains_are_of_the_noise_that_a_state_keeps():
    one = kept.of_steps(jnp.asarray(24), 0, 1, False)
    np.testing.assert_allclose(kept.gains(0.9, one, 5), 1, rtol=1e-5)
    # A message of single batches shows the momentum; that of an epoch has nothing of it
    # left, unless its last batch is small.
    assert np.all(_shuffled(96, 32) == 0) and 0.2 < _shuffled(99, 32)[-1] < 0.4
    assert np.all(
        np.asarray(kept.gains(0.99, kept.of_steps(jnp.asarray(2), 1, 2, False), 9)) >= 0
    )
    independent = jnp.eye(3)
    assert kept.gains(0.9, independent, 40)[-1] > 0.3


def test_the_noise_of_batches_whose_last_is_dropped():
    rng, rows, batch = np.random.default_rng(0), 12, 5
    values = rng.normal(size=rows)
    order = np.argsort(rng.random((20000, rows)), axis=1)[:, :10]
    means = values[order].reshape(-1, 2, batch).mean(axis=2)
    ours = np.asarray(kept.of_steps(jnp.asarray(rows), batch, 4, True))
    np.testing.assert_allclose(
        np.cov(means.T), ours[:2, :2] * values.var(ddof=1), rtol=0.05
    )
    assert (ours[:2, 2:] == 0).all()  # epochs are drawn for themselves
    # What is left out of an epoch leaves noise in what its messages have.
    assert _shuffled(12, 5, drop_last=True)[-1] > _shuffled(10, 5)[-1] == 0


def test_what_is_left_of_shuffled_batches_is_no_more_of_earlier_rounds():
    rng, fade, gains = np.random.default_rng(0), 0.9, _shuffled(99, 32)
    rows = rng.normal(size=99)
    rows -= rows.mean()
    trace, ours, nothing, left = 0.0, [], [], 0.0
    for round_ in range(2000):
        change = 0.0
        for batch in np.split(rng.permutation(rows), (32, 64, 96)):
            trace = fade * trace + batch.mean()
            change += trace
        nothing.append(change)
        begun = sum(fade**k for k in range(1, 5))
        ours.append(change - begun * left)
        left = fade**4 * left + gains[min(round_, 39)] * ours[-1]
    assert np.var(ours) < 0.5 * np.var(nothing)
    alike = [np.corrcoef(each[1:], each[:-1])[0, 1] for each in (ours, nothing)]
    assert abs(alike[0]) < 0.1 and alike[1] > 0.5
