"""Defenses by name: what `--defense_name` can ask for, and what each must be told.

Several names, separated by commas, are one defense if they act at different places.

| name | place | needs |
|---|---|---|
| `dp_sgd`, `fed_cdp`, `fed_cdp_decay` | local steps | clip, sigma or epsilon |
| `median` | local steps | clips to the median norm; noise if wanted |
| `fed_sdp` | messages, or the server (`--defense_where`) | clip, sigma or epsilon |
| `gaussian`, `laplace` | messages | noise |
| `pruning` | messages | ratio |
| `dssgd` | messages | fraction |

Batches are Poisson samples for what rests on them, DP-SGD and the recommended mode of
Fed-CDP, and else those of the schedule: disjoint, in one pass after the other.
"""

import math
from typing import NamedTuple

from experiments import named_defenses
from experiments.aia.settings import DefenseConfig
from fljax import defenses, losses
from fljax.defenses import clipping
from fljax.driver.config import ConfigError
from fljax.types import Array, Defense, Sampling

_DECAY = 3.0  # 6 to 2 in Wei et al. 2021, section VII-A


class Numbers(NamedTuple):
    """Numbers of a defense that differ by seed; all leaves `[seeds, ...]`.

    Attributes:
      clip: `[seeds]`, NaN where nothing is clipped to a number.
      step_noise: `[seeds, C]` sigma of each client's local steps.
      message_noise: `[seeds]` sigma of messages.
      sampling_rate: `[seeds, C]` of each of a client's rows into a batch.
      batch_size: `[seeds, C]` expected rows of a batch; rows of a full one if batches
        are no Poisson samples.
      participation: `[seeds]` rate of each client in a round.
      num_summed: `[seeds]` messages of equal weight whose noise a sum has, at least.
    """

    clip: Array
    step_noise: Array
    message_noise: Array
    sampling_rate: Array
    batch_size: Array
    participation: Array
    num_summed: Array


class Told(NamedTuple):
    """What is the same for all seeds.

    Attributes:
      config: the flags.
      loss_fn: of one example.
      num_layers: arrays of parameters.
      num_rounds: of the training, over which a clip decays.
      drawn: how clients are drawn into rounds: 'all' unless numbers are fixed.
    """

    config: DefenseConfig
    loss_fn: losses.LossFn
    num_layers: int
    num_rounds: int
    drawn: Sampling


class _Demand(NamedTuple):
    """What a name asks for.

    Attributes:
      needs: flags without which the defense cannot be made.
      promise: why it promises nothing, empty where it does promise something.
    """

    needs: tuple[str, ...]
    promise: str = ""


_UNBOUNDED = "no noise hides an update whose size has no bound"
_DEMANDS = {
    "dp_sgd": _Demand(("clip",)),
    "fed_cdp": _Demand(("clip",)),
    "fed_cdp_decay": _Demand(("clip",)),
    "fed_sdp": _Demand(("clip",)),
    "median": _Demand(
        (), "the clip depends on the examples, so that nothing has a bound"
    ),
    "gaussian": _Demand(("noise",), _UNBOUNDED),
    "laplace": _Demand(("noise",), _UNBOUNDED),
    "pruning": _Demand(("ratio",), "what is left of an update is sent as it is"),
    "dssgd": _Demand(("fraction",), "what is sent of an update is sent as it is"),
}
NAMES = tuple(_DEMANDS)


def chosen(config: DefenseConfig) -> tuple[str, ...]:
    """Names of the defenses, none without.

    Raises:
      ConfigError: for a name that is not known, or one beside none.
    """
    names = tuple(part.strip() for part in config.name.split(","))
    if names == ("none",):
        return ()
    for name in names:
        if name not in _DEMANDS:
            known = f"none, or some of {', '.join(_DEMANDS)}"
            raise ConfigError(f"--defense_name: expected {known}, got {name!r}")
    return names


def label(config: DefenseConfig) -> str:
    """Of the result rows."""
    return "+".join(chosen(config)) or "none"


def check(config: DefenseConfig) -> None:
    """Refuses flags that do not make the defenses that they name.

    Raises:
      ConfigError: naming the flag.
    """
    for name in chosen(config):
        for flag in _DEMANDS[name].needs:
            if getattr(config, flag) is None:
                raise ConfigError(
                    f"--defense_{flag}: expected a number for {name}, got none"
                )
    given = config.clip
    if clips(config) is not None and (not given or len(set(given)) < len(given)):
        got = ",".join(f"{clip:g}" for clip in given) or "none"
        raise ConfigError(f"--defense_clip: expected distinct numbers, got {got}")
    if config.sigma is not None and config.epsilon is not None:
        raise ConfigError(
            "--defense_sigma: expected none beside --defense_epsilon="
            f"{config.epsilon:g}, got {config.sigma:g}"
        )


def clips(config: DefenseConfig) -> tuple[float, ...] | None:
    """Clips to choose from, None where nothing is clipped to a number."""
    needs = (_DEMANDS[name].needs for name in chosen(config))
    return config.clip if any("clip" in each for each in needs) else None


def poisson(config: DefenseConfig) -> bool:
    """Whether batches must be Poisson samples."""
    return any(named_defenses.needs_poisson(n, config.mode) for n in chosen(config))


def unpromised(config: DefenseConfig) -> str:
    """Why there is no guarantee, for defenses that all have none."""
    return "; ".join(f"{name}: {_DEMANDS[name].promise}" for name in chosen(config))


def build(told: Told, numbers: Numbers) -> Defense:
    """The defense of one seed.

    Raises:
      ValueError: for numbers out of range, unless they are traced, or for two defenses
        at one place.
    """
    config = told.config
    setting = named_defenses.Setting(
        told.loss_fn,
        told.num_layers,
        told.num_rounds,
        mode=config.mode,
        batches="poisson" if poisson(config) else "fixed",
        sampling_rate=numbers.sampling_rate,
        batch_size=numbers.batch_size,
        where=config.where,
    )
    if config.where == "server":  # who sees a message, as elsewhere, sees whose it is
        setting = setting._replace(
            drawn=told.drawn,
            participation=numbers.participation,
            num_summed=numbers.num_summed,
        )
    number = {
        "fed_sdp": numbers.message_noise,
        "median": config.noise or 0.0,
        "gaussian": config.noise,
        "laplace": (config.noise or 0.0) / math.sqrt(2),
        "pruning": config.ratio,
        "dssgd": config.fraction,
    }
    made = []
    for name in chosen(config):
        clip, plain = numbers.clip, name.removesuffix("_decay")
        if plain != name:
            end = clip / _DECAY if config.clip_end is None else config.clip_end
            clip = clipping.linear_decay(clip, end, num_rounds=told.num_rounds)
        sigma = number.get(name, numbers.step_noise)
        made.append(named_defenses.make(plain, setting, sigma, clip))
    return defenses.compose(*made)
