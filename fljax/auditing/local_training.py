"""How clients train in a round, from what the user says and a transcript's description.

The description is free text of a stranger: each field that is used is checked. What the
user says goes first. Fields: `optimiser` (or `optimizer`, `client_optimiser`), `momentum`,
`weight_decay`, `batch_size` (null or 0: all rows), `learning_rate` (or a list of them, one
for each round, the last for all that follow), `local_epochs` or
`epochs`, `local_steps`, `algorithm` (`fed_avg`, `FedProx`, ...), `proximal`, `defense` and
its `delta`. What is not simulated is said in the notes.
"""

from typing import Any

import optax

from fljax.attacks.adversary import LocalTraining
from fljax.auditing.settings import TrainingConfig
from fljax.defenses import specs
from fljax.defenses.specs import Spec
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError, description

_OPTIMISER = ("optimiser", "optimizer", "client_optimiser")
_ALGORITHMS = {  # as clients train, whatever the server does
    "fedavg": "fed_avg", "fedsgd": "fed_sgd", "fedprox": "fed_prox", "fedavgm": "fed_avg",
    "fedadam": "fed_avg", "fedyogi": "fed_avg", "fedadagrad": "fed_avg",
}  # fmt: skip
_NOT_SIMULATED = ("nesterov", "dampening", "amsgrad")
_ASSUMED = (
    "Plain SGD is assumed: nothing says which optimiser the clients use. Say so with "
    '--optimiser, --momentum and --weight_decay, or record about={"optimiser": "sgd"}.'
)


def read(about: dict[str, Any], config: TrainingConfig, stem: str) -> LocalTraining:
    """Joins both.

    Raises:
      ConfigError: the flag is no optimiser's name.
      TranscriptError: a field of the description is not what it should be.
    """
    found, given = _recorded(about, stem), _given(config)
    if config.local_epochs is not None and config.local_steps is None:
        found["steps"] = None
    if config.learning_rate is not None:
        found["schedule"] = ()
    return LocalTraining(**found | given)


def _recorded(about: dict[str, Any], stem: str) -> dict[str, Any]:
    """What the description says."""
    found = {
        "batch_size": _count(about, "batch_size", stem, least=0),
        "epochs": _count(about, "local_epochs", stem) or _count(about, "epochs", stem),
        "steps": _count(about, "local_steps", stem),
        "optimiser": _optimiser(about, stem) or "sgd",
        "momentum": _number(about, "momentum", stem, least=0) or 0.0,
        "weight_decay": _number(about, "weight_decay", stem, least=0) or 0.0,
        "algorithm": _algorithm(about, stem),
        "proximal": _number(about, "proximal", stem, least=0),
        "num_rounds": _count(about, "num_rounds", stem),
    } | _rates(about, stem)
    if "batch_size" in about and about["batch_size"] is None:
        found["batch_size"] = 0
    if found["algorithm"] == "fed_sgd":
        # One step of rate 1 on all rows; the server takes the real one.
        found |= {"batch_size": 0, "learning_rate": 1.0, "epochs": 1, "steps": None}
        found["schedule"] = ()
        found |= {"optimiser": "sgd", "momentum": 0.0}
    return found


def _given(config: TrainingConfig) -> dict[str, Any]:
    """What the user says."""
    optimiser = config.optimiser and config.optimiser.lower()
    if optimiser and not hasattr(optax, optimiser):
        raise ConfigError(
            "--optimiser: expected sgd (with --momentum, if any), adam, adamw or another "
            f"of optax's, got {config.optimiser}"
        )
    told = {
        "batch_size": config.batch_size,
        "learning_rate": config.learning_rate,
        "epochs": config.local_epochs,
        "steps": config.local_steps,
        "optimiser": optimiser,
        "momentum": config.momentum,
        "weight_decay": config.weight_decay,
        "proximal": config.proximal,
    }
    return {name: value for name, value in told.items() if value is not None}


def notes(about: dict[str, Any], config: TrainingConfig, stem: str) -> list[str]:
    """What is taken for granted or misspelt, and where the user contradicts the rest."""
    found = [
        f"Nothing reads {name!r:.40} of the recording's about: is {known} meant?"
        for name, known in description.meant(about).items()
    ]
    recorded = LocalTraining(**_recorded(about, stem))
    found += _simulated_as_others(about, config, recorded.algorithm, stem)
    if recorded.algorithm == "fed_sgd":
        return found
    given = _given(config)
    if recorded.steps and recorded.epochs and not {"steps", "epochs"} & given.keys():
        found.append("The recording has local_steps and local_epochs: the steps count.")
    for name, value in given.items():
        before = getattr(recorded, name)
        said = before is not None and (name != "optimiser" or _optimiser(about, stem))
        if said and before != value and (before or name == "batch_size"):
            flag = {"epochs": "local_epochs", "steps": "local_steps"}.get(name, name)
            found.append(f"--{flag}={value} replaces the recording's {before}.")
    told = config.optimiser or _optimiser(about, stem)
    return found if told else [*found, _ASSUMED]


