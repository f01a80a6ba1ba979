"""How close the attacks came: the only place where truth and reconstruction meet."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from experiments.gradient_leakage.settings import Config
from experiments.gradient_leakage.truth import Truth
from fljax import image_metrics, metrics
from fljax.attacks.inversion import Inversion, seeds
from fljax.attacks.inversion.gaussian import Gaussian

SUCCESS = "attack_success"
DISTANCE = "reconstruction_distance"
CUT = "distance_cut_to_range"
READ = "distance_where_read"
SSIM = "ssim"
LABEL = "label_accuracy"
ITERATIONS = "attack_iterations"
ITERATIONS_RUN = "iterations_run"
OF_ONE = "_of_one"  # end of a baseline's name, of one image where others are of several
_SEEDS = {
    "cpl": seeds.patterned,
    "dlg": seeds.gaussian,
    "inverting_gradients": seeds.gaussian,
}
_SEED_KEY = 3


class Score(NamedTuple):
    """Of one client.

    Attributes:
      values: metric -> number, a mean over the images; distances are RMSE.
      x: `[N, h, w, channels]` reconstructions in the order of the truth.
      path: `[I, h, w, channels]` the search for the first image, iteration by
        iteration.
    """

    values: dict[str, float]
    x: np.ndarray
    path: np.ndarray


def score(
    run: Config, found: Inversion, x: np.ndarray, y: np.ndarray, read: np.ndarray
) -> Score:
    """Compares a reconstruction with the truth.

    Success, and after how many iterations, is by the whole search: it counts if what the
    attacker had at any time was close enough. Every other number is of what it ended with.
    A search without success counts as all iterations, however soon it gave up; those that
    were run are there, too. Labels are compared as a whole, whatever image each is of.

    Args:
      run: whose threshold of success it is.
      found: NumPy leaves.
      x: `[N, h, w, channels]`.
      y: `[N]`.
      read: `[h, w, channels]` bool, pixels that the network reads.
    """
    order = image_metrics.assign(found.x, x)
    guess = found.x[order]
    labels = Counter(found.y.tolist()) & Counter(y.tolist())
    first = image_metrics.success(found.path, x, run.success_rmse)
    reached = min(first * run.record_every, run.iterations)  # NaN for never
    never = np.isnan(first)
    values = {
        SUCCESS: float(not never),
        **{name: each.mean() for name, each in _measures(guess, x, read).items()},
        ITERATIONS: run.iterations if never else reached,
        ITERATIONS_RUN: found.iterations,
        LABEL: labels.total() / len(y),
        "matching_loss": found.loss,
    }
    numbers = {name: float(value) for name, value in values.items()}
    return Score(numbers, guess, found.path[:, order[0]])


def baselines(
    run: Config,
    truth: Truth,
    mean_image: np.ndarray,
    read: np.ndarray,
    public: Gaussian | None = None,
) -> dict[str, dict[str, np.ndarray]]:
    """What needs no message -> metric -> `[C]`: the level of chance.

    The image with which a search begins, the mean of other images, and of labels the
    most frequent one of all attacked images. Of labels of several images that are sought
    together, those that are right most often, which are hardly all the same:
    `frequent_classes`; and the images with which their search begins as an attack's are
    scored, in the order that is nearest to the truth: `seed_images`. No number of
    iterations has such a level.

    Args:
      run: whose attack and threshold of success it is.
      truth: of the clients that are attacked, the images that are sought.
      mean_image: `[h, w, channels]` mean of images that no client has.
      read: `[h, w, channels]` bool, pixels that the network reads.
      public: the prior from which the search starts, if it has one.
    """
    count, *shape = truth.x.shape
    labels = truth.y == np.bincount(truth.y.ravel()).argmax()

    def flat(images):
        return images.reshape(-1, *shape[1:])

    def of_each(guesses):
        measured = _measures(flat(guesses), flat(truth.x), read)
        found = {name: each.reshape(count, -1) for name, each in measured.items()}
        success = (found[DISTANCE] < run.success_rmse).all(axis=1)
        means = {name: each.mean(axis=1) for name, each in found.items()}
        return {SUCCESS: success.astype(float), **means}

    begun = _begun(run, truth.x.shape, public)
    levels = {
        "seed_image": of_each(begun),
        "mean_image": of_each(np.broadcast_to(mean_image, truth.x.shape)),
        "majority_class": {LABEL: labels.mean(axis=1)},
    }
    if truth.y.shape[1] > 1:
        levels["frequent_classes"] = {LABEL: _frequent(truth.y)}
        pairs = zip(begun, truth.x, strict=True)
        nearest = [guess[image_metrics.assign(guess, x)] for guess, x in pairs]
        levels["seed_images"] = of_each(np.stack(nearest))
    return levels


def _begun(run: Config, shape: tuple[int, ...], public: Gaussian | None) -> np.ndarray:
    """Images `[C, N, h, w, channels]` with which searches of each client begin."""
    draw = _SEEDS[run.attack] if public is None else public.draw
    key = jax.random.fold_in(jax.random.key(run.seed), _SEED_KEY)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, np.arange(shape[0]))
    return np.asarray(jax.vmap(lambda key: draw(key, shape[1:]))(keys))


def _frequent(y: np.ndarray) -> np.ndarray:
    """How much of each client's labels `[C, N]` the best constant guess has, `[C]`."""
    counts = (y[..., None] == np.arange(y.max() + 1)).sum(axis=1)
    guess = np.zeros(counts.shape[1], int)
    for _ in range(y.shape[1]):
        guess[(counts > guess).mean(axis=0).argmax()] += 1
    return np.minimum(counts, guess).sum(axis=1) / y.shape[1]


def _measures(guess, truth, read: np.ndarray) -> dict[str, np.ndarray]:
    """Metric -> `[B]` of images `[B, h, w, channels]` beside the true ones."""
    cut = np.clip(guess, 0, 1)  # as anyone would who knows the range of a pixel
    return {
        DISTANCE: image_metrics.rmse(guess, truth),
        CUT: image_metrics.rmse(cut, truth),
        READ: image_metrics.rmse(cut[:, read], truth[:, read]),
        "mse": image_metrics.mse(guess, truth),
        "psnr_db": image_metrics.psnr(guess, truth),
        SSIM: image_metrics.ssim(guess, truth),
    }


def over_clients(metric: str, values: Sequence[float]) -> metrics.Estimate:
    """Mean over clients with its 95 % interval, of a share by Wilson, as everywhere."""
    found = metrics.interval(values)
    if metric != SUCCESS:
        return found
    low, high = metrics.of_rows(100 * found.mean, len(values))
    return found._replace(low=low / 100, high=high / 100)
