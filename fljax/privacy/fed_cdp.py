"""What can be said of a training with Fed-CDP (Wei et al. 2021, algorithm 2).

Every example's gradient is clipped layer by layer to C, and the batch's sum gets noise.
Differences between what the paper counts and what holds:

* clipping each of M layers to C lets an example move the sum by C sqrt(M), not C;
* the paper's recipe is that of one client's Poisson batches in ALL rounds; its code goes
  through the same disjoint batches in every round that a client takes part in, where
  each example meets one release of each pass and sampling gains nothing;
* client sampling does not amplify the guarantee of a record when it can be seen who took
  part; the mean of delta over the number of rounds that it is in, which is binomial, is
  what can be said;
* the client level of the paper is the number of a record under another name.

Recommended: all layers together clipped to C (each to C / sqrt(M)), one draw of
N(0, (sigma C)^2) on the sum, Poisson batches, divided by the expected size.
"""

import dataclasses
import math

import numpy as np

from fljax.privacy import exact, sampled
from fljax.privacy.printed import as_printed
from fljax.privacy.statements import Statement, Training

_ADD = "neighbours: add or remove one record of one client"
_ZERO = "neighbours: one record of one client becomes an example with no gradient"
_REPLACE = "neighbours: one record of one client is replaced"
_WHOLE = "neighbours: all records of one client become examples with no gradient"
_DRAWS = {"one": "one draw", "each": "a draw per example"}
_BATCHES = {
    "poisson": "Poisson batches",
    "fixed": "one pass",
    "without_replacement": "fixed-size batches",
}


def printed(training: Training) -> Statement:
    """Table VI's recipe for a record, with the one step too many that reproduces it."""
    q, steps = training.sampling_rate, training.steps + 1
    return Statement(
        "printed",
        "as printed",
        "record",
        as_printed(training.sigma, q, steps, training.delta),
        training.delta,
        _ADD,
        f"Poisson batches, q = B / N_i = {q:.4g}; sigma = {training.sigma:g} is taken as noise "
        "over sensitivity, though M layers are clipped apart",
        f"{steps} sums, one more than there are, by Renyi divergences on the paper's grid "
        "of orders and the classic conversion",
    )


def recommended(training: Training, *, every: bool = True) -> Statement:
    """The tight epsilon of a record under the recommended mode.

    Args:
      training: its draws, batches and layers do not matter.
      every: whether the client is in every round, else in those that it is drawn for.
    """
    better = dataclasses.replace(training, draws="one", batches="poisson", layers=1)
    return _of_poisson(better, every)._replace(
        way="recommended", name=_joined("recommended", _participation(every))
    )


def implemented(training: Training, *, every: bool = True) -> Statement:
    """The epsilon of a record for the clipping, noise and batches that there were.

    Args:
      training: what is accounted for.
      every: as in `recommended`.
    """
    if training.batches == "poisson":
        return _of_poisson(training, every)
    if training.batches == "fixed":
        return _of_passes(training, every)
    return _of_fixed_size(training, every)


def copied(training: Training) -> Statement:
    """`implemented` for a record that `copies` clients hold; approximate."""
    rounds = dataclasses.replace(training, rounds=training.rounds * training.copies)
    return implemented(rounds, every=False)._replace(
        name=_name(training, f"{training.copies} copies"),
        adjacency=f"all {training.copies} copies of one record, each on another client: "
        + (_ADD if training.batches == "poisson" else _ZERO),
        reason="approximate: takes the number of rounds that a copy is in as binomial, "
        "though a round's clients are drawn together, and the copies as never in one sum",
    )


def example(training: Training, *, replace: bool = False) -> Statement:
    """One example's own noisy gradient, as whoever sees it before the sum (type 2).

    Args:
      training: with one draw on the sum, the example itself carries no noise.
      replace: whether the example is replaced, else it becomes one with no gradient.
    """
    shown = training.sigma if training.draws == "each" else 0.0
    effect = shown / np.sqrt(training.layers) / (2 if replace else 1)
    seen = (
        "its own draw of noise" if training.draws == "each" else "no noise of its own"
    )
    name = "one example seen, " + ("replaced" if replace else "zeroed")
    return Statement(
        "implemented",
        _name(training, name, batches=False),
        "record",
        exact.gaussian(effect, [1], [1.0], training.delta),
        training.delta,
        _REPLACE if replace else _ZERO,
        f"the gradient of one example is seen with {seen}; sampling gains nothing",
        "one release; every further one adds to it",
        "examples",
    )


def printed_client(training: Training) -> Statement:
    """The number that Table VI shows at client level."""
    return printed(training)._replace(
        unit="client",
        reason="the number of a record under another name (the paper's Billboard lemma): "
        "it promises nothing about all that one client has",
    )


