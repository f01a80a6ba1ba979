"""What a random number costs, by generator: bits, and normals made of them.

    python -m experiments.benchmarks.draws [--check] [--json=FILE]

Draws arrays as a defense draws the noise of one step, each with a key of its own, in one
compiled loop on one device. `unrolled` is what defenses use (`fljax.draws`), equal to
JAX's own to the last bit, which is checked first. A normal can cost no less than its bits
and the inverse error function, which are timed alone.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.benchmarks import harness
from fljax import draws, parallel
from fljax.driver.option import option
from fljax.types import Key

_LIMIT = 1.2  # of a normal, times its bits and the inverse error function
_UNROLLED, _INVERSE = "threefry, unrolled", "inverse error function"
_COLUMNS = {
    "way": ("generator", ""), "what": ("what", ""), "count": ("numbers a draw", ",d"),
    "compile_seconds": ("compile s", ".2f"), "nanoseconds": ("ns each", ".2f"),
    "millions": ("millions/s", ".4g"), "ratio": ("x unrolled", ".2f"),
}  # fmt: skip

Draw = Callable[[Key, int], jax.Array]  # (key, count) -> [count] float32


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.Flags):
    """No prefix."""

    counts: tuple[int, ...] = option(
        (1280, 102_400),
        "numbers of a draw: about Medical's model, and a large one",
        min=1,
    )
    numbers: int = option(2_000_000, "drawn in a timed call", min=1)
    repeats: int = option(7, "timed calls", min=1)


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Checks and times every generator.

    Returns:
      One row per generator, kind of number and size of a draw, and the targets.

    Raises:
      ArithmeticError: the unrolled generator draws other numbers than JAX.
    """
    rows, targets = [], []
    for count in config.counts:
        key = jax.random.key(1)
        own, theirs = (jax.jit(_normal, static_argnums=1)(k, count) for k in
                       (draws.unrolled(key), key))  # fmt: skip
        difference = harness.largest_difference(own, theirs)
        harness.check_equal(f"{count} normals", difference, 0.0)
        found = [_row(config, count, *each) for each in _ways()]
        spent = {(row["way"], row["what"]): row["nanoseconds"] for row in found}
        for row in found:
            base = spent.get((_UNROLLED, row["what"]))
            row["ratio"] = None if base is None else row["nanoseconds"] / base
        rows += found
        least = spent[_UNROLLED, "bits"] + spent[_INVERSE, "alone"]
        share = spent[_UNROLLED, "normals"] / least
        name = f"{count} normals: times bits and inverse error function"
        targets.append(harness.Target(name, share, _LIMIT, at_least=False))
    return rows, targets


def _ways() -> list[tuple[str, str, Key, Draw]]:
    """Generator, what is drawn, a key of it, and how."""
    counted = jax.random.key(0)
    keys = {
        _UNROLLED: draws.unrolled(counted),
        "threefry": counted,
        "threefry, not partitionable": counted,
        "rbg": jax.random.key(0, impl="rbg"),
        "unsafe_rbg": jax.random.key(0, impl="unsafe_rbg"),
    }
    kinds = {"bits": _bits, "normals": _normal, "normals, Box-Muller": _box_muller}
    found = [
        (way, what, key, draw)
        for way, key in keys.items()
        for what, draw in kinds.items()
    ]
    return [*found, (_INVERSE, "alone", counted, _inverse)]


def _row(config: Config, count: int, way: str, what: str, key: Key, draw: Draw):
    steps = max(1, config.numbers // count)

    def loop(key):
        def step(i, total):
            return total + draw(jax.random.fold_in(key, i), count)

        return lax.fori_loop(0, steps, step, jnp.zeros(count))

    with jax.threefry_partitionable("not partitionable" not in way):
        placed = parallel.place(key, parallel.mesh(1))
        timing = harness.measure(jax.jit(loop), placed, repeats=config.repeats)
    nanoseconds = 1e9 * timing.best / (steps * count)
    return {
        "benchmark": "draws",
        **dict.fromkeys(_COLUMNS),
        "way": way,
        "what": what,
        "count": count,
        "numbers": steps * count,
        **timing._asdict(),
        "nanoseconds": nanoseconds,
        "millions": 1e3 / nanoseconds,
    }


def _bits(key: Key, count: int) -> jax.Array:
    # To a float in the cheapest way: sums of integers are as fast.
    return lax.bitcast_convert_type(jax.random.bits(key, (count,)) >> 9, np.float32)


def _normal(key: Key, count: int) -> jax.Array:
    return jax.random.normal(key, (count,))


def _box_muller(key: Key, count: int) -> jax.Array:
    radius, angle = jax.random.uniform(key, (2, -(-count // 2)))
    radius, angle = jnp.sqrt(-2 * jnp.log1p(-radius)), 2 * np.pi * angle
    both = radius * jnp.cos(angle), radius * jnp.sin(angle)
    return jnp.concatenate(both)[:count]


def _inverse(key: Key, count: int) -> jax.Array:
    shift = 1e-3 * jax.random.uniform(key)  # another argument in every step
    return lax.erf_inv(jnp.linspace(-0.99, 0.99, count) + shift)


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
