"""What a reconstruction moves, and which examples and labels it stands for."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from fljax.attacks.inversion.seeds import Seed
from fljax.types import Array, Features, Key, PyTree

Variables = PyTree


class Guess(NamedTuple):
    """Examples and their labels.

    Attributes:
      x: `[B, ...]` or a tree of such.
      y: `[B]` labels, or `[B, K]` their probabilities.
    """

    x: PyTree
    y: Array


class Space(NamedTuple):
    """A set of guesses.

    Attributes:
      init: `(key) -> variables`; the key is consumed.
      decode: `(variables) -> Guess`, differentiable.
      project: `(variables) -> variables`, the nearest allowed ones; None where all are.
    """

    init: Callable[[Key], Variables]
    decode: Callable[[Variables], Guess]
    project: Callable[[Variables], Variables] | None = None


def examples(
    shape: Sequence[int],
    seed: Seed,
    *,
    y: Array | None = None,
    num_classes: int | None = None,
    box: tuple[float, float] | None = None,
) -> Space:
    """Examples whose every number is free.

    Args:
      shape: `(B, ...)`.
      seed: where they start.
      y: `[B]` the labels, if they are given or inferred; else they are optimised, as
        logits that start from N(0, 1).
      num_classes: K, needed where labels are optimised.
      box: limits that every number is clamped to after each step.

    Raises:
      ValueError: neither or both of `y` and `num_classes` are given, or the number of
        labels differs from B.
    """
    if (y is None) == (num_classes is None):
        raise ValueError("expected either y or num_classes, and not both")
    if y is not None and len(y) != shape[0]:
        raise ValueError(f"expected {shape[0]} labels, got {len(y)}")

    def init(key):
        key_x, key_y = jax.random.split(key)
        x = seed(key_x, shape)
        if num_classes is None:
            return {"x": x}
        return {"x": x, "logits": jax.random.normal(key_y, (shape[0], num_classes))}

    def decode(variables):
        labels = jax.nn.softmax(variables["logits"]) if y is None else y
        return Guess(variables["x"], labels)

    if box is None:
        return Space(init, decode)
    low, high = box

    def project(variables):
        return variables | {"x": jnp.clip(variables["x"], low, high)}

    return Space(init, decode, project)


def as_features(space: Space) -> Space:
    """Plain rows `[B, W]` as the `Features` of a model with `W` numeric columns.

    Its params have the layout of a model on `[numeric, one_hot]`: attack the latter
    with `models.mlp(W, ...)` and the same params.
    """

    def decode(variables):
        x, y = space.decode(variables)
        return Guess(Features(x, jnp.zeros((len(x), 0), jnp.int32)), y)

    return Space(space.init, decode, space.project)