def implemented_client(training: Training, *, rounds: int | None = None) -> Statement:
    """What a client as a whole is promised by the noise in its own sums.

    Args:
      training: what is accounted for.
      rounds: rounds that it takes part in, default all.
    """
    rounds = training.rounds if rounds is None else rounds
    steps, size = rounds * training.local_steps, training.stated
    multiplier = training.multiplier(size)
    if training.batches == "poisson":
        found = sampled.whole_batches(
            multiplier, training.sampling_rate, training.records, steps, training.delta
        )
        how = (
            f"Poisson batches, q = {training.sampling_rate:.4g}, all of a batch at once"
        )
    else:
        anew = training.batches == "without_replacement"
        rows = np.array([size]) if anew else training.one_pass
        sums = np.resize(rows, training.local_steps) / rows[0]
        if training.follows_batch:  # a smaller one has less noise, too
            sums = np.sqrt(sums)
        squares = rounds * float(np.square(sums).sum())
        found = exact.gaussian(multiplier / rows[0], [squares], [1.0], training.delta)
        last = f", the last of a pass {rows[-1]}" if rows[-1] < rows[0] else ""
        how = f"batches of {rows[0]:g}{last}, all of a batch at once"
    return Statement(
        "implemented",
        _joined(_name(training), "one round" if rounds == 1 else "every round"),
        "client",
        found,
        training.delta,
        _WHOLE,
        f"{how}; {training.noise(size)}",
        f"{steps} sums, composed as they are seen; noise of other clients not counted",
        "messages",
    )


def recommended_client(training: Training, *, rounds: int | None = None) -> Statement:
    """The same under the recommended mode, as a loss distribution."""
    better = dataclasses.replace(training, draws="one", batches="poisson", layers=1)
    found = implemented_client(better, rounds=rounds)
    span = "one round" if rounds == 1 else "every round"
    return found._replace(way="recommended", name=f"recommended, {span}")


def refused(training: Training) -> list[Statement]:
    """Claims that cannot be had, and why."""
    q, p = training.sampling_rate, training.participation
    found = {
        f"sampling rate q p = {q * p:.3g}": (
            "who takes part is seen, and both neighbours have the same clients in each "
            "round: client sampling does not multiply the rate of a record"
        ),
        "batches drawn from the records of all clients": (
            "a batch is drawn from one client's records and its message is seen: the "
            "paper's rate B K_t / N over all of them is nobody's sampling"
        ),
    }
    if training.draws == "each" and training.batches == "poisson":
        found["a draw per example that is present"] = (
            "with Poisson batches the theorem needs noise of a fixed deviation; a draw "
            "for each example that is present follows the size of the batch, and an empty "
            f"one has none (the numbers shown take {training.batch_size:g} draws whatever the "
            "batch)"
        )
    return [
        Statement("refused", name, "record", None, training.delta, reason=reason)
        for name, reason in found.items()
    ]


def _of_poisson(training: Training, every: bool) -> Statement:
    q, multiplier = training.sampling_rate, training.multiplier(training.batch_size)
    rounds, weights, seen = _rounds(training, every)
    steps = [training.local_steps * count for count in rounds]
    return Statement(
        "implemented",
        _name(training, _participation(every)),
        "record",
        sampled.poisson(multiplier, q, steps, weights, training.delta),
        training.delta,
        _ADD,
        f"Poisson batches, q = {q:.4g}; {training.noise(training.batch_size)}",
        f"{training.local_steps} sums a round by loss distributions, {seen}",
        "messages",
    )


def _of_passes(training: Training, every: bool) -> Statement:
    met = math.ceil(training.local_steps * training.sampling_rate * (1 - 1e-9))
    rounds, weights, seen = _rounds(training, every)
    releases = [met * count for count in rounds]
    fewest = min(training.one_pass) if training.follows_batch else training.stated
    return Statement(
        "implemented",
        _name(training, _participation(every)),
        "record",
        exact.gaussian(training.multiplier(fewest), releases, weights, training.delta),
        training.delta,
        _ZERO,
        "disjoint batches in one and the same order, no sampling; "
        f"{training.noise(fewest)}",
        f"a record is in {met} of the sums of a round; exact Gaussian, {seen}",
        "messages",
    )


def _of_fixed_size(training: Training, every: bool) -> Statement:
    name = _name(training, "one record replaced", _participation(every))
    blank = Statement(
        "implemented", name, "record", None, training.delta, _REPLACE, seen="messages"
    )
    if not every:
        reason = "Renyi divergences of rounds that are drawn are not averaged here"
        return blank._replace(way="refused", reason=reason)
    found = sampled.without_replacement(
        training.multiplier(training.batch_size),
        training.records,
        int(training.batch_size),
        training.steps,
        training.delta,
    )
    return blank._replace(
        epsilon=found,
        sampling=f"{training.batch_size:g} of {training.records} records drawn anew in each step; "
        f"{training.noise(training.batch_size)}, half of that for a replacement",
        composition=f"{training.steps} sums by Renyi divergences, {_rounds(training, True)[2]}",
    )


def _rounds(training: Training, every: bool) -> tuple[list[int], list[float], str]:
    if every:
        return (
            [training.rounds],
            [1.0],
            f"{training.rounds} rounds, all of which it is in",
        )
    p = training.participation
    seen = (
        f"mean of delta over the rounds that it is drawn for, Bin({training.rounds}, {p:.4g})"
        ", which may be seen"
    )
    return *exact.drawn(training.rounds, p), seen


def _participation(every: bool) -> str:
    return "every round" if every else "drawn clients"


def _name(training: Training, *more: str, batches: bool = True) -> str:
    how = [_BATCHES[training.batches]] if batches else []
    return _joined(_DRAWS[training.draws], *how, *more)


def _joined(*parts: str) -> str:
    return ", ".join(parts)
