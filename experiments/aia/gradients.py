"""Gradient-based attack of a whole run: one setting for all clients, as in the paper.

With the active server it also runs on the messages of isolated clients; what is then
reported after k attacked rounds is the best of the passive settings and of those active
ones that need no more than k rounds (Diana et al., appendix B.5).

Divergence: the authors' code tries the first 1, 3, 5, 10, 25 and 49 isolated rounds, the
paper, followed here, 1, 2, 5, 10, 25 and 50.
"""

from typing import NamedTuple

import jax
import numpy as np

from experiments.aia.active_config import ActiveConfig
from experiments.aia.adversary import (
    Adversary,
    Attacked,
    Isolated,
    each_seed,
    of_seeds,
)
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.attribute import gradient_grid
from fljax.attacks.attribute.gradient_grid import Grid
from fljax.attacks.estimates import Prediction
from fljax.transcript import views


class _Outcomes(NamedTuple):
    """Of `F` numbers of messages and `L` learning rates.

    Attributes:
      index: `[seeds, C, F, L, n]` int16 inferred candidates.
      dissimilarity: `[seeds, C, F, L]`.
      rounds: `[F]` messages used.
      isolated: `[F]` whether they are those of isolated clients.
    """

    index: np.ndarray
    dissimilarity: np.ndarray
    rounds: np.ndarray
    isolated: np.ndarray


def run(adversary: Adversary, settings: gradient_grid.Settings) -> list[Attacked]:
    """With the messages of the training."""
    found = _outcomes(_grids(adversary, "gradient attack, seeds", settings))
    everything = np.ones(len(found.rounds), bool)
    sent = adversary.messages.has_messages
    return [_best(adversary, found, everything, sent, "passive")]


def run_active(
    adversary: Adversary,
    settings: gradient_grid.Settings,
    isolated: Isolated,
    config: ActiveConfig,
) -> list[Attacked]:
    """With the messages of the training, and with those of isolated clients, too."""
    passive = _grids(adversary, "gradient attack, seeds", settings)
    alone = adversary._replace(views=_isolated(adversary, isolated))
    more = settings._replace(rounds=config.grad_rounds)
    active = _grids(alone, "gradient attack, isolated, seeds", more)
    found = _outcomes(passive, active)
    sent, front = adversary.messages, isolated.front
    source = found.isolated
    results = [_best(adversary, found, ~source, sent.has_messages, "passive")]
    rounds = np.asarray(adversary.transcript.round)
    early = views.before(sent, rounds, front.first).count
    used = np.minimum(found.rounds[:, None, None], sent.count)
    before = ((used <= early) | ~front.has_messages).all(axis=(1, 2))
    for number in sorted(set(config.report)):
        allowed = np.where(source, found.rounds <= number, before)
        if allowed.any():
            setting = f"active_{number}"
            results.append(
                _best(adversary, found, allowed, front.has_messages, setting)
            )
    return results


def _isolated(adversary: Adversary, isolated: Isolated) -> list[AdversaryView]:
    """Each view with the messages of isolated clients in place of the training's."""
    alone = []
    number = jax.tree.leaves(isolated.exchange.params)[0].shape[2]
    for view, exchange in zip(
        adversary.views, of_seeds(isolated.exchange), strict=True
    ):
        every = np.full(len(view.clients), number)
        seen, messages = views.apart(exchange, every)
        alone.append(view._replace(transcript=seen, messages=messages))
    return alone


def _grids(adversary: Adversary, title: str, settings: gradient_grid.Settings) -> Grid:
    grids = each_seed(adversary, title, lambda view: gradient_grid.grid(view, settings))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *grids)


def _outcomes(*grids: Grid) -> _Outcomes:
    """Passive ones first."""
    rounds = [grid.rounds[0] for grid in grids]
    return _Outcomes(
        np.concatenate([grid.index for grid in grids], axis=2),
        np.concatenate([grid.dissimilarity for grid in grids], axis=2),
        np.concatenate(rounds),
        np.repeat(np.arange(len(grids)) == 1, [len(each) for each in rounds]),
    )


def _best(
    adversary: Adversary,
    found: _Outcomes,
    allowed: np.ndarray,
    clients: np.ndarray,
    setting: str,
) -> Attacked:
    """The most similar of the settings that are `allowed [F]`.

    As in the authors' code one setting is chosen for all clients, on their mean
    weighted by rows.
    """
    sizes = np.stack([view.sizes for view in adversary.views])
    weights = (sizes * clients)[..., None, None]
    distance = np.where(weights > 0, found.dissimilarity[:, :, allowed], 0)
    mean = (weights * distance).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    cost = np.where(np.isnan(mean), np.inf, mean).reshape(len(mean), -1)
    best = cost.argmin(axis=1)
    index = found.index[:, :, allowed]
    index = index.reshape(*index.shape[:2], -1, index.shape[-1])  # [seeds, C, S, n]
    value = np.take_along_axis(index, best[:, None, None, None], axis=2)[:, :, 0]
    prediction = Prediction(value, {}, {"alternatives": index}, setting)
    return Attacked("grad", prediction, clients)
