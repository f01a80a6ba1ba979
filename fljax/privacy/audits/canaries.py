"""What differs between two neighbouring federations, and how it gets into a training.

A canary takes the place of one row of one client, or of all that a client sends. The two
federations are alike in everything else: numbers of rows, schedules, and who trains.

| kind          | with it                                                         |
|---------------|-----------------------------------------------------------------|
| `row`         | the row as it is                                                |
| `mislabelled` | the row with the target that is farthest from its own           |
| `outlier`     | the row with its numeric columns ten times as large             |
| `gradient`    | a gradient in a direction of its own, far above every clip      |
| `client`      | an update in such a direction, in place of what the client sends|

What it is compared with are the `neighbours`: 'remove', there is no row (no update);
'replace', the row as it is, for a gradient its negative; 'sensitive', the row with
another value of its sensitive column.
"""

import dataclasses
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import losses, per_example
from fljax.types import Array, Features, Params, PyTree, Rows

Kind = Literal["row", "mislabelled", "outlier", "gradient", "client"]
Neighbours = Literal["remove", "replace", "sensitive"]
_FAR = 10.0  # times which an outlier's columns are enlarged
_LARGE = 1e6  # norm of a canary's gradient or update before it is clipped


class Canary(NamedTuple):
    """What is planted.

    Attributes:
      kind: as in the table above.
      neighbours: what it is compared with.
      client: whose row it takes, or in whose place it is.
      row: which of the client's rows; the last by default.
      values: `[2, W]` sensitive blocks that are compared, for 'sensitive'.
    """

    kind: Kind = "gradient"
    neighbours: Neighbours = "remove"
    client: int = 0
    row: int = -1
    values: Array | None = None

    @property
    def fixed(self) -> bool:
        """Whether its direction is the same whatever the model."""
        return self.kind in ("gradient", "client")

    def __str__(self) -> str:
        compared = {
            "remove": "left out" if self.kind != "client" else "without update",
            "replace": "its negative" if self.fixed else "the row as it is",
            "sensitive": "another value of its sensitive column",
        }[self.neighbours]
        unit = "client" if self.kind == "client" else "record"
        return f"one {unit}: {self.kind} against {compared}"


class Marked(NamedTuple):
    """Inputs of a row that may be a canary.

    Attributes:
      x: as the model takes them.
      there: [] float, 0 for a row that is left out.
      canary: [] float, sign of a gradient canary, 0 for a row like any other.
    """

    x: PyTree
    there: Array
    canary: Array


def check(canary: Canary) -> None:
    """Refuses what does not fit together.

    Raises:
      ValueError: naming the field.
    """
    kinds, compared = ("gradient", "client"), ("remove", "replace", "sensitive")
    if canary.kind not in ("row", "mislabelled", "outlier", *kinds):
        raise ValueError(f"canary: unknown kind {canary.kind!r}")
    if canary.neighbours not in compared:
        raise ValueError(f"canary: unknown neighbours {canary.neighbours!r}")
    if canary.neighbours == "sensitive" and (canary.fixed or canary.values is None):
        raise ValueError("canary: 'sensitive' needs a row and two values of its column")
    if canary.kind == "row" and canary.neighbours == "replace":
        raise ValueError("canary: a row cannot replace itself; compare 'remove'")


def place(sizes: Array, canary: Canary) -> int:
    """Position of the canary's row in rows that are sorted by client.

    Raises:
      ValueError: there is no such client or row.
    """
    sizes = np.asarray(sizes)
    if not 0 <= canary.client < len(sizes):
        raise ValueError(f"canary: expected a client below {len(sizes)}, got {canary}")
    count = int(sizes[canary.client])
    if not -count <= canary.row < count:
        raise ValueError(f"canary: expected one of {count} rows, got {canary.row}")
    return int(sizes[: canary.client].sum()) + canary.row % count


