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

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from experiments.aia.settings import DefenseConfig
from experiments.config import ConfigError
from fljax import defenses, losses
from fljax.defenses import clipping, dp_sgd, fed_cdp, fed_sdp, median, noise, pruning
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


class _Recipe(NamedTuple):
    """How a defense is made.

    Attributes:
      make: `(what all share, numbers of one seed) -> Defense`.
      needs: flags without which it cannot be made.
      promise: why it promises nothing, empty where it does promise something.
    """

    make: Callable[[Told, Numbers], Defense]
    needs: tuple[str, ...]
    promise: str = ""


def chosen(config: DefenseConfig) -> tuple[str, ...]:
    """Names of the defenses, none without.

    Raises:
      ConfigError: for a name that is not known, or one beside none.
    """
    names = tuple(part.strip() for part in config.name.split(","))
    if names == ("none",):
        return ()
    for name in names:
        if name not in _RECIPES:
            known = f"none, or some of {', '.join(_RECIPES)}"
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
        for flag in _RECIPES[name].needs:
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
    needs = (_RECIPES[name].needs for name in chosen(config))
    return config.clip if any("clip" in each for each in needs) else None


def poisson(config: DefenseConfig) -> bool:
    """Whether batches must be Poisson samples."""
    sampled = config.mode == "recommended"
    return any(
        name == "dp_sgd" or (name.startswith("fed_cdp") and sampled)
        for name in chosen(config)
    )


def unpromised(config: DefenseConfig) -> str:
    """Why there is no guarantee, for defenses that all have none."""
    return "; ".join(f"{name}: {_RECIPES[name].promise}" for name in chosen(config))


def build(told: Told, numbers: Numbers) -> Defense:
    """The defense of one seed.

    Raises:
      ValueError: for numbers out of range, unless they are traced, or for two defenses
        at one place.
    """
    made = (_RECIPES[name].make(told, numbers) for name in chosen(told.config))
    return defenses.compose(*made)


def _dp_sgd(told: Told, numbers: Numbers) -> Defense:
    return dp_sgd.dp_sgd(
        told.loss_fn,
        clip=numbers.clip,
        noise_multiplier=numbers.step_noise,
        sampling_rate=numbers.sampling_rate,
        batch_size=numbers.batch_size,
    )


def _fed_cdp(told: Told, numbers: Numbers, *, decay: bool) -> Defense:
    clip, last = numbers.clip, told.config.clip_end
    if decay:
        end = clip / _DECAY if last is None else last
        clip = clipping.linear_decay(clip, end, num_rounds=told.num_rounds)
    return fed_cdp.fed_cdp(
        told.loss_fn,
        clip=clip,
        noise_scale=numbers.step_noise,
        sampling_rate=numbers.sampling_rate,
        batch_size=numbers.batch_size,
        num_layers=told.num_layers,
        mode=told.config.mode,
        sampling="poisson" if poisson(told.config) else "fixed",
        num_rounds=told.num_rounds,
    )


def _fed_sdp(told: Told, numbers: Numbers) -> Defense:
    at_server = told.config.where == "server"
    return fed_sdp.fed_sdp(
        clip=numbers.clip,
        noise_scale=numbers.message_noise,
        sampling_rate=numbers.participation if at_server else 1.0,
        num_layers=told.num_layers,
        where=told.config.where,
        # Who sees a message sees whose it is.
        sampling=told.drawn if at_server else "all",
        num_summed=numbers.num_summed if at_server else 1,
    )


def _median(told: Told, numbers: Numbers) -> Defense:
    del numbers
    deviation = told.config.noise or 0.0
    return median.median_clipping(told.loss_fn, noise_deviation=deviation)


_UNBOUNDED = "no noise hides an update whose size has no bound"
_RECIPES = {
    "dp_sgd": _Recipe(_dp_sgd, ("clip",)),
    "fed_cdp": _Recipe(functools.partial(_fed_cdp, decay=False), ("clip",)),
    "fed_cdp_decay": _Recipe(functools.partial(_fed_cdp, decay=True), ("clip",)),
    "fed_sdp": _Recipe(_fed_sdp, ("clip",)),
    "median": _Recipe(
        _median, (), "the clip depends on the examples, so that nothing has a bound"
    ),
    "gaussian": _Recipe(
        lambda told, _: noise.gaussian(told.config.noise), ("noise",), _UNBOUNDED
    ),
    "laplace": _Recipe(
        lambda told, _: noise.laplace(told.config.noise / math.sqrt(2)),
        ("noise",),
        _UNBOUNDED,
    ),
    "pruning": _Recipe(
        lambda told, _: pruning.pruning(told.config.ratio),
        ("ratio",),
        "what is left of an update is sent as it is",
    ),
    "dssgd": _Recipe(
        lambda told, _: pruning.dssgd(told.config.fraction),
        ("fraction",),
        "what is sent of an update is sent as it is",
    ),
}
NAMES = tuple(_RECIPES)
