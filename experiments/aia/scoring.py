"""Compares guesses with the truth: from predictions to rows of results.

With `oracle` this is all that uses the sensitive values as more than training rows.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from experiments.aia import errors, posteriors, result_rows
from experiments.aia.adversary import Attacked
from experiments.aia.errors import Imputed
from experiments.tabular import targets as targets_lib
from experiments.tabular.targets import Targets
from fljax import losses, metrics, verdicts
from fljax.attacks import attribute
from fljax.results import Labels, Row
from fljax.types import Batch, Params

ACCURACY = verdicts.ACCURACY.metric
BOUND = "aia_accuracy_bound_percent"


class Scoring(NamedTuple):
    """All that scores one point of a run.

    Attributes:
      labels: of its rows.
      targets: the truth.
      loss_fn: loss of one example.
      linear: whether the model is a linear regression.
      pooled: whether the targets are all clients' rows for everyone.
      imputed: a continuous attribute by imputation; None where that is not asked for.
    """

    labels: Labels
    targets: Targets
    loss_fn: losses.LossFn
    linear: bool
    pooled: bool
    imputed: Imputed | None = None


def rows(scored: Scoring, attacked: Attacked) -> list[Row]:
    """Scores of one attack, and the numbers that it gives itself."""
    prediction, labels = attacked.prediction, scored.labels
    targets = targets_lib.only(scored.targets, attacked.clients)
    about, details = (labels, attacked.name, prediction.setting), prediction.details
    found = []
    if prediction.value is not None and targets.continuous:
        found += errors.rows(*about, prediction.value, targets, scored.imputed)
    elif prediction.value is not None:
        found += guesses(*about, prediction.value, targets)
    binary = not targets.continuous and targets.candidates.shape[1] == 2
    if "params" in details and scored.linear and binary:
        found += _bounds(scored, about, details["params"], targets)
    if "probability" in details:
        found += posteriors.rows(*about, details["probability"], targets)
    if "alternatives" in details:
        found += _oracle(labels, attacked, targets)
    for metric, values in prediction.diagnostics.items():
        found += result_rows.by_client(*about, metric, values, targets)
    return found


def guesses(
    labels: Labels, attack: str, setting: str, guess: np.ndarray, targets: Targets
) -> list[Row]:
    """Rows of one attack from values `guess [seeds, C, n]` of a category.

    Of columns that are inferred together all must be right; each has rows of its own, too.
    """
    values = _each_client(metrics.accuracy, guess, targets)
    about = labels, attack, setting
    found = result_rows.by_client(*about, ACCURACY, 100 * values, targets)
    for column, number in targets.parts.items():
        own = np.where(guess < 0, -1, number[guess])
        values = _each_client(
            metrics.accuracy, own, targets._replace(value=number[targets.value])
        )
        metric = f"accuracy_of_{column}_percent"
        found += result_rows.by_client(*about, metric, 100 * values, targets)
    return found


def _each_client(measure: Callable, guess: np.ndarray, targets: Targets) -> np.ndarray:
    """`measure(guess, truth, mask)` of every client, `[seeds, C]`."""
    return np.array(
        [[measure(*one) for one in zip(*seed, strict=True)]
         for seed in zip(guess, targets.value, targets.mask, strict=True)]
    )  # fmt: skip


def _oracle(labels: Labels, attacked: Attacked, targets: Targets) -> list[Row]:
    """The best of an attack's settings, chosen with the truth: an oracle, no attack.

    As in the authors' code one is chosen for all clients, on their mean weighted by rows.
    """
    prediction = attacked.prediction
    hits = prediction.details["alternatives"] == targets.value[:, :, None, :]
    mask = targets.mask[:, :, None, :]
    accuracy = (hits & mask).sum(-1) / np.maximum(mask.sum(-1), 1)  # [seeds, C, S]
    weights = targets.weights[..., None]
    mean = (weights * accuracy).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    best = mean.argmax(axis=1)
    values = np.take_along_axis(accuracy, best[:, None, None], axis=2)[..., 0]
    name, setting = f"{attacked.name}_oracle", prediction.setting
    return result_rows.by_client(labels, name, setting, ACCURACY, 100 * values, targets)


def better(
    rows: Sequence[Row], attack: str, one: tuple[str, str], other: tuple[str, str]
) -> list[Row]:
    """Seed by seed the more accurate of two attacks, as rows of another name.

    Args:
      rows: of one point.
      attack: the new name; the setting is that of `one`.
      one: attack and setting.
      other: attack and setting.
    """
    found: dict[int, dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        if row.metric == ACCURACY and (row.attack, row.setting) in (one, other):
            both = found.setdefault(row.seed, {})
            both.setdefault((row.attack, row.setting), []).append(row)

    def mean(each: list[Row]) -> float:
        return next(row.value for row in each if row.client == "all")

    return [
        row._replace(attack=attack, setting=one[1])
        for both in found.values()
        for row in max(both.values(), key=mean)
    ]


def _bounds(scored: Scoring, about: tuple, params: Params, targets: Targets):
    """Proposition 1 beside a result for a binary attribute and a linear regression."""
    (layer,) = params.values()
    # The sensitive column is the last numeric one.
    last = targets.known.public.numeric.shape[-1]
    weight = np.asarray(layer["kernel"])[..., last, 0]
    gap = targets.candidates[:, 1] - targets.candidates[:, 0]
    bound = attribute.least_squares_bound(
        mean_loss(scored, params), weight, np.broadcast_to(gap, weight.shape)
    )
    return result_rows.by_client(*about, BOUND, 100 * np.asarray(bound), targets)


def mean_loss(scored: Scoring, params: Params) -> np.ndarray:
    """Loss `[seeds, C]` of models `[seeds, C, ...]` on their clients' true rows."""
    targets = scored.targets
    if targets.continuous:
        block = targets.value[..., None]
    else:
        pairs = zip(targets.candidates, targets.value, strict=True)
        block = np.stack([values[index] for values, index in pairs])
    return np.asarray(_mean_losses(scored.loss_fn, params, targets.known, block))


@functools.partial(jax.jit, static_argnums=0)  # here, so that it compiles once
def _mean_losses(loss_fn, params, known, block):
    def one(item):
        params, known, block = item
        batch = Batch(attribute.complete(known.public, block), known.y, known.mask)
        return losses.batch_loss(loss_fn, params, batch)

    return jax.lax.map(lambda seed: jax.lax.map(one, seed), (params, known, block))
