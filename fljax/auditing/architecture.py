"""The audited model: from `--model`, and how a transcript's arrays fit it.

The networks of `--model` have ReLU between dense layers `inputs @ kernel + bias`, from the
inputs to the output: `TabularDense_0`, `Dense_0`, `Dense_1`, ..., each with `kernel`
`[inputs, outputs]` (PyTorch's `weight`, transposed) and `bias` `[outputs]`. A linear
model has the first alone.

Arrays of a transcript are matched by name. Where names differ, shapes decide: each
array goes where its shape is the only one; arrays of equal shapes must have names that
differ in numbers only (`layers.2.bias`, `layers.4.bias`), and so must those of the model,
`TabularDense` counting as `Dense`; they go in their order. Running
statistics of batch norm go to leaves that are called so, never to trained ones, and are
held constant: no gradient, and in a message no change.
"""

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fljax import models
from fljax.auditing import imported, in_order, normalisation
from fljax.auditing.settings import TrainingConfig
from fljax.driver.config import ConfigError
from fljax.transcript import TranscriptError
from fljax.types import Features, Model, Params

_NUMBER = re.compile(r"\d+")
_NAMED = 12  # inputs, in a message
_LESS = "--drop leaves columns out, --drop_first the first category of each"
_WIDTHS = re.compile(r"mlp:\d+(,\d+)*")
Shapes = dict[str, tuple[int, ...]]


@functools.lru_cache(maxsize=16)
def _dense(inputs: int, hidden: tuple[int, ...], outputs: int) -> Model:
    """One object for one network, so that the next audit finds what was compiled."""
    return models.mlp(inputs, hidden=hidden, outputs=outputs)


def build(
    config: TrainingConfig,
    order: np.ndarray,
    outputs: int,
    given: Model | None = None,
) -> Model:
    """The model on inputs `[public | sensitive]`, which it reads in its own order.

    Args:
      config: names the model.
      order: `[D]`, from `rows.Columns`.
      outputs: 1 for a number or two classes, else the classes.
      given: the model itself, whatever `config` names.

    Returns:
      A `Model` whose `apply` takes `Features` without codes.

    Raises:
      ConfigError: `--model` names none, or its output is not as expected.
    """
    spec = config.model
    if given is not None:
        if not (hasattr(given, "init") and hasattr(given, "apply")):
            raise ConfigError(
                "--model: expected linear, mlp:WIDTHS such as mlp:128,64, or a "
                f"fljax.types.Model with init and apply, got {type(given).__name__}"
            )
        inner = given
    elif spec == "linear":
        inner = _dense(len(order), (), outputs)
    elif _WIDTHS.fullmatch(spec):
        hidden = tuple(map(int, spec.removeprefix("mlp:").split(",")))
        if not all(hidden):
            raise ConfigError(f"--model: expected widths of 1 or more, got {spec}")
        inner = _dense(len(order), hidden, outputs)
    else:
        inner = _imported(spec)

    apply = in_order.of(inner, order)
    model = Model(inner.init, apply)
    row = Features(jnp.zeros(len(order)), jnp.zeros(0, jnp.int32))
    try:
        found = jax.eval_shape(apply, shapes_of(model), row)
    except Exception as error:  # a stranger's model: whatever it raises
        reason = str(error).strip().split("\n")[0]
        raise ConfigError(
            f"--model: {spec} does not take a row of {len(order)} inputs ({_LESS}): "
            f"{reason:.200}"
        ) from error
    expected = () if outputs == 1 else (outputs,)
    if getattr(found, "shape", None) != expected:
        raise ConfigError(
            f"--model: expected {spec} to give an output of shape {list(expected)} for "
            f"one row, got {list(getattr(found, 'shape', ()))}"
        )
    return model


def shapes_of(model: Model) -> Params:
    """Its parameters as shapes."""
    return jax.eval_shape(model.init, jax.random.key(0))


def align(
    model: Model, params: Params, delta: Params, stem: str, inputs: Sequence[str] = ()
) -> tuple[Params, Params]:
    """A transcript's `params` and `delta` in the structure of the model's parameters.

    Args:
      model: the audited one.
      params: leaves `[R, ...]`, named in any way.
      delta: leaves `[R, K, ...]`, named likewise.
      stem: of the transcript, for messages.
      inputs: names of the model's, likewise.

    Raises:
      TranscriptError: listing what was expected and found.
    """
    shapes = shapes_of(model)
    treedef = jax.tree.structure(shapes)
    wanted = {name: leaf.shape for name, leaf in _named(shapes).items()}
    sent, gone = _named(params), _named(delta)
    found = {name: leaf.shape[1:] for name, leaf in sent.items()}
    places = _match(wanted, found, stem, inputs)
    changes = {
        name: np.zeros_like(each) if normalisation.is_statistic(name) else each
        for name, each in gone.items()
    }
    return tuple(
        treedef.unflatten([arrays[places[name]] for name in wanted])
        for arrays in (sent, changes)
    )


def still(delta: Params) -> list[str]:
    """Names of the arrays that no message moves; none if nothing moves.

    Args:
      delta: of all messages, from `align`.
    """
    moves = {name: bool(np.any(leaf)) for name, leaf in _named(delta).items()}
    found = [n for n, m in moves.items() if not m and not normalisation.is_statistic(n)]
    return found if any(moves.values()) else []


