"""What a step of Adam is on average over batches: the expected quotient of its moments.

Adam divides the mean of a client's gradients by the root of the mean of their squares. Of
a gradient of mean `s` deviations of a batch's, expectations have the quotient
`s / sqrt(s^2 + 1)`. The expected quotient is another, for the root goes with what it
divides: at the first step it is that of the sign, `erf(s / sqrt 2)`; after an epoch of
shuffled batches, whose mean is that of all rows whatever their order, it is up to 1.8
times as large. It is written as

    s / sqrt(s^2 + v),    v = a + b exp(-s^2 / 3) + c / (1 + 1.5 s^2)

so that `v` is how often the variance counts. The three numbers of each step are fitted to
means over drawn epochs of normal gradients: to 0.02 of a step, and to 0.03 where an epoch
has two batches, for which expectations alone are off by up to 0.06 and 0.25. Of gradients
that are not normal, as those of a one-hot column that few batches meet, and where the last
batch of an epoch is much smaller than the others, neither is right.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

B1, B2, EPS = 0.9, 0.999, 1e-8  # as everywhere
_EPOCHS = (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30)  # batches of those that are drawn
MOST = _EPOCHS[-1]  # hardly other than noise that no epoch takes back
_STEPS = 60  # later ones are as the last of them
_DRAWS = 8000
_RATIOS = np.array([0.05, 0.15, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8])
_FAR = 90.0  # squared mean over the variance, of which a sign is certain


def table(steps: int, batches: int) -> np.ndarray:
    """`a`, `b` and `c` of each step of a client.

    Args:
      steps: K, from the beginning of a round.
      batches: of an epoch.

    Returns:
      `[K, 3]` float32.
    """
    nearest = min(_EPOCHS, key=lambda each: abs(np.log(each / max(batches, 1))))
    return _fitted(nearest)[np.minimum(np.arange(steps), _STEPS - 1)]


def counted(weights: jax.Array, mean: jax.Array, variance: jax.Array) -> jax.Array:
    """How often the variance counts, `v [P]`.

    Args:
      weights: `[3]` of the step.
      mean: `[P]` of the gradients.
      variance: `[P]` of a batch's.
    """
    far = jnp.square(mean) >= _FAR * variance
    ratio = jnp.square(jnp.where(far, 0, mean)) / jnp.where(far, 1, variance)
    near = weights[1] * jnp.exp(-ratio / 3) + weights[2] / (1 + 1.5 * ratio)
    return jnp.maximum(weights[0] + jnp.where(far, 0, near), 0)


@functools.lru_cache(maxsize=len(_EPOCHS))
def _fitted(batches: int) -> np.ndarray:
    """`[_STEPS, 3]`, by least squares of the quotients."""
    terms = np.stack(
        [np.ones_like(_RATIOS), np.exp(-(_RATIOS**2) / 3), 1 / (1 + 1.5 * _RATIOS**2)],
        axis=1,
    )
    found = []
    for quotient in _quotients(batches):
        wanted = _RATIOS**2 * (1 / np.minimum(quotient, 1) ** 2 - 1)
        slope = _RATIOS / 2 / (_RATIOS**2 + wanted) ** 1.5  # of the quotient by v
        fit = np.linalg.lstsq(terms * slope[:, None], wanted * slope, rcond=None)[0]
        found.append(fit)
    return np.array(found, np.float32)


def _quotients(batches: int):
    """Mean quotients `[_RATIOS]` after each of the steps, of normal gradients."""
    noise = _epochs(batches)
    first = second = np.zeros((len(_RATIOS), len(noise)))
    for number, each in enumerate(noise.T, 1):
        gradient = _RATIOS[:, None] + each
        first = B1 * first + (1 - B1) * gradient
        second = B2 * second + (1 - B2) * gradient**2
        power = second / (1 - B2**number)
        yield (first / (1 - B1**number) / np.sqrt(power)).mean(axis=1)


def _epochs(batches: int) -> np.ndarray:
    """`[_DRAWS, _STEPS]` deviations of batches from the mean of their epoch, both ways."""
    count = -(-_STEPS // batches)
    drawn = np.random.default_rng(0).normal(size=(_DRAWS // 2, count, batches))
    drawn -= drawn.mean(axis=2, keepdims=True)
    drawn *= np.sqrt(batches / (batches - 1))
    drawn = drawn.reshape(len(drawn), -1)[:, :_STEPS]
    return np.concatenate([drawn, -drawn])
