"""Usual slips in the declaration of a training, which are tried where messages do not fit."""

from collections.abc import Iterator

import jax
import numpy as np

from fljax import losses
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.memory import MOST_ROUNDS
from fljax.transcript import sums
from fljax.types import ElementLossFn

_FACTORS = (0.1, 0.2, 0.25, 1 / 3, 0.5, 2, 3, 4, 5, 10)  # of rate times steps
_MOMENTA = (0.9, 0.5)  # usual ones
_EPOCHS = (2, 3)  # of steps on all rows, which the rate times steps does not tell
_DROPOUTS = (0.0, 0.2, 0.5)
_DECAYS = (0.1, 0.01)  # usual sizes of weight decay, of which smaller ones hardly show
# Where gradients were declared, and clients step with a rate of their own.
_RATES = tuple(m * 10.0**-e for e in range(1, 5) for m in (1, 2, 3, 5))


def tried(view: AdversaryView) -> Iterator[tuple[str, AdversaryView]]:
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
    yield from _weighted(view)
    told, single = view.training, view.sees == "messages"
    ways = (
        *_trainings(told, single),
        *_epochs(view),
        *_last_batches(view),
        *_rates(told, view.num_rounds),
        *_dropouts(view),
    )
    for name, training in ways:
        if not training.missing and training != told:
            yield name, view._replace(training=training)
    for name, loss in _losses_of(view) if view.usual_loss else ():
        other = view._replace(loss_fn=losses.ExampleLoss(view.loss_fn.apply_fn, loss))
        yield f"the loss of a row is {name}", other
    if view.task == "binary" and view.usual_loss:
        yield from _as_numbers(view)
    if view.task == "binary" or (view.task == "multiclass" and view.outputs == 2):
        turned = known._replace(y=1 - np.asarray(known.y))
        name = "the target's two values are the other way round"
        yield name, view._replace(known=turned)
    if view.sees == "messages" and len(view.clients) > 1:
        for name, by in (("before", 1), ("after", -1)):
            rows = jax.tree.map(lambda leaf, by=by: np.roll(leaf, by, axis=0), known)
            name = f"each client has the rows of the one {name} it"
            yield name, view._replace(known=rows, num_rows=None)


def _weighted(view: AdversaryView) -> Iterator[tuple[str, AdversaryView]]:
    """Sums whose server weighs clients in the other usual way."""
    seen = view.transcript
    assert seen is not None
    if seen.share is None or seen.member is None or not sums.are_known(seen):
        return
    there = np.asarray(seen.share) > 0
    order = np.argsort(view.clients)
    at = np.searchsorted(np.asarray(view.clients)[order], seen.member)
    rows = np.asarray(view.sizes)[order][np.minimum(at, len(order) - 1)]
    ways = {
        "takes the plain mean of clients": there,
        "weighs clients by their rows": rows,
    }
    for name, weights in ways.items():
        weights = np.where(there, weights, 0)
        share = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1)
        if not np.allclose(share, seen.share, rtol=0.01, atol=0):
            other = seen._replace(share=share.astype(np.float32))
            yield f"the server {name}", view._replace(transcript=other)


def _trainings(
    told: LocalTraining, single: bool
) -> Iterator[tuple[str, LocalTraining]]:
    """What the training may have been, where it was declared as this one.

    Args:
      told: as declared.
      single: whether single messages are seen: only then a kept optimiser is simulated.
    """
    assert told.learning_rate is not None
    if told.algorithm == "fed_sgd":
        for rate in _RATES:
            name = f"clients step with a learning rate of {rate:g}, as FedAvg's do"
            yield name, told._replace(learning_rate=rate)
    else:
        or_kept = ""
        if not told.stateless and not single:
            or_kept = ", or the optimiser is kept from round to round"
        elif not told.stateless:
            way = "new in each round" if told.kept else "kept from round to round"
            name = f"the optimiser's state is {way} (optimiser_state)"
            yield name, told._replace(kept=not told.kept)
        for factor in _FACTORS:
            name = f"learning rate times local steps is {factor:.3g} times what was declared"
            other = told._replace(learning_rate=factor * told.learning_rate)
            yield name + or_kept, other
    one = told._replace(steps=None, epochs=1)
    yield "a round is one local epoch of each client", one
    yield "a round is one local step of each client", one._replace(steps=1)
    plain = told._replace(optimiser="sgd", momentum=0.0, weight_decay=0.0)
    yield "clients use plain SGD", plain
    for momentum in _MOMENTA:
        name = f"clients use SGD with momentum {momentum:g}"
        yield name, plain._replace(momentum=momentum)
    for other in _with_decays(told):
        yield f"clients use {other.rule}", other