def notes(still: Sequence[str]) -> list[str]:
    """What to say of arrays that are held constant."""
    said = "the same in all messages, so taken for not trained: attacks hold them constant."
    return [f"{', '.join(still)}: {said}"] if still else []


def names(params: Params) -> list[str]:
    """Of a transcript's arrays, as `LAYER/NAME`."""
    return list(_named(params))


def _imported(spec: str) -> Model:
    """`package.module:attribute`, the user's own code."""
    if ":" not in spec:
        raise ConfigError(
            "--model: expected linear, mlp:WIDTH,... or package.module:attribute, "
            f"got {spec!r}"
        )
    found = imported.attribute("--model", spec)
    made: Any = found
    if callable(found) and not _is_model(found):
        made = imported.called("--model", spec, found)
    if not _is_model(made):
        raise ConfigError(
            f"--model: expected {spec} to be a fljax.types.Model (init, apply), or a "
            f"function without arguments that returns one, got {type(made).__name__}"
        )
    return made


def _is_model(value: Any) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("init", "apply"))


def _match(
    wanted: Shapes, found: Shapes, stem: str, inputs: Sequence[str]
) -> dict[str, str]:
    """The model's name -> the transcript's."""
    if wanted == found:
        return {name: name for name in wanted}
    if sorted(wanted.values()) != sorted(found.values()):
        turned = sorted(shape[::-1] for shape in found.values())
        hint = ""
        if sorted(wanted.values()) == turned:
            hint = (
                "; kernels are [inputs, outputs], transpose PyTorch's weights as "
                "transcript.from_torch does"
            )
        hint = hint or _looks_like(wanted, found) or normalisation.hint(wanted, found)
        hint = hint or _other_inputs(wanted, found, inputs)
        raise TranscriptError(
            f"{stem}: its arrays are not those of --model: expected "
            f"{_listed(wanted)}, found {_listed(found)}{hint}"
        )
    if set(wanted) == set(found):
        raise TranscriptError(
            f"{stem}: arrays have the names of --model with other shapes: expected "
            f"{_listed(wanted)}, found {_listed(found)}"
        )
    places = {}
    for shape in dict.fromkeys(wanted.values()):
        ours = [name for name, each in wanted.items() if each == shape]
        theirs = [name for name, each in found.items() if each == shape]
        if len(set(map(normalisation.is_statistic, [*ours, *theirs]))) > 1:
            raise TranscriptError(
                f"{stem}: cannot tell which of {', '.join(theirs)} is which of "
                f"{', '.join(ours)}: some are running statistics; give them equal names"
            )
        if max(len(set(map(_kind, names))) for names in (ours, theirs)) > 1:
            raise TranscriptError(
                f"{stem}: cannot tell which of {', '.join(theirs)} is which of "
                f"{', '.join(sorted(ours, key=_depth))}, all of shape {list(shape)}; "
                "record them under the latter names"
            )
        places |= zip(sorted(ours, key=_depth), sorted(theirs, key=_numbers))
    return places


def _looks_like(wanted: Shapes, found: Shapes) -> str:
    """`; they look like mlp:64`, where they make a network on as many inputs."""
    inputs = wanted.get("TabularDense_0/kernel", (0,))[0]
    kernels = [name for name in sorted(found, key=_numbers) if len(found[name]) == 2]
    for turned in (False, True):
        shapes = [found[name][::-1] if turned else found[name] for name in kernels]
        widths = [inputs, *(shape[1] for shape in shapes)]
        biases = [shape for shape in found.values() if len(shape) != 2]
        chained = [shape[0] for shape in shapes] == widths[:-1]
        if shapes and chained and sorted(biases) == sorted((w,) for w in widths[1:]):
            hidden = ",".join(map(str, widths[1:-1]))
            named = f"mlp:{hidden}" if hidden else "linear"
            axes = ", weights [outputs, inputs] to transpose" if turned else ""
            made = wanted[max(wanted, key=_depth)][-1]
            if made != widths[-1]:
                axes += (
                    f" with {widths[-1]} outputs, where the target makes {made} "
                    "(--task, --classes)"
                )
            return f"; they look like {named}{axes}"
    return ""


def _other_inputs(wanted: Shapes, found: Shapes, inputs: Sequence[str]) -> str:
    """`; 9 inputs were trained on, ...`, where nothing else differs."""
    ours, theirs = Counter(wanted.values()), Counter(found.values())
    match list((ours - theirs).elements()), list((theirs - ours).elements()):
        case [(made, width)], [(trained, same)]:
            if width != same or made != len(inputs):
                return ""
        case _:
            return ""
    shown = list(inputs)
    if made > _NAMED:
        half = _NAMED // 2
        shown = [*inputs[:half], f"{made - 2 * half} more", *inputs[-half:]]
    drop = f" ({_LESS})" if made > trained else ""
    return (
        f"; {trained} inputs were trained on, the rows make {made}: "
        f"{', '.join(shown)}{drop}"
    )


def _kind(name: str) -> str:
    """A name without what tells layers of the same kind apart."""
    return _NUMBER.sub("#", name.replace("TabularDense", "Dense"))


def _depth(name: str):
    """Sorts the arrays of a model from its inputs to its output."""
    return not name.startswith("TabularDense"), *_numbers(name)


def _numbers(name: str):
    return [int(each) for each in _NUMBER.findall(name)], name


def _named(tree: Params) -> dict[str, Any]:
    return {
        normalisation.name_of(path): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _listed(shapes: Shapes) -> str:
    return ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
