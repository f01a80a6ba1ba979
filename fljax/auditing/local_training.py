"""How clients train in a round, from what the user says and a transcript's description.

What the user says goes first. Fields of the description (`fljax.transcript.told`):
`optimiser` (or `optimizer`, `client_optimiser`), `optimiser_state` (`new` or `kept`),
`momentum`, `weight_decay`, `batch_size` (null or 0: all rows), `drop_last`, `dropout`,
`learning_rate` (or a list of them, one for each round, the last for all that follow),
`local_epochs` or `epochs`, `local_steps`, `algorithm` (`fed_avg`, `FedProx`, ...),
`proximal`, `defense` and its `delta`. What is not simulated is said in the notes.
"""

from typing import Any

import numpy as np
import optax

from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.auditing.declaration import Declared
from fljax.auditing.settings import TrainingConfig
from fljax.defenses import specs
from fljax.defenses.specs import Spec
from fljax.driver.config import ConfigError
from fljax.transcript import description, told

_CLIPS = ("max_grad_norm", "grad_clip")  # of a batch, unless examples are clipped
_NOT_SIMULATED = (
    *("nesterov", "dampening", "amsgrad", "augmentation"),
    *("lr_scheduler", "scheduler", *_CLIPS),
)
_OF_ADAM = {"betas": [0.9, 0.999], "eps": 1e-8, "b1": 0.9, "b2": 0.999}
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
    found, given = told.training(about, _where(stem)), _given(config)
    if config.local_epochs is not None and config.local_steps is None:
        found["steps"] = None
    if config.learning_rate is not None:
        found["schedule"] = ()
    if found["algorithm"] == "fed_sgd":
        given |= told.OF_FED_SGD
    return LocalTraining(**found | given)


def _given(config: TrainingConfig) -> dict[str, Any]:
    """What the user says."""
    optimiser = config.optimiser and config.optimiser.lower()
    if optimiser and not hasattr(optax, optimiser):
        raise ConfigError(
            "--optimiser: expected sgd (with --momentum, if any), adam, adamw or another "
            f"of optax's, got {config.optimiser}"
        )
    if None not in (config.local_epochs, config.local_steps):
        raise ConfigError(
            "--local_epochs: expected none beside --local_steps, which counts all of a "
            f"round, got {config.local_epochs}"
        )
    state = config.optimiser_state
    given = {
        "batch_size": config.batch_size,
        "drop_last": config.drop_last,
        "learning_rate": config.learning_rate,
        "epochs": config.local_epochs,
        "steps": config.local_steps,
        "optimiser": optimiser,
        "momentum": config.momentum,
        "weight_decay": config.weight_decay,
        "proximal": config.proximal,
        "dropout": config.dropout,
        "kept": None if state is None else state == "kept",
    }
    return {name: value for name, value in given.items() if value is not None}


def undropped(view: AdversaryView) -> tuple[AdversaryView, list[str]]:
    """Without dropout where the model has no layers for it, and what to say of that."""
    if not view.training.dropout or view.drops:
        return view, []
    said = "Dropout is not simulated: the model has no hidden layer, or no nn.Dropout."
    return view._replace(training=view.training._replace(dropout=0.0)), [said]


def notes(about: dict[str, Any], config: TrainingConfig, stem: str) -> list[str]:
    """What is taken for granted or misspelt, and where the user contradicts the rest."""
    found = [
        f"Nothing reads {name!r:.40} of the recording's about: is {known} meant?"
        for name, known in description.meant(about).items()
    ]
    recorded = LocalTraining(**told.training(about, _where(stem)))
    found += _simulated_as_others(about, config, recorded, stem)
    given = _given(config)
    if recorded.algorithm == "fed_sgd":
        return found + [
            f"--{_flag(name)}={value} is not used: clients of fed_sgd take one step on all "
            "of their rows, whose rate is the server's."
            for name, value in given.items()
            if value != told.OF_FED_SGD.get(name, value)
        ]
    if recorded.steps and recorded.epochs and not {"steps", "epochs"} & given.keys():
        found.append("The recording has local_steps and local_epochs: the steps count.")
    for name, value in given.items():
        before = getattr(recorded, name)
        said = before is not None and (
            name != "optimiser" or told.optimiser(about, _where(stem))
        )
        other = {"epochs": "steps", "steps": "epochs"}.get(name)
        if other and before is None and (instead := getattr(recorded, other)):
            found.append(
                f"--local_{name}={value} replaces the recording's local_{other} of {instead}."
            )
        if said and before != value and (before or name == "batch_size"):
            if name == "kept":
                value, before = (told.STATES[bool(each)] for each in (value, before))
            found.append(f"--{_flag(name)}={value} replaces the recording's {before}.")
    named = config.optimiser or told.optimiser(about, _where(stem))
    return found if named else [*found, _ASSUMED]


def _flag(name: str) -> str:
    other = {
        "epochs": "local_epochs",
        "steps": "local_steps",
        "kept": "optimiser_state",
    }
    return other.get(name, name)


def defense(about: dict[str, Any], config: TrainingConfig, stem: str) -> str:
    """Name of the clients' defense, `none` if none is named.

    Raises:
      TranscriptError: it is no name.
    """
    return config.defense or told.defense(about, _where(stem))


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


def declared(about: dict[str, Any], config: TrainingConfig, stem: str) -> Declared:
    """The defense as clients say it, with the delta of its budget.

    Raises:
      ConfigError: the flag is no defense, or several.
      TranscriptError: the description's is no name, or its delta no probability.
    """
    recorded = told.delta(about, _where(stem))
    delta = recorded if config.delta is None else config.delta
    return Declared(simulated(about, config, stem), delta)


def _simulated_as_others(
    about, config: TrainingConfig, recorded: LocalTraining, stem: str
) -> list[str]:
    """What of the description no simulation follows, in words."""
    spec, text = simulated(about, config, stem), defense(about, config, stem)
    clips = spec is not None and specs.clips_examples(spec)
    found = [
        f"The recording's {name} is not simulated."
        for name in _NOT_SIMULATED
        if about.get(name) and not (clips and name in _CLIPS)
    ]
    rule = (config.optimiser or recorded.optimiser).lower()
    for name, usual in _OF_ADAM.items() if rule.startswith("adam") else ():
        value = about.get(name)
        if value is not None and not np.array_equal(value, usual):
            found.append(
                f"The recording's {name} of {value!r:.40} is simulated as {usual}."
            )
    if recorded.algorithm not in told.ALGORITHMS.values():
        found.append(f"Clients of {recorded.algorithm!r} are simulated as FedAvg's.")
    if recorded.algorithm != "fed_prox" and (config.proximal or recorded.proximal):
        found.append(
            "A proximal term is not simulated: the recording's algorithm is "
            f"{recorded.algorithm}, where fed_prox has one."
        )
    if spec is not None and (strange := specs.without_effects(spec)):
        found.append(
            f"Attacks do not know what {', '.join(strange)} does to messages: its "
            "Definition has no effects."
        )
    if config.defense is None and spec is None:
        found.append(
            f"The recording's defense {text!r} is not simulated: {_why_no_spec(text)}."
        )
    return found


def _why_no_spec(text: str) -> str:
    if ":" in text:
        return "one's own is imported for --defense alone, which may name it"
    try:
        specs.parse(text)
    except specs.SpecError as error:
        return f"{error}; expected a spec such as dp_sgd(clip=1, sigma=1)"
    return "expected one value of each number"


def _where(stem: str) -> str:
    return f"{stem}.json: about"
