"""What can be said of a training with Fed-SDP (Wei et al. 2021, algorithm 1).

Every client's update is clipped layer by layer to C, and the sum over a round's clients
gets noise. Differences between what the paper counts and what holds:

* clipping each of M layers to C lets a client move the sum by C sqrt(M), not C;
* the rate K_t / K amplifies only for those who do not see who took part, that is who see
  the global models alone, and if every client is drawn independently, under noise and a
  divisor that do not tell how many came;
* whoever receives the messages sees each with its own noise, or with none.

Recommended: a whole update clipped to C, one draw of N(0, (sigma C)^2) on the sum, every
client drawn independently.
"""

import dataclasses

from fljax.privacy import exact, sampled
from fljax.privacy.printed import as_printed
from fljax.privacy.statements import Statement, Training

_ADD = "neighbours: add or remove one client with all its records"
_ZERO = "neighbours: one client sends an update of zero instead of its own"
_RECORD = (
    "neighbours: one record of one client is replaced, and with it its whole update"
)
_HIDDEN = "only the global models are seen, not who took part; the server is trusted"
_DRAWS = {"one": "one draw", "each": "a draw per client"}


def printed(training: Training) -> Statement:
    """Table VI's recipe, with the one round too many that reproduces it."""
    p, rounds = training.participation, training.rounds + 1
    return Statement(
        "printed",
        "as printed",
        "client",
        as_printed(training.sigma, p, rounds, training.delta),
        training.delta,
        _ADD,
        f"every client in a round independently, q = K_t / K = {p:.4g}; sigma = "
        f"{training.sigma:g} is taken as noise over sensitivity, though M layers are clipped "
        "apart",
        f"{rounds} rounds, one more than there are, by Renyi divergences on the paper's "
        "grid of orders and the classic conversion",
    )


def recommended(training: Training) -> Statement:
    """The tight epsilon of a client under the recommended mode."""
    better = dataclasses.replace(training, draws="one", layers=1)
    return implemented(better)._replace(way="recommended", name="recommended")


def implemented(training: Training) -> Statement:
    """The epsilon of a client if every client is drawn independently.

    The noise and the divisor are taken as those of K_t clients in every round, which those
    of a draw for each client who came, over their number, are not.
    """
    return Statement(
        "implemented",
        f"{_DRAWS[training.draws]}, Poisson clients",
        "client",
        sampled.poisson(
            training.multiplier(training.clients_per_round),
            training.participation,
            [training.rounds],
            [1.0],
            training.delta,
        ),
        training.delta,
        _ADD,
        f"every client in a round independently, q = {training.participation:.4g}, {_HIDDEN}; "
        f"{training.noise(training.clients_per_round)}",
        f"{training.rounds} rounds by loss distributions",
        "models",
        "holds if noise and divisor are those of K_t clients however many come",
    )


def fixed_size(training: Training) -> Statement:
    """The epsilon of a client if a fixed number is drawn for each round, and seen."""
    return _seen(training)._replace(
        name=f"{_DRAWS[training.draws]}, a fixed number of clients",
        epsilon=_of_drawn_rounds(
            training, training.multiplier(training.clients_per_round)
        ),
        sampling=f"{training.clients_per_round:g} of {training.clients} clients drawn anew for each "
        "round, who may be seen; only sums of their messages are; the server is trusted; "
        f"{training.noise(training.clients_per_round)}",
        seen="sum",
    )


def messages(training: Training) -> Statement:
    """The epsilon of a client for whoever receives its messages (types 0 and 1)."""
    each = training.draws == "each"
    own = "its own draw of noise" if each else "no noise yet"
    multiplier = training.multiplier(1) if each else 0.0
    return _seen(training)._replace(
        epsilon=_of_drawn_rounds(training, multiplier),
        sampling=f"each message is seen, and whose it is, with {own}; sampling gains "
        "nothing",
    )


def record(training: Training) -> Statement:
    """The epsilon of a record, which is no better than that of a replaced client."""
    return implemented(training)._replace(
        unit="record",
        epsilon=sampled.poisson(
            training.multiplier(training.clients_per_round),
            training.participation,
            [training.rounds],
            [1.0],
            training.delta,
            replace=True,
        ),
        adjacency=_RECORD,
    )


def recommended_record(training: Training) -> Statement:
    """The same under the recommended mode."""
    better = dataclasses.replace(training, draws="one", layers=1)
    return record(better)._replace(way="recommended", name="recommended")


def refused(training: Training) -> list[Statement]:
    """Claims that cannot be had, and why."""
    found = {
        f"sampling rate K_t / K = {training.participation:.3g} against the server": (
            "whoever sees who took part sees whether a client exists: adding or removing "
            "it has no finite epsilon, and drawing clients at random amplifies nothing"
        )
    }
    if training.draws == "each":
        found["a draw per client who came, any number of whom may"] = (
            "the theorem needs noise of a fixed deviation; a draw for each client who is "
            "there, over their number, tells that number, and nobody's round has none"
        )
    return [
        Statement("refused", name, "client", None, training.delta, reason=reason)
        for name, reason in found.items()
    ]


def _seen(training: Training) -> Statement:
    """What holds although it is seen who takes part; its number is that of nothing."""
    return Statement(
        "implemented",
        f"{_DRAWS[training.draws]}, messages seen",
        "client",
        None,
        training.delta,
        _ZERO,
        "",
        "exact Gaussian, mean of delta over the rounds that it is drawn for, "
        f"Bin({training.rounds}, {training.participation:.4g})",
        "messages",
    )


def _of_drawn_rounds(training: Training, multiplier: float) -> float:
    rounds, weights = exact.drawn(training.rounds, training.participation)
    return exact.gaussian(multiplier, rounds, weights, training.delta)
