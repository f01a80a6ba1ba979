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


class Block(NamedTuple):
    """Columns `start` to `stop - 1`: the one-hot code of a category.

    Attributes:
      start: first column.
      stop: one past the last.
      dropped: whether one more category, the reference, is coded by zeros.
    """

    start: int
    stop: int
    dropped: bool = False


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


def tabular(space: Space, blocks: Sequence[Block]) -> Space:
    """Rows `[B, W]` whose blocks are points of a simplex; other columns stay free.

    Args:
      space: of plain rows `[B, W]`, whose columns in `blocks` become logits.
      blocks: the categorical columns, none in two blocks.

    Raises:
      ValueError: two blocks overlap, or one is empty.
    """
    columns = [c for block in blocks for c in range(block.start, block.stop)]
    if len(set(columns)) < len(columns) or any(b.start >= b.stop for b in blocks):
        raise ValueError(f"blocks: expected separate ranges of columns, got {blocks}")

    def decode(variables):
        guess = space.decode(variables)
        x = guess.x
        for block in blocks:
            x = _set(x, block, _simplex(guess.x, block)[:, block.dropped :])
        return Guess(x, guess.y)

    nearest = space.project
    if nearest is None:
        return Space(space.init, decode)

    def project(variables):
        moved = nearest(variables)
        x = moved["x"]
        for block in blocks:
            # Logits know no box.
            x = _set(x, block, variables["x"][:, block.start : block.stop])
        return moved | {"x": x}

    return Space(space.init, decode, project)


def harden(x: jax.Array, blocks: Sequence[Block]) -> jax.Array:
    """Rows `[B, W]` with the most probable category of each block as a one-hot code."""
    for block in blocks:
        codes = x[:, block.start : block.stop]
        if block.dropped:
            rest = 1 - jnp.sum(codes, axis=1, keepdims=True)
            codes = jnp.concatenate([rest, codes], axis=1)
        hard = jax.nn.one_hot(jnp.argmax(codes, axis=1), codes.shape[1])
        x = _set(x, block, hard[:, block.dropped :])
    return x


def as_features(space: Space) -> Space:
    """Plain rows `[B, W]` as the `Features` of a model with `W` numeric columns.

    Its params have the layout of a model on `[numeric, one_hot]`: attack the latter
    with `models.mlp(W, ...)` and the same params.
    """

    def decode(variables):
        x, y = space.decode(variables)
        return Guess(Features(x, jnp.zeros((len(x), 0), jnp.int32)), y)

    return Space(space.init, decode, space.project)


def _simplex(logits, block):
    """Probabilities `[B, K]` of a block's categories, the reference first."""
    scores = logits[:, block.start : block.stop]
    return jax.nn.softmax(jnp.pad(scores, ((0, 0), (int(block.dropped), 0))))


def _set(x, block, values):
    return x.at[:, block.start : block.stop].set(values)
