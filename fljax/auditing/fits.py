"""How well models and messages fit the true rows: scores' side, where the truth is known.

An attack that fails may have been told wrong rows, or another training than there was. So
messages are compared with what the true rows would have sent (`fljax.attacks.trajectory`,
whose simulation has nothing left to guess then): the *misfit* is about 1, or less, if all
is right, however short of that an attack's search stops. Where it is not, some usual slips are
tried: what fits with one of them was probably recorded or declared so.
"""

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize, special

from fljax import fit, losses
from fljax.attacks import attribute, needs
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.attacks.trajectory import FITS, clients, effort
from fljax.auditing import declared_noise, undeclared
from fljax.auditing.truth import Truth
from fljax.transcript import views
from fljax.types import Array, Batch, ElementLossFn

_CLEARLY = 0.5  # of the misfit with other targets, where what is supposed fits
_MESSAGES = 60  # of each client, evenly spread, tell enough
LEAST_MESSAGES = 3  # from which noise is told from what is none
_FACTORS = (0.1, 0.2, 0.25, 1 / 3, 0.5, 2, 3, 4, 5, 10)  # of rate times steps
# Where gradients were declared, and clients step with a rate of their own.
_RATES = tuple(m * 10.0**-e for e in range(1, 5) for m in (1, 2, 3, 5))


class Fit(NamedTuple):
    """How well the audited rows, the messages and the declared training fit.

    Attributes:
      explained: `[C]` percent of the variation of each client's targets that the last
        models explain; NaN where nobody knows.
      misfit: `[C]` of the messages with the true rows, infinite for NaN; None where
        the training is not known or cannot be simulated, or messages are too few.
      slip: what would make them fit, in words; empty if nothing that was tried does.
      lacking: that messages have less noise than was declared (`declared_noise`), so that
        a misfit is understated; empty where they have it.
      unlike: what messages show of another training than the declared one (`undeclared`),
        which may pass for noise; empty where they show nothing.
    """

    explained: np.ndarray
    misfit: np.ndarray | None = None
    slip: str = ""
    lacking: str = ""
    unlike: str = ""

    @property
    def contradicted(self) -> str:
        """Why messages may tell more than is shown, however small the misfit."""
        return self.lacking or self.unlike


def of_rows(
    view: AdversaryView, truth: Truth, settings: clients.Settings, most_steps: int
) -> Fit:
    """Compares the messages with the true rows.

    Args:
      view: of the audited rows.
      truth: about them.
      settings: of the simulation.
      most_steps: that are simulated of a message.
    """
    rows, limits = knowing_the_truth(view, truth.sensitive), (settings, most_steps)
    lacking, unlike = declared_noise.lacking(view), undeclared.found(view)
    found = _misfit(rows, *limits) if _tells(rows) else None
    plain = Fit(explained(rows), found, lacking=lacking, unlike=unlike)
    if found is None or (np.median(found) <= FITS and not lacking):
        return plain
    slips = itertools.islice(_slips(rows), 1 if lacking else None)  # no defense
    tried = ((name, each, _misfit(each, *limits)) for name, each in slips)
    others = [
        (float(np.median(m)), name, each) for name, each, m in tried if m is not None
    ]
    least, best, supposed = min(
        others, key=lambda o: o[0], default=(math.inf, "", rows)
    )
    if least > FITS or least > _CLEARLY * _with_other_targets(supposed, *limits):
        return plain
    return plain._replace(slip=f"they would fit if {best} (misfit {least:.2g})")


def _with_other_targets(view: AdversaryView, *limits) -> float:
    """Median misfit where each client's targets are dealt anew among its rows.

    Of a training that moves less than messages do most of them passes for noise, and any
    rows fit. Infinite where no client has unlike targets.
    """
    rng, known = np.random.default_rng(0), view.known
    targets, mask = np.array(known.y), np.asarray(known.mask)
    for own, kept in zip(targets, mask, strict=True):
        own[kept] = rng.permutation(own[kept])
    if np.array_equal(targets, known.y):
        return math.inf
    found = _misfit(view._replace(known=known._replace(y=targets)), *limits)
    return math.inf if found is None else float(np.median(found))


