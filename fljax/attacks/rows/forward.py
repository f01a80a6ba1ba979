"""Which rows' hidden units lie in the span of the second layer's gradient.

That gradient is `sum_i (1, h_i) e_i^T`, `h_i` being the hidden units of row i. Of no row
that is not in the batch do they lie in its span, as long as the batch is smaller than
both layers. They change continuously with a row's numbers, so that numbers that the
categories leave open are solved for by Gauss-Newton steps.
"""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fljax import precision
from fljax.attacks.rows import span
from fljax.attacks.rows.categories import Rows
from fljax.attacks.rows.network import Network
from fljax.types import Params

SECOND = "Dense_0"  # name of the second layer of an `MLP`
_AT_ONCE = 512
_FEW, _MANY = 5, 20  # steps of all rows, and of the nearest
_DAMPING, _EASIER, _HARDER = 1e-3, 0.2, 8.0
_ABOVE = 10  # times the largest singular value of rounding
_CLOSE = 1e-2  # distance from which all numbers are free
_TOWARDS = 0.1  # deviations from a known row, to which steps lead then
_TOWARDS_UNITS = 0.05  # the same of their hidden units, to length 1


class Hidden(NamedTuple):
    """The first layer, and what hidden units of the batch's rows are orthogonal to.

    Attributes:
      layer: `kernel` `[D, H]` and `bias` `[H]`.
      units: `(params, outputs of the layer [..., H]) -> hidden units [..., H]`.
      params: of all layers.
      gradient: `[1 + H, O]` of the second layer, the bias first.
      outside: `[1 + H, c]` orthonormal.
      rank: different rows in the batch.
    """

    layer: Params
    units: Callable[[Params, jax.Array], jax.Array]
    params: Params
    gradient: np.ndarray
    outside: np.ndarray
    rank: int

    def shown(self, x: np.ndarray) -> np.ndarray:
        """A leading 1 and the hidden units of encoded rows, `[n, 1 + H]`."""
        out = np.float32(x) @ self.layer["kernel"] + self.layer["bias"]
        found = [
            np.asarray(_units(self.units, self.params, part))[:count]
            for part, count in _blocks(out)
        ]
        return span.with_ones(np.concatenate(found))

    def directions(self, x: np.ndarray) -> np.ndarray:
        """The same to length 1."""
        shown = self.shown(x)
        return shown / np.linalg.norm(shown, axis=1, keepdims=True)


def hidden(network: Network, message: Params, rows: int) -> Hidden | None:
    """Looks at the second layer, None where its gradient does not tell rows apart.

    Args:
      network: an `MLP`.
      message: the gradient of a batch.
      rows: of the batch.
    """
    layer = message.get(SECOND, {})
    if "bias" not in layer or min(np.shape(layer["kernel"])) <= rows:
        return None
    gradient = np.concatenate([layer["bias"][None], layer["kernel"]]).astype(float)
    left, values, _ = np.linalg.svd(gradient, full_matrices=True)
    rank = int((values[:rows] > _ABOVE * values[rows]).sum())
    outside = np.asarray(left[:, rank:], np.float32)
    first = network.params[network.layer.name]
    return Hidden(first, network.units, network.params, gradient, outside, rank)


