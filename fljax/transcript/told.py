"""What the description of a recording says of the training, checked field by field.

It is free text of a stranger: whatever is read is a name, a number or a count, or refused.
"""

from collections.abc import Mapping
from typing import Any

from fljax.memory import MOST_ROUNDS
from fljax.transcript.views import TranscriptError

_OPTIMISER = ("optimiser", "optimizer", "client_optimiser")
_STATE = ("optimiser_state", "optimizer_state")
FIELDS = (
    *_OPTIMISER, "momentum", "weight_decay", "batch_size", "learning_rate", "local_epochs",
    "epochs", "local_steps", "algorithm", "proximal", "defense", "delta", "client_names",
    "server_optimiser", "server_learning_rate", "participation", "num_rounds",
    "loss", "huber_delta", "pos_weight", "label_smoothing", *_STATE, "drop_last",
    "dropout",
)  # fmt: skip
STATES = ("new", "kept")  # of an optimiser in each round
ALGORITHMS = {  # as clients train, whatever the server does
    "fedavg": "fed_avg", "fedsgd": "fed_sgd", "fedprox": "fed_prox", "fedavgm": "fed_avg",
    "fedadam": "fed_avg", "fedyogi": "fed_avg", "fedadagrad": "fed_avg",
}  # fmt: skip


# One step of rate 1 on all rows: the server takes the real one.
OF_FED_SGD = {
    "batch_size": 0, "learning_rate": 1.0, "schedule": (), "epochs": 1, "steps": None,
    "optimiser": "sgd", "momentum": 0.0,
}  # fmt: skip