def defense(about: dict[str, Any], config: TrainingConfig, stem: str) -> str:
    """Name of the clients' defense, `none` if none is named.

    Raises:
      TranscriptError: it is no name.
    """
    return config.defense or _name(about, "defense", "none", stem, most=300)


def simulated(about: dict[str, Any], config: TrainingConfig, stem: str) -> Spec | None:
    """The defense that attacks may simulate; None where nothing says which it is.

    One's own, `module:attribute`, is imported for the user's flag alone: a recording may
    be a stranger's.

    Raises:
      ConfigError: the flag is no defense, or several.
      TranscriptError: the description's is no name.
    """
    text = defense(about, config, stem)
    if config.defense is None and ":" in text:
        return None
    try:
        spec = specs.parse(text)
        if spec.has_alternatives:
            raise specs.SpecError(f"expected one value of each number, got {text}")
    except specs.SpecError as error:
        if config.defense is None:
            return None
        raise ConfigError(f"--defense: {error}") from error
    return spec


def delta(about: dict[str, Any], config: TrainingConfig, stem: str) -> float | None:
    """Of the epsilon that the defense's text may have.

    Raises:
      TranscriptError: the description's is no probability.
    """
    told = _number(about, "delta", stem)
    if told is not None and told >= 1:
        raise TranscriptError(
            f"{stem}.json: about, delta: expected a number < 1, got {told!r:.40}"
        )
    return told if config.delta is None else config.delta


def _count(about, name: str, stem: str, least: int = 1) -> int | None:
    value = about.get(name)
    if value is None or (type(value) is int and least <= value < 2**31):
        return value
    raise TranscriptError(
        f"{stem}.json: about, {name}: expected an integer >= {least}, got {value!r:.40}"
    )


def _number(about, name: str, stem: str, least: float = 1e-30) -> float | None:
    value = about.get(name)
    if value is None:
        return None
    if type(value) in (int, float) and least <= value < 1e30:  # False for NaN
        return float(value)
    raise TranscriptError(
        f"{stem}.json: about, {name}: expected a number {'>= 0' if not least else '> 0'}"
        f", got {value!r:.40}"
    )


def _rates(about, stem: str) -> dict[str, Any]:
    told = about.get("learning_rate")
    if not isinstance(told, list):
        return {"learning_rate": _number(about, "learning_rate", stem)}
    read = [_number({"learning_rate": one}, "learning_rate", stem) for one in told]
    rates = [rate for rate in read if rate is not None]
    if not rates or len(rates) < len(read):
        raise TranscriptError(
            f"{stem}.json: about, learning_rate: expected a number > 0 for each round, "
            f"got {told!r:.40}"
        )
    first = rates[0]
    schedule = () if set(rates) == {first} else tuple(rate / first for rate in rates)
    return {"learning_rate": first, "schedule": schedule}


def _algorithm(about, stem: str) -> str:
    """As simulations call it, else the description's own name."""
    name = _name(about, "algorithm", "fed_avg", stem)
    return _ALGORITHMS.get("".join(filter(str.isalnum, name.lower())), name)


def _simulated_as_others(about, config: TrainingConfig, algorithm: str, stem: str):
    """What of the description no simulation follows, in words."""
    found = [
        f"The recording's {name} is not simulated."
        for name in _NOT_SIMULATED
        if about.get(name)
    ]
    if algorithm not in _ALGORITHMS.values():
        found.append(f"Clients of {algorithm!r} are simulated as FedAvg's.")
    if config.defense is None and simulated(about, config, stem) is None:
        text = defense(about, config, stem)
        found.append(
            f"The recording's defense {text!r} is not simulated: expected a spec such as "
            "dp_sgd(clip=1, sigma=1)."
        )
    return found


def _optimiser(about, stem: str) -> str:
    """As the description calls it, in small letters; empty if it does not."""
    names = (_name(about, field, "", stem).lower() for field in _OPTIMISER)
    return next(filter(None, names), "")


def _name(about, name: str, default: str, stem: str, most: int = 60) -> str:
    value = about.get(name) or default
    if isinstance(value, str) and value.isprintable() and len(value) <= most:
        return value
    raise TranscriptError(
        f"{stem}.json: about, {name}: expected a name, got {value!r:.40}"
    )
