"""Small entries set to zero: gradient pruning and selective sharing.

The threshold is global, over the entries of all arrays together. Neither promises
anything in the sense of differential privacy: what is left is sent as it is.

* `pruning(ratio)` zeroes a fraction of the entries ("compression ratio" of Wei et al.
  2021, figure 5; Zhu et al. 2019, section 5.2). The authors' notebook zeroes every entry
  up to and including the one at the threshold, and finds the threshold in the last
  example of a batch only; here exactly the stated number is zeroed, fewer where entries
  tie.
* `dssgd(fraction)` uploads the fraction of the coordinates that changed most (DSSGD of
  Shokri & Shmatikov, CCS 2015, theta_u with their criterion "largest values"); a
  coordinate that is not uploaded counts as unchanged. Everything is downloaded; their
  thresholds, noise and asynchronous orders are not part of it. Wei et al. 2021 compare
  with DSSGD and do not say which fraction they take.
"""

import jax
import jax.numpy as jnp

from fljax.defenses.checks import check, check_rate
from fljax.defenses.definition import Definition, Number, Setting
from fljax.defenses.effects import Effects
from fljax.types import Array, Defense, PyTree


def prune(tree: PyTree, ratio: float | Array) -> PyTree:
    """Zeroes the entries of smallest magnitude, of gradients or of any tree.

    Args:
      tree: arrays.
      ratio: [] fraction of all entries to zero, rounded to whole entries; traceable.
    """
    flat = [jnp.abs(leaf).ravel() for leaf in jax.tree.leaves(tree)]
    magnitudes = jnp.sort(jnp.concatenate(flat))
    count = jnp.round(ratio * magnitudes.size).astype(jnp.int32)
    kept = magnitudes[jnp.minimum(count, magnitudes.size - 1)]
    threshold = jnp.where(count < magnitudes.size, kept, jnp.inf)
    return jax.tree.map(
        lambda leaf: jnp.where(jnp.abs(leaf) < threshold, 0, leaf), tree
    )


def pruning(ratio: float | Array) -> Defense:
    """Sends a delta without its smallest entries.

    Args:
      ratio: [] fraction ZEROED, in [0, 1); traceable.

    Raises:
      ValueError: for a ratio out of range.
    """
    check("ratio", ratio, lambda r: (r >= 0) & (r < 1), "in [0, 1)")
    return Defense(encode=_sends_pruned(ratio), name="pruning")


def dssgd(fraction: float | Array) -> Defense:
    """Sends the coordinates of a delta that changed most.

    Args:
      fraction: [] theta_u, fraction SENT, in (0, 1]; traceable.

    Raises:
      ValueError: for a fraction out of range.
    """
    check_rate("fraction", fraction)
    return Defense(encode=_sends_pruned(1 - fraction), name="dssgd")


def _sends_pruned(ratio):
    def encode(key, delta, sender):
        del key, sender
        return prune(delta, ratio)

    return encode


def _build_pruning(setting: Setting, *, ratio) -> Defense:
    del setting
    return pruning(ratio)


def _build_dssgd(setting: Setting, *, fraction) -> Defense:
    del setting
    return dssgd(fraction)


PRUNING = Definition(
    build=_build_pruning,
    effects=lambda *, ratio: Effects(share=1 - ratio),
    parameters=(Number("ratio", "share of the entries ZEROED", min=0, below=1),),
    acts="messages",
    promise="what is left of an update is sent as it is",
)
DSSGD = Definition(
    build=_build_dssgd,
    effects=lambda *, fraction: Effects(share=fraction),
    parameters=(Number("fraction", "share of the entries SENT", above=0, max=1),),
    acts="messages",
    promise="what is sent of an update is sent as it is",
)
