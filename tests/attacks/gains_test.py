"""How much of what a message leaves unexplained an optimiser keeps."""

import jax.numpy as jnp
import numpy as np

from fljax.attacks.trajectory import kept


def _shuffled(rows, batch):
    steps = -(-rows // batch)
    noise = kept.of_steps(jnp.asarray(rows), batch, steps, False)
    return np.asarray(kept.gains(0.9, noise, 40))


def test_gains_are_of_the_noise_that_a_state_keeps():
    one = kept.of_steps(jnp.asarray(24), 0, 1, False)
    np.testing.assert_allclose(kept.gains(0.9, one, 5), 1, rtol=1e-5)
    # A message of single batches shows the momentum; that of an epoch has nothing of it
    # left, unless its last batch is small.
    assert np.all(_shuffled(96, 32) == 0) and 0.2 < _shuffled(99, 32)[-1] < 0.4
    assert np.all(
        np.asarray(kept.gains(0.99, kept.of_steps(jnp.asarray(2), 1, 2, False), 9)) >= 0
    )
    independent = kept.of_steps(jnp.asarray(96), 32, 3, True)
    assert kept.gains(0.9, independent, 40)[-1] > 0.3


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