def neighbours(rows: Rows, at: int, canary: Canary) -> Rows:
    """Both federations' rows, leaves `[2, N, ...]`: without and with the canary.

    Args:
      rows: leaves `[N, ...]`, `x` as the model takes it.
      at: position of the canary.
      canary: what is planted.

    Raises:
      ValueError: for a sensitive column of rows that are not tabular.
    """
    if canary.neighbours == "sensitive" and not isinstance(rows.x, Features):
        raise ValueError("canary: 'sensitive' needs tabular rows")
    count = len(rows.y)
    y = np.stack([rows.y, rows.y])
    x: Any = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), rows.x)
    there, sign = np.ones((2, count), np.float32), np.zeros((2, count), np.float32)
    if canary.kind == "mislabelled":
        y[1, at] = _wrong(rows.y, at)
    if canary.kind == "outlier":
        x = _scaled(x, at)
    if canary.kind == "gradient":
        sign[:, at] = -1, 1
    if canary.neighbours == "remove" and canary.kind != "client":
        there[0, at] = 0
    if canary.neighbours == "sensitive":
        x = _valued(x, at, np.asarray(canary.values))
    return Rows(Marked(x, there, sign), y)


def _wrong(y: Array, at: int):
    """Of all targets that occur the one farthest from the row's own."""
    known = np.unique(np.asarray(y))
    return known[np.argmax(np.abs(known.astype(float) - float(y[at])))]


def _scaled(x, at: int):
    def leaf(values):
        if not np.issubdtype(values.dtype, np.floating):
            return values
        values = values.copy()
        values[1, at] *= _FAR
        return values

    return jax.tree.map(leaf, x)


def _valued(x, at: int, values: np.ndarray):
    numeric = np.array(x.numeric)
    numeric[:, at, numeric.shape[-1] - values.shape[-1] :] = values
    return x._replace(numeric=numeric)


def direction(shapes: Params, seed: int) -> Params:
    """A random unit vector, of which no array has more than its share of parameters.

    What all rows have in common, such as a gradient of the last bias, is hardly in it.

    Args:
      shapes: of the model, as `jax.eval_shape` says them.
      seed: of the draw.
    """
    rng = np.random.default_rng(seed)
    drawn = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), shapes)
    norm = np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(drawn)))
    return jax.tree.map(
        lambda leaf, like: np.asarray(leaf / norm, like.dtype), drawn, shapes
    )


@dataclasses.dataclass(frozen=True, eq=False)  # holds arrays: no two are alike
class PlantedLoss:
    """The loss of `Marked` rows: a gradient canary's is a line in its direction.

    Attributes:
      loss_fn: of rows that are no canaries.
      direction: unit vector in the shape of params.
    """

    loss_fn: losses.LossFn
    direction: Params

    def __call__(self, params: Params, x: Marked, y: Array) -> jax.Array:
        """Loss [] of one row."""
        along = jax.tree.map(lambda p, u: jnp.sum(p * u), params, self.direction)
        line = _LARGE * jax.tree.reduce(jnp.add, along)
        # Nothing but a slope.
        line = x.canary * (line - jax.lax.stop_gradient(line))
        return jnp.where(x.canary != 0, line, self.loss_fn(params, x.x, y))

    def per_example(
        self, params: Params, x: Marked, y: jax.Array
    ) -> per_example.PerExample:
        """As cheaply as those of the loss: a canary's gradient is known."""
        each = per_example.gradients(self.loss_fn, params, x.x, y)
        is_canary, steep = x.canary != 0, _LARGE * x.canary
        sizes = jax.tree.map(lambda u: jnp.sum(jnp.square(u)), self.direction)
        squares = jax.tree.map(
            lambda s, size: jnp.where(is_canary, jnp.square(steep) * size, s),
            each.squares,
            sizes,
        )

        def with_canary(of_rows, power):
            def total(weights):
                rest = jax.tree.map(lambda w: jnp.where(is_canary, 0, w), weights)
                return jax.tree.map(
                    lambda found, u, w: found + jnp.sum(w * steep**power) * u**power,
                    of_rows(rest),
                    self.direction,
                    weights,
                )

            return total

        return per_example.PerExample(
            jnp.where(is_canary, 0, each.values),
            squares,
            with_canary(each.weighted_sum, 1),
            with_canary(each.weighted_squares, 2),
        )


def large(direction: Params) -> Params:
    """An update in a direction, far above every clip."""
    return jax.tree.map(lambda leaf: _LARGE * leaf, direction)
