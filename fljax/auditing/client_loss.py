"""The loss of a client's row, from what the user says and a transcript's description.

What the user says goes first. Fields of the description (`fljax.transcript.told`): `loss`,
also as PyTorch and Keras call it (`MSELoss`, `BCEWithLogitsLoss`, ...), and its numbers
`huber_delta`, `pos_weight` and `label_smoothing`. Where nobody says, it follows from the
target. A loss is of one row: a batch takes the mean of its rows', so that weights of
classes, by whose sum PyTorch divides, are none.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from fljax import losses
from fljax.auditing import imported
from fljax.auditing.settings import TrainingConfig
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError, told
from fljax.types import ElementLossFn

_TASKS = {  # of each loss
    "squared": "regression", "absolute": "regression", "huber": "regression",
    "logistic": "binary", "cross_entropy": "multiclass",
}  # fmt: skip
_NUMBERS = {  # of which loss
    "huber_delta": "huber",
    "pos_weight": "logistic",
    "label_smoothing": "cross_entropy",
}
_CALLED = {
    "mse": "squared", "meansquarederror": "squared", "squarederror": "squared",
    "l1": "absolute", "mae": "absolute", "meanabsoluteerror": "absolute",
    "bce": "logistic", "bcewithlogits": "logistic", "binarycrossentropy": "logistic",
    "sigmoidbinarycrossentropy": "logistic", "categoricalcrossentropy": "cross_entropy",
    "sparsecategoricalcrossentropy": "cross_entropy",
    "softmaxcrossentropy": "cross_entropy",
}  # fmt: skip


def read(
    about: Mapping[str, Any],
    config: TrainingConfig,
    stem: str,
    task: str,
    outputs: int,
    given: Callable | None = None,
) -> ElementLossFn:
    """Joins both.

    Args:
      about: the description.
      config: what the user says.
      stem: of the transcript, for messages.
      task: of the target: regression, binary or multiclass.
      outputs: of the model, 1 but for multiclass.
      given: the loss itself, whatever `config` names.

    Raises:
      ConfigError: the flags name no loss, none of this task, or a number of another.
      TranscriptError: the description names one of another task, or a number is none.
    """
    named = config.loss or ""
    said = {number: getattr(config, number) for number in _NUMBERS}
    if given is not None or ":" in named:
        for number, value in said.items():
            if value is not None:
                raise ConfigError(
                    f"--{number}: expected none beside a loss of your own, got {value:g}"
                )
        return _own(named, given, task, outputs)
    where = f"{stem}.json: about"
    recorded = told.loss(about, where)
    before = _named(f"{where}, loss", recorded.get("loss", ""), task, TranscriptError)
    name = _named("--loss", named, task, ConfigError) or before or losses.USUAL[task]
    values = {number: value for number, value in said.items() if value is not None}
    for number, value in values.items():
        if name != _NUMBERS[number]:
            raise ConfigError(
                f"--{number}: expected none, or the loss {_NUMBERS[number]}, got "
                f"{value:g} beside {name}"
            )
    # A recording may hold numbers of losses that its clients do not have.
    if not recorded.get("loss") or before == name:
        values = {
            number: value
            for number, value in recorded.items()
            if _NUMBERS.get(number) == name
        } | values
    return _LOSSES[name](values)


def notes(about: Mapping[str, Any], config: TrainingConfig, stem: str) -> list[str]:
    """What is said of the loss and not simulated, in words."""
    recorded = told.loss(about, f"{stem}.json: about")
    name = recorded.get("loss", "")
    if not config.loss and not name and "huber_delta" in recorded:
        return ["The recording's huber_delta counts beside a loss of 'huber' alone."]
    if config.loss or not name or _simple(name) in _TASKS:
        return []
    unknown = (
        f"The recording's loss {name!r:.40} is not known: clients are taken to have the "
        "usual one of their target (--loss)."
    )
    return [unknown]


def _simple(text: str) -> str:
    """A loss as it is called here."""
    bare = "".join(filter(str.isalnum, text.lower())).removesuffix("loss")
    spelt = {name.replace("_", ""): name for name in _TASKS} | _CALLED
    return spelt.get(bare, text)


def _named(where: str, text: str, task: str, error: type[Exception]) -> str:
    """Name of a loss of this task; empty for none, or one that only a recording knows."""
    name = _simple(text)
    fitting = [each for each, whose in _TASKS.items() if whose == task]
    if name in fitting or not text:
        return name
    if name not in _TASKS and error is TranscriptError:
        return ""
    own = ", or package.module:attribute" if error is ConfigError else ""
    hint = f", which is of {_TASKS[name]} targets (--task)" if name in _TASKS else ""
    raise error(
        f"{where}: expected {' or '.join(fitting)}{own} for a {task} target, got "
        f"{text}{hint}"
    )


def _own(named: str, given: Any, task: str, outputs: int) -> ElementLossFn:
    """A user's own, `(output, target) -> []`."""
    found: Any = imported.attribute("--loss", named) if given is None else given
    shape = () if outputs == 1 else (outputs,)
    target = jnp.int32 if task == "multiclass" else jnp.float32
    output = jax.ShapeDtypeStruct(shape, jnp.float32)
    said = f"--loss: expected a function of an output {list(shape)} and a target []"
    if not isinstance(found, Callable):
        raise ConfigError(f"{said}, got {type(found).__name__}")
    try:
        loss = jax.eval_shape(found, output, jax.ShapeDtypeStruct((), target))
    except Exception as error:  # a stranger's function: whatever it raises
        reason = " ".join(str(error).split())
        raise ConfigError(f"{said}: {reason:.200}") from error
    if not isinstance(found, Hashable):
        kind = type(found).__name__
        raise ConfigError(
            f"{said} that is hashable, as a frozen dataclass is, got {kind}"
        )
    if getattr(loss, "shape", None) != ():
        got = list(getattr(loss, "shape", ())) or type(loss).__name__
        raise ConfigError(f"{said}, of one row, that returns a number [], got {got}")
    if not jnp.issubdtype(loss.dtype, jnp.floating):
        raise ConfigError(f"{said} that returns a float, got {loss.dtype}")
    return found


def _logistic(values: Mapping[str, float]) -> ElementLossFn:
    weight = values.get("pos_weight", 1.0)
    return losses.logistic if weight == 1 else losses.WeightedLogistic(weight)


def _cross_entropy(values: Mapping[str, float]) -> ElementLossFn:
    share = values.get("label_smoothing", 0.0)
    return losses.SmoothedCrossEntropy(share) if share else losses.cross_entropy


_LOSSES: dict[str, Callable[[Mapping[str, float]], ElementLossFn]] = {
    "squared": lambda values: losses.squared,
    "absolute": lambda values: losses.absolute,
    "huber": lambda values: losses.Huber(values.get("huber_delta", 1.0)),
    "logistic": _logistic,
    "cross_entropy": _cross_entropy,
}
