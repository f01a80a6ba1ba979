"""A normal distribution of images as a prior: what public images tell of private ones.

Fitted by probabilistic PCA (Tipping and Bishop, 1999): the main directions in which images
differ have variances of their own, all others one. Beside a message with normal noise of
variance `v` in each entry, the examples of the largest posterior density minimise

    |simulated - observed|^2 + v (x - mean)^T covariance^-1 (x - mean),

whose second term is a sum of squares, too, so that a least-squares solver sees it whole.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from fljax.types import Array, Key

_MOST = 300  # directions
_LEAST_VARIANCE = 1e-6  # of a pixel in [0, 1]: a quarter of a grey level


class Gaussian(NamedTuple):
    """Images of `P` pixels around a mean, independent of each other.

    Attributes:
      mean: `[h, w, channels]`.
      components: `[K, P]` orthonormal directions.
      deviations: `[K]` along them.
      rest: [] deviation in every other direction.
      weight: [] variance of the noise in an entry of the message; 0 is no prior.
    """

    mean: Array
    components: Array
    deviations: Array
    rest: Array
    weight: Array = np.asarray(1, np.float32)

    @classmethod
    def fit(cls, images: Array) -> Self:
        """Of `images` `[n, h, w, channels]`, a direction for every four of them.

        Raises:
          ValueError: there are fewer than three images.
        """
        from sklearn.decomposition import PCA  # slow import

        count, *shape = images.shape
        if count < 3:
            raise ValueError(f"images: expected three or more to fit, got {count}")
        flat = np.asarray(images, np.float32).reshape(count, -1)
        others = flat.shape[1] - min(count // 4 + 1, flat.shape[1] - 1, _MOST)
        found = PCA(flat.shape[1] - others, random_state=0).fit(flat)
        variances = np.maximum(found.explained_variance_, _LEAST_VARIANCE)
        # PCA's own is a mean over as many directions as there are images.
        left = flat.var(axis=0, ddof=1).sum() - found.explained_variance_.sum()
        return cls(
            found.mean_.reshape(shape).astype(np.float32),
            np.asarray(found.components_, np.float32),
            np.sqrt(variances).astype(np.float32),
            np.asarray(max(left / others, _LEAST_VARIANCE) ** 0.5, np.float32),
        )

    def draw(self, key: Key, shape: Sequence[int]) -> jax.Array:
        """Images `[B, h, w, channels]`, a `seeds.Seed`; consumes the key."""
        main, other = jax.random.split(key)
        along = jax.random.normal(main, (shape[0], len(self.deviations)))
        away = self.rest * jax.random.normal(other, (shape[0], self.mean.size))
        missing = self.deviations[None] * along - away @ self.components.T
        return jnp.add(
            self.mean[None],
            (away + missing @ self.components).reshape(tuple(shape)),
        )

    def residuals(self, x: Array) -> jax.Array:
        """`[B, P]` of images `[B, h, w, channels]`, whose squares add up to the prior."""
        away = (x - self.mean[None]).reshape(len(x), -1)
        gain = 1 / self.deviations - 1 / self.rest
        main = (gain[None] * (away @ self.components.T)) @ self.components
        return jnp.sqrt(self.weight) * (away / self.rest + main)

    def __call__(self, x: Array) -> jax.Array:
        """[] what is added to the distance."""
        return jnp.sum(jnp.square(self.residuals(x)))
