"""How close reconstructed examples are to the true ones: NumPy float64 on the host.

Attacks may not import this module: they never see the truth. Examples are compared as
they are, without clamping. Wei et al. 2021 call their distance a "root mean square
deviation", give the formula of the mean squared error, and compute the Euclidean norm
in their code: `rmse` and `mse` are what their names say.
"""

from collections.abc import Callable

import numpy as np
from scipy import ndimage, optimize

Distance = Callable[..., np.ndarray]
# (guess [..., B, *example], truth [B, *example]) -> [..., B], lower is closer


def mse(guess, truth) -> np.ndarray:
    """Mean squared error of each example.

    Args:
      guess: `[B, ...]`.
      truth: `[B, ...]`.

    Returns:
      `[B]` float64.
    """
    guess, truth = _pair(guess, truth)
    return np.square(guess - truth).reshape(len(truth), -1).mean(axis=1)


def rmse(guess, truth) -> np.ndarray:
    """Root of the mean squared error of each example, `[B]`."""
    return np.sqrt(mse(guess, truth))


def psnr(guess, truth, white: float = 1.0) -> np.ndarray:
    """Peak signal-to-noise ratio of each example.

    Args:
      guess: `[B, ...]`.
      truth: `[B, ...]`.
      white: the range of a number.

    Returns:
      `[B]` dB; infinite if they are equal.
    """
    with np.errstate(divide="ignore"):
        return 10 * np.log10(white**2 / mse(guess, truth))


def ssim(guess, truth, white: float = 1.0) -> np.ndarray:
    """Structural similarity of images; 1 is best.

    Wang et al. 2004: a Gaussian window of 11 x 11 pixels and deviation 1.5, K1 = 0.01,
    K2 = 0.03, mean over the positions where the window fits and over channels. In
    images below 11 pixels the window is cut to the largest odd size that fits.

    Args:
      guess: `[B, h, w, channels]`.
      truth: `[B, h, w, channels]`.
      white: the range of a pixel.

    Returns:
      `[B]` float64.

    Raises:
      ValueError: the shapes differ or are not those of images.
    """
    guess, truth = _pair(guess, truth)
    if guess.ndim != 4:
        raise ValueError(f"ssim: expected [B, h, w, channels], got {guess.shape}")
    side = min(11, *guess.shape[1:3])
    radius = (side - 1) // 2

    def smooth(images):
        for axis in (1, 2):
            images = ndimage.gaussian_filter1d(images, 1.5, axis=axis, radius=radius)
        inner = slice(radius, -radius or None)
        return images[:, inner, inner]

    first, second = smooth(guess), smooth(truth)
    c1, c2 = (0.01 * white) ** 2, (0.03 * white) ** 2
    power = smooth(guess**2) - first**2 + smooth(truth**2) - second**2
    common = smooth(guess * truth) - first * second
    similar = (2 * first * second + c1) * (2 * common + c2)
    similar = similar / ((first**2 + second**2 + c1) * (power + c2))
    return similar.reshape(len(truth), -1).mean(axis=1)


def assign(guess, truth) -> np.ndarray:
    """Which reconstruction stands for which example, by the least total squared error.

    Args:
      guess: `[B, ...]`, in any order.
      truth: `[B, ...]`.

    Returns:
      `[B]` int, so that `guess[assign(guess, truth)]` is in the order of `truth`. A
      reconstruction that is not finite is the last choice.
    """
    guess, truth = _pair(guess, truth)
    rows = [
        np.square(guess - one).reshape(len(guess), -1).mean(axis=1) for one in truth
    ]
    cost = np.nan_to_num(np.stack(rows), nan=1e30, posinf=1e30)
    return optimize.linear_sum_assignment(cost)[1]


def success(path, truth, threshold: float, distance: Distance = rmse) -> float:
    """First entry of a path whose every example is closer than a threshold.

    Args:
      path: `[I, B, ...]`, what the attacker would have shown after each iteration.
      truth: `[B, ...]`; the examples of every entry are matched to it in any order.
      threshold: of the distance.
      distance: `rmse` or `mse`.

    Returns:
      Its number, counted from 1; NaN if there is none.
    """
    for number, guess in enumerate(path, 1):
        matched = np.asarray(guess)[assign(guess, truth)]
        if (distance(matched, truth) < threshold).all():
            return float(number)
    return float("nan")


def _pair(guess, truth) -> tuple[np.ndarray, np.ndarray]:
    guess, truth = np.asarray(guess, np.float64), np.asarray(truth, np.float64)
    if guess.shape != truth.shape:
        raise ValueError(f"expected {truth.shape} examples, got {guess.shape}")
    return guess, truth