def _epochs(view: AdversaryView) -> Iterator[tuple[str, LocalTraining]]:
    """Other numbers of steps on all rows, of which messages tell more than their product."""
    told = view.training
    if told.takes_all(view.sizes).all() and told.algorithm != "fed_sgd":
        for epochs in _EPOCHS:
            name = f"a round is {epochs} local epochs of each client"
            yield name, told._replace(steps=None, epochs=epochs)


def _last_batches(view: AdversaryView) -> Iterator[tuple[str, LocalTraining]]:
    """Clients may drop what remains behind the last full batch, or train on it."""
    told, sizes = view.training, np.asarray(view.sizes)
    other = told._replace(drop_last=not told.drop_last)
    if told.missing or (told.batches(sizes) == other.batches(sizes)).all():
        return
    does = "train on" if told.drop_last else "drop"
    yield f"clients {does} the last batch of an epoch, if smaller (drop_last)", other


def _dropouts(view: AdversaryView) -> Iterator[tuple[str, LocalTraining]]:
    """Units may have been dropped, or not."""
    for rate in _DROPOUTS if view.drops else ():
        yield f"dropout is {rate:g}", view.training._replace(dropout=rate)


def _with_decays(told: LocalTraining) -> Iterator[LocalTraining]:
    """The same with other weight decay, which Adam has in the gradient or beside it."""
    adam = told.optimiser in ("adam", "adamw")
    for name in ("adam", "adamw") if adam else (told.optimiser,):
        for decay in dict.fromkeys((told.weight_decay, 0.0, *_DECAYS)):
            other = told._replace(optimiser=name, weight_decay=decay)
            alike = adam and not decay and not told.weight_decay
            if other != told and not alike and (adam or told.optimiser == "sgd"):
                yield other


def _rates(told: LocalTraining, num_rounds: int) -> Iterator[tuple[str, LocalTraining]]:
    """The rate may have changed over rounds, or stayed."""
    if told.algorithm == "fed_sgd":
        return
    if told.schedule:
        yield "the learning rate is the same in all rounds", told._replace(schedule=())
        return
    if num_rounds > MOST_ROUNDS:  # numbers that count something else
        return
    rounds = np.arange(num_rounds)
    done = rounds / num_rounds
    ways = {
        "linearly to 0": 1 - done,
        "as a cosine to 0": (1 + np.cos(np.pi * done)) / 2,
        "to a tenth at half of the rounds": np.where(done < 0.5, 1.0, 0.1),
        **{f"by {1 - by:.0%} after each round": by**rounds for by in (0.99, 0.95, 0.9)},
    }
    for way, factors in ways.items():
        name = f"the learning rate falls {way} (learning_rate takes a list)"
        yield name, told._replace(schedule=tuple(factors.tolist()))


def _as_numbers(view: AdversaryView) -> Iterator[tuple[str, AdversaryView]]:
    """A target of two values that is met as a number."""
    y, name = np.asarray(view.known.y), "the loss of a row is squared (task=regression)"
    squared = losses.ExampleLoss(view.loss_fn.apply_fn, losses.squared)
    for words, target in (("", y), (", its target -1 or 1", 2 * y - 1)):
        known = view.known._replace(y=target)
        yield name + words, view._replace(loss_fn=squared, known=known)


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
