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

_ADD = "neighbours: add or remove one client with all her records"
_ZERO = "neighbours: one client sends an update of zero instead of hers"
_REPLACE = "neighbours: one client with all her records is replaced"
_RECORD = (
    "neighbours: one record of one client is replaced, and with it her whole update"
)
_HIDDEN = "only the global models are seen, not who took part; the server is trusted"
_DRAWS = {"one": "one draw", "each": "a draw per client"}


def printed(told: Training) -> Statement:
    """Table VI's recipe, with the one round too many that reproduces it."""
    p, rounds = told.participation, told.rounds + 1
    return Statement(
        "printed",
        "as printed",
        "client",
        as_printed(told.sigma, p, rounds, told.delta),
        told.delta,
        _ADD,
        f"every client in a round independently, q = K_t / K = {p:.4g}; sigma = "
        f"{told.sigma:g} is taken as noise over sensitivity, though M layers are clipped "
        "apart",
        f"{rounds} rounds, one more than there are, by Renyi divergences on the paper's "
        "grid of orders and the classic conversion",
    )


def recommended(told: Training) -> Statement:
    """The tight epsilon of a client under the recommended mode."""
    better = dataclasses.replace(told, draws="one", layers=1)
    return implemented(better)._replace(way="recommended", name="recommended")


def implemented(told: Training) -> Statement:
    """The epsilon of a client if every client is drawn independently.

    The noise and the divisor are taken as those of K_t clients in every round, which those
    of a draw for each client who came, over their number, are not.
    """
    return Statement(
        "implemented",
        f"{_DRAWS[told.draws]}, Poisson clients",
        "client",
        sampled.poisson(
            told.multiplier(told.clients_per_round),
            told.participation,
            [told.rounds],
            [1.0],
            told.delta,
        ),
        told.delta,
        _ADD,
        f"every client in a round independently, q = {told.participation:.4g}, {_HIDDEN}; "
        f"{told.noise(told.clients_per_round)}",
        f"{told.rounds} rounds by loss distributions",
        "holds if noise and divisor are those of K_t clients however many come",
    )


def fixed_size(told: Training) -> Statement:
    """The epsilon of a client if a fixed number is drawn for each round, and seen."""
    return _seen(told)._replace(
        name=f"{_DRAWS[told.draws]}, a fixed number of clients",
        epsilon=_of_drawn_rounds(told, told.multiplier(told.clients_per_round)),
        sampling=f"{told.clients_per_round:g} of {told.clients} clients drawn anew for each "
        "round, who may be seen; only sums of their messages are; the server is trusted; "
        f"{told.noise(told.clients_per_round)}",
    )


def messages(told: Training) -> Statement:
    """The epsilon of a client for whoever receives her messages (types 0 and 1)."""
    each = told.draws == "each"
    own = "her own draw of noise" if each else "no noise yet"
    multiplier = told.multiplier(1) if each else 0.0
    return _seen(told)._replace(
        epsilon=_of_drawn_rounds(told, multiplier),
        sampling=f"each message is seen, and whose it is, with {own}; sampling gains "
        "nothing",
    )


def record(told: Training) -> Statement:
    """The epsilon of a record, which is no better than that of a replaced client."""
    return implemented(told)._replace(
        unit="record",
        epsilon=sampled.poisson(
            told.multiplier(told.clients_per_round),
            told.participation,
            [told.rounds],
            [1.0],
            told.delta,
            replace=True,
        ),
        adjacency=_RECORD,
    )


def recommended_record(told: Training) -> Statement:
    """The same under the recommended mode."""
    better = dataclasses.replace(told, draws="one", layers=1)
    return record(better)._replace(way="recommended", name="recommended")


def refused(told: Training) -> list[Statement]:
    """Claims that cannot be had, and why."""
    found = {
        f"sampling rate K_t / K = {told.participation:.3g} against the server": (
            "whoever sees who took part sees whether a client exists: adding or removing "
            "her has no finite epsilon, and her being drawn amplifies nothing"
        )
    }
    if told.draws == "each":
        found["a draw per client who came, any number of whom may"] = (
            "the theorem needs noise of a fixed deviation; a draw for each client who is "
            "there, over their number, tells that number, and nobody's round has none"
        )
    return [
        Statement("refused", name, "client", None, told.delta, "", "", "", reason)
        for name, reason in found.items()
    ]


def _seen(told: Training) -> Statement:
    """What holds although it is seen who takes part; its number is that of nothing."""
    return Statement(
        "implemented",
        f"{_DRAWS[told.draws]}, messages seen",
        "client",
        None,
        told.delta,
        _ZERO,
        "",
        "exact Gaussian, mean of delta over the rounds that she is drawn for, "
        f"Bin({told.rounds}, {told.participation:.4g})",
    )


def _of_drawn_rounds(told: Training, multiplier: float) -> float:
    rounds, weights = exact.drawn(told.rounds, told.participation)
    return exact.gaussian(multiplier, rounds, weights, told.delta)
