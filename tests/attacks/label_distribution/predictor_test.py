"""What a predictor says of principal components."""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks.label_distribution import predictor


def test_of_what_is_no_number_every_label_is_as_probable():
    drawn = jax.random.normal(jax.random.key(1), (20, 2))
    labels = jnp.full((20, 4), 0.25).at[:, 0].set(0.5) / 1.25
    settings = predictor.Settings(hidden=(4,), epochs=1)
    params = predictor.fit(jax.random.key(0), drawn, labels, settings)
    found = np.asarray(predictor.predict(params, drawn.at[0].set(jnp.nan)))
    np.testing.assert_array_equal(found[0], 0.25)
    np.testing.assert_allclose(found[1:].sum(axis=1), 1, rtol=1e-5)
    assert np.all(found[1:] != 0.25)