def explained(view: AdversaryView) -> np.ndarray:
    """Percent `[C]` of each client's targets, by the better of two models (`fljax.fit`).

    They are the last one that it was sent, and what it returned of that.

    Args:
      view: from `knowing_the_truth`.
    """
    assert view.transcript is not None and view.messages is not None
    x, y, mask = view.known
    models = views.last_models(view.transcript, view.messages)
    each = [_losses(view.loss_fn, params, x, y, mask) for params in models]
    least = None
    if not view.usual_loss:
        shown = getattr(view.loss_fn, "element_loss", None)
        rows = zip(np.asarray(y), np.asarray(mask), strict=True)
        least = [of_constant(shown, mine[kept], view.outputs) for mine, kept in rows]
    return fit.explained(np.min(each, axis=0), y, mask, view.task, least)


def of_constant(loss: object, y: np.ndarray, outputs: int) -> float:
    """Mean loss of the best constant output on targets `[n]`; NaN of a loss of one's own.

    Args:
      loss: of an output.
      y: numbers or classes.
      outputs: of the model.
    """
    if loss is losses.absolute:
        return float(np.abs(y - np.median(y)).mean())
    if isinstance(loss, losses.Huber):
        return _of_constant_huber(loss.delta, y)
    if isinstance(loss, losses.WeightedLogistic):
        weights = np.array([loss.pos_weight * np.mean(y), 1 - np.mean(y)])
        whole = weights.sum()
        return float(whole * special.entr(weights / whole).sum())
    if isinstance(loss, losses.SmoothedCrossEntropy):
        share = np.bincount(y, minlength=outputs) / len(y)
        share += loss.label_smoothing * (1 / outputs - share)
        return float(special.entr(share).sum())
    return float("nan")


def _of_constant_huber(delta: float, y: np.ndarray) -> float:
    def mean(output: float) -> float:
        return special.huber(delta, y - output).mean()

    ends = float(y.min()), float(y.max())
    found: Any = optimize.minimize_scalar(mean, bounds=ends, method="bounded")
    return float(found.fun)


def knowing_the_truth(view: AdversaryView, sensitive: Array) -> AdversaryView:
    """The view of somebody who knows the sensitive column, and has nothing to infer.

    Args:
      view: of the rows, whose other columns are known as they are.
      sensitive: `[C, n]` number of the true candidate, or the encoded value.
    """
    block = np.asarray(sensitive)
    if not view.continuous:
        block = np.asarray(view.candidates)[block]
    rows = jnp.asarray(np.atleast_3d(block), jnp.float32)
    every = jax.tree.map(np.asarray, attribute.complete(view.known.public, rows))
    nothing = np.zeros((1, 0), np.float32)
    return view._replace(
        known=view.known._replace(public=every), candidates=nothing, continuous=False
    )


def misfit(view: AdversaryView, settings: clients.Settings) -> np.ndarray | None:
    """How far the messages of each client are from what its true rows would have sent.

    Args:
      view: from `knowing_the_truth`.
      settings: of the simulation; what they say of a search does not count.

    Returns:
      `[C]`, about 1 where all is right, infinite for NaN; None where nothing simulates
      these clients as told, or messages are too few to tell noise from what is none.
    """
    return _misfit(view, settings) if _tells(view) else None


def _tells(view: AdversaryView) -> bool:
    """Whether messages are enough to tell noise from what is not noise."""
    assert view.messages is not None
    whole = view.training.takes_all(view.sizes).all() and not view.defense
    enough = np.min(view.messages.count) >= LEAST_MESSAGES
    return bool(enough or (whole and view.sees == "messages"))


