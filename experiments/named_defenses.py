"""Defenses by name: what a name and a number make of a federation's training.

| name                                | number                                        |
|-------------------------------------|-----------------------------------------------|
| `none`                              | -                                             |
| `dp_sgd`, `fed_cdp`, `fed_sdp`      | sigma, beside a clip                          |
| `median`                            | deviation of the noise on the sum             |
| `gaussian`, `laplace`               | scale of the noise on a message               |
| `gaussian_steps`, `laplace_steps`   | scale of the noise on each step's gradient    |
| `pruning`                           | fraction of a message that is zeroed          |
| `dssgd`                             | fraction of a message that is kept            |

Fed-CDP(decay) is Fed-CDP with a clip schedule. Which flags say the numbers, and under
which further names, is each program's.
"""

from typing import NamedTuple

import jax
import numpy as np

from fljax import losses
from fljax.defenses import clipping, dp_sgd, fed_cdp, fed_sdp, median, noise, pruning
from fljax.types import Array, Defense, Sampling


class Setting(NamedTuple):
    """What a defense must know of the training; numbers may be traced.

    Attributes:
      loss_fn: of one example.
      num_layers: arrays of parameters, M.
      num_rounds: for which a clip schedule is checked.
      mode: of Fed-CDP.
      batches: how a client's batches are made.
      sampling_rate: [] or `[C]` of each of her rows into a batch.
      batch_size: [] or `[C]` expected rows of a batch.
      where: Fed-SDP acts, at the 'client' or the 'server'.
      drawn: how clients come into rounds.
      participation: [] rate of each of them.
      num_summed: [] messages in a sum, of whose noise one who sees only sums meets all.
    """

    loss_fn: losses.LossFn
    num_layers: int
    num_rounds: int | None = None
    mode: fed_cdp.Mode = "per_example"
    batches: Sampling = "fixed"
    sampling_rate: Array | float = 1.0
    batch_size: Array | float = 1.0
    where: fed_sdp.Where = "client"
    drawn: Sampling = "all"
    participation: Array | float = 1.0
    num_summed: Array | int = 1


def needs_poisson(name: str, mode: fed_cdp.Mode) -> bool:
    """Whether a defense rests on batches that are Poisson samples."""
    return name == "dp_sgd" or (name.startswith("fed_cdp") and mode == "recommended")


def make(
    name: str, at: Setting, number: Array | float, clip: clipping.Clip = np.nan
) -> Defense:
    """The defense of a name.

    Args:
      name: of the table above.
      at: the training.
      number: [] or `[C]`, of the table above.
      clip: C or its schedule, for the names that have sigma.

    Raises:
      ValueError: for another name, or a concrete number out of range.
    """
    match name:
        case "none":
            return Defense(name=name)
        case "dp_sgd":
            return dp_sgd.dp_sgd(
                at.loss_fn,
                clip=clip,
                noise_multiplier=number,
                sampling_rate=at.sampling_rate,
                batch_size=at.batch_size,
                num_rounds=at.num_rounds,
            )
        case "fed_cdp":
            return fed_cdp.fed_cdp(
                at.loss_fn,
                clip=clip,
                noise_scale=number,
                sampling_rate=at.sampling_rate,
                batch_size=at.batch_size,
                num_layers=at.num_layers,
                mode=at.mode,
                sampling=at.batches,
                num_rounds=at.num_rounds,
            )
        case "fed_sdp":
            return fed_sdp.fed_sdp(
                clip=clip,
                noise_scale=number,
                sampling_rate=at.participation,
                num_layers=at.num_layers,
                where=at.where,
                sampling=at.drawn,
                num_summed=at.num_summed,
                num_rounds=at.num_rounds,
            )
        case "median":
            return median.median_clipping(at.loss_fn, noise_deviation=number)
        case "gaussian":
            return noise.gaussian(number)
        case "laplace":
            return noise.laplace(number)
        case "gaussian_steps":
            return noise.on_steps(at.loss_fn, number, jax.random.normal)
        case "laplace_steps":
            return noise.on_steps(at.loss_fn, number, jax.random.laplace)
        case "pruning":
            return pruning.pruning(number)
        case "dssgd":
            return pruning.dssgd(number)
        case _:
            raise ValueError(f"no defense is called {name!r}")
