"""How close the attacks came: the only place where truth and reconstruction meet."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from scipy import stats

from experiments.gradient_leakage.settings import Config
from experiments.gradient_leakage.victims import Victims
from fljax import image_metrics, metrics
from fljax.attacks.inversion import Inversion, seeds

SUCCESS = "attack_success"
DISTANCE = "reconstruction_distance"
CUT = "distance_cut_to_range"
READ = "distance_where_read"
ITERATIONS = "attack_iterations"
_SEEDS = {
    "cpl": seeds.patterned,
    "dlg": seeds.gaussian,
    "inverting_gradients": seeds.gaussian,
}
_SEED_KEY = 3


class Score(NamedTuple):
    """Of one client.

    Attributes:
      values: metric -> number, a mean over her images; distances are RMSE.
      x: `[N, h, w, channels]` reconstructions in the order of the truth.
      path: `[I, h, w, channels]` what was shown of her first image.
    """

    values: dict[str, float]
    x: np.ndarray
    path: np.ndarray


def score(
    run: Config, found: Inversion, x: np.ndarray, y: np.ndarray, read: np.ndarray
) -> Score:
    """Compares a reconstruction with the truth.

    Args:
      run: whose threshold of success it is.
      found: NumPy leaves.
      x: `[N, h, w, channels]`.
      y: `[N]`.
      read: `[h, w, channels]` bool, pixels that the network reads.
    """
    order = image_metrics.assign(found.x, x)
    guess, labels = found.x[order], found.y[order]
    first = image_metrics.success(found.path, x, run.success_rmse)
    reached = min(first * run.record_every, run.iterations)  # NaN for never
    never = np.isnan(first)
    values = {
        SUCCESS: float(not never),
        DISTANCE: image_metrics.rmse(guess, x).mean(),
        CUT: image_metrics.rmse(_cut(guess), x).mean(),
        READ: np.sqrt(np.mean((_cut(guess) - x)[:, read] ** 2, axis=1)).mean(),
        "mse": image_metrics.mse(guess, x).mean(),
        "psnr_db": image_metrics.psnr(guess, x).mean(),
        "ssim": image_metrics.ssim(guess, x).mean(),
        ITERATIONS: run.iterations if never else reached,
        "label_accuracy": (labels == y).mean(),
        "matching_loss": found.loss,
    }
    numbers = {name: float(value) for name, value in values.items()}
    return Score(numbers, guess, found.path[:, order[0]])


def baselines(run: Config, victims: Victims) -> dict[str, dict[str, np.ndarray]]:
    """Image that needs no message -> metric -> `[C]`: what chance reaches."""
    shape = victims.x.shape[1:]
    starts = []
    for client in range(len(victims.x)):
        key = jax.random.fold_in(jax.random.key(run.seed), _SEED_KEY)
        start = _SEEDS[run.attack](jax.random.fold_in(key, client), shape)
        starts.append(np.asarray(start))
    guesses = {
        "seed_image": starts,
        "mean_image": [np.broadcast_to(victims.mean, shape)] * len(victims.x),
    }
    measures = {
        DISTANCE: image_metrics.rmse,
        "mse": image_metrics.mse,
        "psnr_db": image_metrics.psnr,
        "ssim": image_metrics.ssim,
    }
    return {
        name: {
            metric: np.array([measure(g, x).mean() for g, x in zip(guess, victims.x)])
            for metric, measure in measures.items()
        }
        for name, guess in guesses.items()
    }


def _cut(images: np.ndarray) -> np.ndarray:
    """As anyone would show it who knows the range of a pixel."""
    return np.clip(images, 0, 1)


def over_clients(metric: str, values: Sequence[float]) -> metrics.Estimate:
    """Mean over clients with its 95 % interval, of a share by Clopper and Pearson."""
    found = metrics.interval(values)
    if metric != SUCCESS:
        return found
    ends = stats.binomtest(round(sum(values)), len(values)).proportion_ci()
    return found._replace(low=float(ends.low), high=float(ends.high))