def _misfit(
    view: AdversaryView, settings: clients.Settings, most_steps: float = math.inf
) -> np.ndarray | None:
    """`[C]`; None where there is nothing that simulates these clients as told."""
    if settings.search.estimate_scale or needs.missing(clients.NEEDS, view, settings):
        return None
    training, own = view.training, view.training.local_steps(view.sizes)
    if effort.simulated(training, own, settings.epoch_steps) > most_steps:
        return None
    assert view.messages is not None
    least = int(np.min(view.messages.count))
    some = _MESSAGES if least > _MESSAGES else None
    found = clients.infer(view, settings._replace(messages=some))
    if np.min(found.simulated) < 1:
        return None
    return np.nan_to_num(np.asarray(found.misfit), nan=np.inf, posinf=np.inf)


def _slips(view: AdversaryView) -> Iterator[tuple[str, AdversaryView]]:
    """Views of what may have been the case in place of this one, and that in words."""
    seen, known = view.transcript, view.known
    assert seen is not None
    if view.defense:
        yield "clients trained without a defense", view._replace(defense=None)
    moves = {
        "models moved the opposite way": lambda sent, moved: -moved,
        "what was recorded as returned is sent minus returned": np.subtract,
        "what was recorded as returned is returned minus sent": (
            lambda sent, moved: moved - sent
        ),
    }
    for name, move in moves.items() if view.sees != "models" else ():
        delta = jax.tree.map(
            lambda sent, moved, move=move: move(sent[:, None], moved),
            seen.params,
            seen.delta,
        )
        yield name, view._replace(transcript=seen._replace(delta=delta))
    for name, training in _trainings(view.training):
        if not training.missing and training != view.training:
            yield name, view._replace(training=training)
    for name, loss in _losses_of(view) if view.usual_loss else ():
        other = view._replace(loss_fn=losses.ExampleLoss(view.loss_fn.apply_fn, loss))
        yield f"the loss of a row is {name}", other
    if view.sees == "messages" and len(view.clients) > 1:
        for name, by in (("before", 1), ("after", -1)):
            rows = jax.tree.map(lambda leaf, by=by: np.roll(leaf, by, axis=0), known)
            name = f"each client has the rows of the one {name} it"
            yield name, view._replace(known=rows, num_rows=None)


def _trainings(told: LocalTraining) -> Iterator[tuple[str, LocalTraining]]:
    """What the training may have been, where it was declared as this one."""
    assert told.learning_rate is not None
    if told.algorithm == "fed_sgd":
        for rate in _RATES:
            name = f"clients step with a learning rate of {rate:g}, as FedAvg's do"
            yield name, told._replace(learning_rate=rate)
    else:
        kept = ""
        if told.optimiser != "sgd" or told.momentum:
            kept = ", or the optimiser is kept from round to round"
        for factor in _FACTORS:
            name = f"learning rate times local steps is {factor:.3g} times what was declared"
            yield name + kept, told._replace(learning_rate=factor * told.learning_rate)
    one = told._replace(steps=None, epochs=1)
    yield "a round is one local epoch of each client", one
    yield "a round is one local step of each client", one._replace(steps=1)
    plain = told._replace(optimiser="sgd", momentum=0.0, weight_decay=0.0)
    yield "clients use plain SGD", plain
    yield "clients use SGD with momentum 0.9", plain._replace(momentum=0.9)


def _losses_of(view: AdversaryView) -> Iterator[tuple[str, ElementLossFn]]:
    """What the loss may have been, where the usual one was taken for granted."""
    if view.task == "regression":
        yield "absolute", losses.absolute
        yield "huber", losses.Huber()
    elif view.task == "binary":
        y = np.asarray(view.known.y)[np.asarray(view.known.mask)]
        if 0 < np.sum(y) < len(y):
            weight = float(np.sum(1 - y) / np.sum(y))
            name = f"logistic with a pos_weight of {weight:.3g}, zeros by ones"
            yield name, losses.WeightedLogistic(weight)
    else:
        name = "cross_entropy with a label_smoothing of 0.1"
        yield name, losses.SmoothedCrossEntropy(0.1)


@functools.partial(jax.jit, static_argnums=0)
def _losses(loss_fn, *clients) -> jax.Array:
    def one(client):
        params, x, y, mask = client
        batch = Batch(x, jnp.asarray(y), mask)
        return losses.batch_loss(loss_fn, params, batch)

    return jax.lax.map(one, clients)
