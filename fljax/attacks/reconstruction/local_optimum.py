"""`reconstruct`: Algorithm 2, a least-squares client's own optimum, and equation 3 with it.

Runs in float64, message by message as it travelled.
"""

import functools
from typing import NamedTuple

import jax
import numpy as np

from fljax.attacks import streams
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.attribute import last_model
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.reconstruction import least_squares
from fljax.attacks.reconstruction.least_squares import Reconstruction
from fljax.attacks.spec import AttackSpec
from fljax.transcript import views
from fljax.types import Params


class Settings(NamedTuple):
    """Which of the paper's variants beside the regression on all messages.

    Attributes:
      messages: of each client, its first ones; None for all of its own.
      subset_trials: random sets of messages of which the best conditioned one gives
        `reconstruct_subset`; 0 leaves that out.
      subset_rounds: the messages of that set, instead of a search.
    """

    messages: int | None = None
    subset_trials: int = 0
    subset_rounds: tuple[int, ...] = ()


def run(view: AdversaryView, settings: Settings) -> Estimates:
    """Predictions of the regression and, where it is asked for, of the subset.

    `details["params"]` are the models, leaves `[C, ...]`; `details["optima"]` has the
    `least_squares.Reconstruction` of each client.
    """
    found = {"reconstruct": optima(view, settings)}
    if settings.subset_trials or settings.subset_rounds:
        found["reconstruct_subset"] = subset_optima(view, settings)
    return {name: _prediction(view, each) for name, each in found.items()}


def optima(view: AdversaryView, settings: Settings) -> list[Reconstruction]:
    """The regression on all messages of each client."""
    least = _rcond(view)
    with jax.enable_x64():
        return [
            jax.tree.map(np.asarray, _regression(*each, least))
            for each in _flat(view, settings.messages)
        ]


def _rcond(view: AdversaryView) -> float | None:
    """Messages that travelled as float32 carry its rounding."""
    assert view.transcript is not None
    leaves = jax.tree.leaves((view.transcript.params, view.transcript.delta))
    double = all(leaf.dtype == np.float64 for leaf in leaves)
    return None if double else 1e-6


def subset_optima(view: AdversaryView, settings: Settings) -> list[Reconstruction]:
    """The authors' variant: one square system of each client, chosen or searched for."""
    chosen = list(settings.subset_rounds)
    trials = 1 if chosen else settings.subset_trials
    found, least = [], _rcond(view)
    with jax.enable_x64():
        for client, (sent, delta) in zip(
            view.clients, _flat(view, settings.messages), strict=True
        ):
            if chosen:
                sent, delta = sent[chosen], delta[chosen]
            stream = streams.key(view.seed, streams.SUBSET, int(client))
            each = _subset(stream, sent, delta, trials, least)
            found.append(jax.tree.map(np.asarray, each))
    return found


def _prediction(view: AdversaryView, found: list[Reconstruction]) -> Prediction:
    params = _params(view, np.stack([each.estimate for each in found]))
    diagnostics = {
        "rank": np.array([float(each.rank) for each in found]),
        "determined": np.array([float(each.determined) for each in found]),
    }
    value = last_model.with_models(view, params)
    return Prediction(value, diagnostics, {"params": params, "optima": found})


def _flat(view: AdversaryView, number: int | None):
    """Sent and delta `[Q, P]` of each client in float64."""
    assert view.transcript is not None and view.messages is not None
    for client, count in enumerate(np.asarray(view.messages.count)):
        mine = view.messages.of(client)
        places = views.first(mine, int(count if number is None else number))
        yield views.flat(view.transcript, places)


def _params(view: AdversaryView, flat: np.ndarray) -> Params:
    """Models, leaves `[C, ...]` in float32, from flat ones `[C, P]`."""
    assert view.transcript is not None
    leaves, treedef = jax.tree.flatten(view.transcript.params)
    shapes = [leaf.shape[1:] for leaf in leaves]
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    parts = np.split(np.asarray(flat, np.float32), cuts, axis=1)
    return treedef.unflatten(
        [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]
    )


@functools.partial(jax.jit, static_argnums=2)
def _regression(sent, delta, rcond):
    return least_squares.reconstruct_linear(sent, delta, rcond=rcond)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _subset(key, sent, delta, trials, rcond):
    return least_squares.reconstruct_linear_subset(
        key, sent, delta, num_trials=trials, rcond=rcond
    )


SPEC = AttackSpec(
    "reconstruct",
    Needs(linear=True, task="regression", more_messages_than_parameters=True),
    run,
    Settings(),
)
