"""Messages of bounded size, without noise: the clips that frameworks ship alone.

* `norm_clipping(norm)` scales a delta down to a norm over all layers together, as the
  fixed clipping of Flower's mods and the first half of DP-FedAvg (McMahan, Ramage, Talwar
  and Zhang, ICLR 2018, "flat" clipping) do.
* `value_clipping(limit)` cuts each number off at `+-limit`, as the `gamma` of NVFlare's
  `PercentilePrivacy` does to the change of a step (Shokri and Shmatikov, CCS 2015).

Neither promises anything in the sense of differential privacy: a bound is a sensitivity,
which means nothing without noise.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from fljax.defenses import clipping
from fljax.defenses.checks import check_positive
from fljax.defenses.definition import Definition, Number, Setting
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense, PyTree


def cut(tree: PyTree, limit: float | Array) -> PyTree:
    """Every number of a tree, no further from zero than `limit` []."""
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -limit, limit), tree)


def norm_clipping(norm: float | Array) -> Defense:
    """Sends a delta whose norm over all layers is at most `norm` []; traceable.

    Raises:
      ValueError: for a norm that is not positive and finite.
    """
    check_positive("norm", norm)
    to = clipping.total(norm)
    return _sends(lambda delta: clipping.clipped(delta, to), "norm_clipping")


def value_clipping(limit: float | Array) -> Defense:
    """Sends a delta whose numbers are at most `limit` [] in magnitude; traceable.

    Raises:
      ValueError: for a limit that is not positive and finite.
    """
    check_positive("limit", limit)
    return _sends(lambda delta: cut(delta, limit), "value_clipping")


def _sends(bounded: Callable[[PyTree], PyTree], name: str) -> Defense:
    return Defense(encode=lambda key, delta, sender: bounded(delta), name=name)


def _build_norm(setting: Setting, *, norm) -> Defense:
    del setting
    return norm_clipping(norm)


def _build_value(setting: Setting, *, limit) -> Defense:
    del setting
    return value_clipping(limit)


_PROMISE = "a bound is no noise"
NORM = Definition(
    build=_build_norm,
    effects=lambda *, norm: Effects(messages="total", clip=norm),
    parameters=(Number("norm", "largest norm of a message over all layers", above=0),),
    acts="messages",
    promise=_PROMISE,
)
VALUE = Definition(
    build=_build_value,
    effects=lambda *, limit: Effects(limit=limit),
    parameters=(Number("limit", "largest magnitude of a message's numbers", above=0),),
    acts="messages",
    promise=_PROMISE,
)