def training(about: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Fields of an adversary's `LocalTraining`; None for what is not said.

    Args:
      about: the description.
      where: it stands, for messages.

    Raises:
      TranscriptError: a field is not what it should be.
    """
    found = {
        "batch_size": _count(about, "batch_size", where, least=0),
        "epochs": _count(about, "local_epochs", where)
        or _count(about, "epochs", where),
        "steps": _count(about, "local_steps", where),
        "drop_last": _whether(about, "drop_last", where),
        "optimiser": optimiser(about, where) or "sgd",
        "momentum": _number(about, "momentum", where, least=0, below=1) or 0.0,
        "weight_decay": _number(about, "weight_decay", where, least=0) or 0.0,
        "algorithm": _algorithm(about, where),
        "proximal": _number(about, "proximal", where, least=0),
        "num_rounds": _count(about, "num_rounds", where, most=MOST_ROUNDS),
        "kept": _kept(about, where),
        "dropout": _number(about, "dropout", where, least=0, below=1) or 0.0,
    } | _rates(about, where)
    if "batch_size" in about and about["batch_size"] is None:
        found["batch_size"] = 0
    if found["algorithm"] == "fed_sgd":
        found |= OF_FED_SGD
    return found


def check(about: Mapping[str, Any]) -> None:
    """Refuses a description that nobody could read, before it is written.

    Raises:
      TranscriptError: naming the field.
    """
    for read in (training, defense, delta, client_names, server, loss):
        read(about, "about")


def loss(about: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Name and numbers of a row's loss that are said; errors as of `training`.

    A `loss` that is a number is no name: somebody's last loss.
    """
    named = about.get("loss")
    found = {
        "loss": None
        if type(named) in (int, float)
        else _text(about, "loss", "", where) or None,
        "huber_delta": _number(about, "huber_delta", where),
        "pos_weight": _number(about, "pos_weight", where),
        "label_smoothing": _number(about, "label_smoothing", where, least=0, below=1),
    }
    return {name: value for name, value in found.items() if value is not None}


def _count(
    about, name: str, where: str, least: int = 1, most: int = 2**31 - 1
) -> int | None:
    value = about.get(name)
    if value is None or (type(value) is int and least <= value <= most):
        return value
    at_most = f" and <= {most}" if type(value) is int and value > most else ""
    raise TranscriptError(
        f"{where}, {name}: expected an integer >= {least}{at_most}, got {value!r:.40}"
    )


def _number(
    about, name: str, where: str, least: float = 1e-30, below: float = 1e30
) -> float | None:
    value = about.get(name)
    if value is None:
        return None
    if type(value) in (int, float) and least <= value < below:  # False for NaN
        return float(value)
    at_most = f" and < {below}" if below < 1e30 else ""
    raise TranscriptError(
        f"{where}, {name}: expected a number {'>= 0' if not least else '> 0'}{at_most}"
        f", got {value!r:.40}"
    )


def _whether(about, name: str, where: str) -> bool:
    value = about.get(name)
    if value is None or type(value) is bool:
        return bool(value)
    raise TranscriptError(f"{where}, {name}: expected true or false, got {value!r:.40}")


def _rates(about, where: str) -> dict[str, Any]:
    told = about.get("learning_rate")
    if not isinstance(told, list):
        return {"learning_rate": _number(about, "learning_rate", where)}
    read = [_number({"learning_rate": one}, "learning_rate", where) for one in told]
    rates = [rate for rate in read if rate is not None]
    if not rates or len(rates) < len(read):
        raise TranscriptError(
            f"{where}, learning_rate: expected a number > 0 for each round, "
            f"got {told!r:.40}"
        )
    first = rates[0]
    schedule = () if set(rates) == {first} else tuple(rate / first for rate in rates)
    return {"learning_rate": first, "schedule": schedule}


def _algorithm(about, where: str) -> str:
    """As simulations call it, else the description's own name."""
    told = _text(about, "algorithm", "fed_avg", where)
    return ALGORITHMS.get("".join(filter(str.isalnum, told.lower())), told)


def optimiser(about: Mapping[str, Any], where: str) -> str:
    """As the description calls it, in small letters; empty if it does not."""
    names = (_text(about, field, "", where).lower() for field in _OPTIMISER)
    return next(filter(None, names), "")


def _kept(about, where: str) -> bool:
    field = next((each for each in _STATE if each in about), _STATE[0])
    state = _text(about, field, "new", where)
    if state in STATES:
        return state == "kept"
    raise TranscriptError(
        f"{where}, {field}: expected one of {', '.join(STATES)}, got {state!r}"
    )


def defense(about: Mapping[str, Any], where: str) -> str:
    """Name of the clients' defense, `none` if none is named; errors as of `training`."""
    return _text(about, "defense", "none", where, most=300)


def delta(about: Mapping[str, Any], where: str) -> float | None:
    """Of the epsilon that the defense's text may have; errors as of `training`."""
    return _number(about, "delta", where, below=1)


def client_names(about: Mapping[str, Any], where: str) -> dict[str, int]:
    """Client id by name, empty if none is named; errors as of `training`."""
    told = about.get("client_names")
    if told is None:
        return {}
    if isinstance(told, Mapping) and all(
        type(each) is int and 0 <= each < 2**63 for each in told.values()
    ):
        # Without spaces at the ends, as cells of a file are read.
        found = {str(name).strip(): each for name, each in told.items()}
        if len({*found.values()}) == len(told):
            return found
    raise TranscriptError(
        f"{where}, client_names: expected {{name: client id}}, ids whole numbers of 0 or "
        f"more, each of one name, got {told!r:.40}"
    )


def server(about: Mapping[str, Any], where: str) -> tuple[float | None, bool]:
    """Learning rate of a server that takes the mean, and whether everybody takes part.

    The rate is None for another optimiser than plain SGD; errors as of `training`.
    """
    rate = _number(about, "server_learning_rate", where)
    plain = _text(about, "server_optimiser", "sgd", where).lower() == "sgd"
    if isinstance(about.get("participation"), str):
        everybody = _text(about, "participation", "all", where) == "all"
    else:
        everybody = _number(about, "participation", where) in (None, 1)
    return ((1.0 if rate is None else rate) if plain else None), everybody


def _text(about, name: str, default: str, where: str, most: int = 60) -> str:
    value = about.get(name) or default
    if isinstance(value, str) and value.isprintable() and len(value) <= most:
        return value
    raise TranscriptError(f"{where}, {name}: expected a name, got {value!r:.40}")
