"""Principal components of a stream of messages."""

import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks.label_distribution import pca


def _spans(first, second):
    """Whether rows span the same space: cosines of all principal angles."""
    return np.linalg.svd(np.asarray(first) @ np.asarray(second).T, compute_uv=False)


def _messages(count=60, size=200, seed=0):
    rng = np.random.default_rng(seed)
    spread = 10.0 ** -np.linspace(0, 6, count)
    left = np.linalg.qr(rng.normal(size=(count, count)))[0]
    right = np.linalg.qr(rng.normal(size=(size, count)))[0]
    return np.float32(1e-4 * ((left * spread) @ right.T + rng.normal(size=size)))


def _streamed(messages, chunk, kept, components=5):
    sketch = pca.start(kept, messages.shape[1])
    for begin in range(0, len(messages), chunk):
        sketch = pca.update(sketch, jnp.asarray(messages[begin : begin + chunk]))
    return pca.basis(sketch, components)


def _exact(messages, components=5):
    centred = np.float64(messages) - np.float64(messages).mean(0)
    _, singular, right = np.linalg.svd(centred, full_matrices=False)
    deviation = singular[:components] / np.sqrt(len(messages) - 1)
    return messages.mean(0), right[:components], deviation


@pytest.mark.parametrize("kept", [60, 20], ids=["nothing is cut", "cut"])
@pytest.mark.parametrize("chunk", [1, 7, 30, 60])
def test_streamed_components_are_the_exact_ones(kept, chunk):
    messages = _messages()
    found = _streamed(messages, chunk, kept)
    mean, directions, deviation = _exact(messages)
    np.testing.assert_allclose(found.mean, mean, atol=1e-9)
    np.testing.assert_allclose(found.deviation, deviation, rtol=1e-3)
    assert _spans(found.directions, directions).min() > 1 - 1e-5
    gram = np.asarray(found.directions @ found.directions.T)
    np.testing.assert_allclose(gram, np.eye(5), atol=1e-3)


def test_components_along_which_nothing_varies_are_zero():
    messages = np.outer([1.0, 2, 4], np.ones(8)).astype(np.float32)
    found = pca.fit(messages, 3)
    assert found.deviation[1:].tolist() == [0, 0]
    along = np.asarray(pca.project(found, jnp.asarray(messages)))
    assert np.var(along, axis=0, ddof=1).mean() == pytest.approx(1, rel=1e-5)
    assert not along[:, 1:].any()


def test_more_components_than_are_held_are_refused():
    with pytest.raises(ValueError, match="components must be in 1 to 4, got 5"):
        pca.basis(pca.start(4, 8), 5)