def solved(
    rows: Rows, numbers: np.ndarray, hidden: Hidden, nearest: int, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows `[m, D]` with their numbers solved for, and their distances `[m]`.

    First along the ways that the categories leave; close to a solution all numbers are
    free, so that it is as exact as the second layer's gradient.

    Args:
      rows: combinations of categories with a first guess of the numbers.
      numbers: `[Dn]` their places.
      hidden: of the batch.
      nearest: rows that many steps are taken for.
      known: `[k, D]` rows that are not looked for.
    """
    ways = np.zeros((rows.x.shape[1], len(numbers)))
    every = ways.copy()
    ways[numbers, : rows.ways.shape[1]] = rows.ways
    every[numbers, np.arange(len(numbers))] = 1
    if rows.ways.shape[1]:
        x, far = _stepped(rows.x, ways, hidden, _FEW)
        far[_lead_to(x, known, hidden, rows.x.shape[1] > len(numbers))] = np.inf
        best = np.argsort(far)[:nearest]
        x, far = _stepped(x[best[np.isfinite(far[best])]], ways, hidden, _MANY)
    else:
        x, far = _stepped(rows.x, ways, hidden, 0)
    return _stepped(x[far < _CLOSE], every, hidden, _MANY)


def _lead_to(
    x: np.ndarray, known: np.ndarray, hidden: Hidden, categories: bool
) -> np.ndarray:
    """Which rows `[n]` are on the way to known ones; without categories by their units,
    which may be those of every multiple of a row."""
    on_the_way = np.zeros(len(x), bool)
    if not len(known):
        return on_the_way
    if categories:
        for row in known:
            on_the_way |= np.abs(x - row).max(axis=1) < _TOWARDS
        return on_the_way
    shown = hidden.directions(np.concatenate([known, x]))
    for units in shown[: len(known)]:
        off = np.linalg.norm(shown[len(known) :] - units, axis=1)
        on_the_way |= off < _TOWARDS_UNITS
    return on_the_way


def _blocks(x: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Rows `[n, k]` in blocks of one size, and how many of each are rows."""
    for start in range(0, max(1, len(x)), _AT_ONCE):
        part = np.asarray(x[start : start + _AT_ONCE], np.float32)
        yield np.pad(part, ((0, _AT_ONCE - len(part)), (0, 0))), len(part)


def _stepped(x, ways, hidden: Hidden, steps: int):
    """In blocks, so that one program serves any number of rows."""
    network = hidden.units, hidden.params, hidden.layer
    found = []
    for part, count in _blocks(x):
        arrays = part, np.float32(ways), hidden.outside
        moved, far = _steps(*network, *arrays, steps)
        found.append((np.asarray(moved, float)[:count], np.asarray(far)[:count]))
    moved, far = (np.concatenate(each) for each in zip(*found, strict=True))
    return x + moved @ ways.T, far


@functools.partial(jax.jit, static_argnums=0)
@precision.full
def _units(units: Callable, params, out):
    return units(params, out)


@functools.partial(jax.jit, static_argnums=(0, 6))
@precision.full
def _steps(units: Callable, params, layer, x, ways, outside, steps: int):
    """Moves `[n, f]` along the ways and the distances `[n]` that they end at."""
    kernel, bias = layer["kernel"], layer["bias"]
    turned = ways.T @ kernel  # [f, H]
    start = x @ kernel + bias[None]

    def one(start):
        def outputs(moved):
            return start + moved @ turned

        def at(moved):
            found = units(params, outputs(moved))
            shown = jnp.concatenate([jnp.ones(1), found])
            off = shown @ outside
            return off, jnp.linalg.norm(off) / jnp.linalg.norm(shown)

        def along(moved):
            """How the units change along each way, `[f, H]`."""
            now = functools.partial(units, params), (outputs(moved),)
            return jax.vmap(lambda way: jax.jvp(*now, (way,))[1])(turned)

        def step(_, state):
            moved, damping, far = state
            off, _ = at(moved)
            slope = along(moved) @ outside[1:]
            square = slope @ slope.T
            size = jnp.trace(square) / len(square) + 1e-20
            damped = square + damping * size * jnp.eye(len(square))
            tried = moved - jnp.linalg.solve(damped, slope @ off)
            new = at(tried)[1]
            better = new < far
            return (
                jnp.where(better, tried, moved),
                damping * jnp.where(better, _EASIER, _HARDER),
                jnp.where(better, new, far),
            )

        still = jnp.zeros(len(turned))
        state = still, jnp.float32(_DAMPING), at(still)[1]
        moved, _, far = jax.lax.fori_loop(0, steps, step, state)
        return moved, far

    return jax.vmap(one)(start)
