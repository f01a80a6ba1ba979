"""How far a predicted label distribution is from the true one; NumPy float64.

For cross-entropy and KL a prediction is mixed with 1e-4 of the uniform distribution, so
that a rule which says 0 where there is a little is not infinitely wrong. The
cross-entropy is at least the entropy of the truth; KL is what is above it.
"""

from typing import NamedTuple

import numpy as np

from fljax import metrics

_MIX = 1e-4


class Attacked(NamedTuple):
    """What attacks predicted of `n` clients, beside the truth.

    Attributes:
      predicted: attack -> `[n, K]` label distributions.
      truth: `[n, K]`.
      alphas: `[n]` the concentration of each client.
    """

    predicted: dict[str, np.ndarray]
    truth: np.ndarray
    alphas: np.ndarray


class Score(NamedTuple):
    """One number over clients.

    Attributes:
      metric: as `each` names it.
      estimate: over clients.
    """

    metric: str
    estimate: metrics.Estimate


def each(predicted, truth) -> dict[str, np.ndarray]:
    """Metric -> `[n]`, of predicted and true distributions `[n, K]`."""
    predicted = np.asarray(predicted, np.float64)
    truth = np.asarray(truth, np.float64)
    num_labels = truth.shape[1]
    predicted = np.where(np.isfinite(predicted), predicted, 1 / num_labels)
    mixed = (1 - _MIX) * predicted + _MIX / num_labels
    cross = -np.sum(truth * np.log(mixed), axis=1)
    entropy = -np.sum(truth * np.log(np.where(truth > 0, truth, 1)), axis=1)
    named = np.take_along_axis(truth, predicted.argmax(axis=1)[:, None], axis=1)
    hits = named[:, 0] == truth.max(axis=1)  # of equally frequent labels any will do
    return {
        "total_variation": 0.5 * np.abs(predicted - truth).sum(axis=1),
        "cross_entropy": cross,
        "kl_divergence": cross - entropy,
        "dominant_label_percent": 100.0 * hits,
    }


def over_clients(predicted, truth) -> list[Score]:
    """Each metric's mean with its interval over clients."""
    return [
        Score(name, metrics.interval(values))
        for name, values in each(predicted, truth).items()
    ]
