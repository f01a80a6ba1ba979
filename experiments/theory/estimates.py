"""What the adversary makes of the messages: Algorithm 2, and the regression reversed."""

import jax
import jax.numpy as jnp
import numpy as np

from fljax.attacks.reconstruction import least_squares

_FLOAT32_RCOND = 1e-6  # messages carry the rounding of float32


def algorithm2(sent: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """Estimates `[points, seeds, d]` of the optimum by regressing models on deltas.

    Args:
      sent: models, `[points, seeds, R, d]` float64.
      delta: sent minus returned, likewise.
    """
    with jax.enable_x64(True):
        return np.asarray(_algorithm2(jnp.asarray(sent), jnp.asarray(delta)))


@jax.jit
def _algorithm2(sent, delta):
    def one(sent, delta):
        return least_squares.reconstruct_linear(sent, delta, rcond=_FLOAT32_RCOND)

    return jax.vmap(jax.vmap(one))(sent, delta).estimate


def forward(sent: np.ndarray, delta: np.ndarray) -> np.ndarray:
    """The same by regressing deltas on models, `delta = (sent - optimum) W^T + noise`.

    Solved for the model that would not move; shapes as in `algorithm2`.
    """
    mean_in, mean_out = sent.mean(2, keepdims=True), delta.mean(2, keepdims=True)
    slope = np.linalg.pinv(sent - mean_in) @ (delta - mean_out)
    step = np.linalg.solve(np.swapaxes(slope, -1, -2), mean_out[..., 0, :, None])
    return mean_in[..., 0, :] - step[..., 0]
