"""What a device multiplies and moves at its best, and how exactly.

    python -m experiments.benchmarks.limits [--json=FILE]

Products of large square matrices of normal numbers, in every precision that JAX offers for
float32 and in bfloat16, and a large copy. The error is the root of the mean square of what
the first rows differ from the product in float64, over that of the product itself. On an
accelerator JAX's default may be far less than float32: what is lost is why programs,
trainings and attacks ask for more (`fljax.precision`).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from experiments.benchmarks import harness
from fljax.driver.option import option

_CHECKED = 64  # rows
_KINDS = {
    "bfloat16": (jnp.bfloat16, "default"), "float32, default": (jnp.float32, "default"),
    "float32, high": (jnp.float32, "high"), "float32, highest": (jnp.float32, "highest"),
}  # fmt: skip
_EXACT = "float32, highest"
_COLUMNS = {
    "what": ("what", ""), "teraflops": ("TFLOP/s", ".4g"),
    "gigabytes": ("GB/s", ".4g"), "error": ("error", ".1e"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.SmallFlags):
    """No prefix."""

    size: int = option(8192, "rows and columns of the matrices", min=1)
    repeats: int = option(5, "timed calls, of which the fastest counts", min=1)


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Times every kind of product, and a copy.

    Returns:
      One row for each, and the error that full precision may have.
    """
    size = 128 if config.smoke else config.size
    rng = np.random.default_rng(config.seed)
    factors = [rng.standard_normal((size, size), np.float32) for _ in range(2)]
    first = factors[0][:_CHECKED].astype(float)
    exact = first @ factors[1].astype(float)
    rows = [_product(what, factors, exact, config) for what in _KINDS]
    error = next(row["error"] for row in rows if row["what"] == _EXACT)
    target = harness.Target("float32, highest: error", error, 1e-5, at_least=False)
    return [*rows, _copy(size, config)], [target]


def _product(what: str, factors, exact, config: Config) -> harness.Row:
    dtype, precision = _KINDS[what]

    @jax.jit
    def multiply(a, b):
        return jnp.matmul(a, b, precision=precision)

    placed = [jnp.asarray(factor, dtype) for factor in factors]
    timing = harness.measure(multiply, *placed, repeats=config.repeats)
    found = np.asarray(multiply(*placed)[:_CHECKED], float)
    error = np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2))
    rate = 2 * len(factors[0]) ** 3 / timing.best
    return _row(what, timing, teraflops=rate / 1e12, error=float(error))


def _copy(size: int, config: Config) -> harness.Row:
    array = jnp.ones((8, size, size))
    timing = harness.measure(jax.jit(lambda a: a + 1), array, repeats=config.repeats)
    rate = 2 * array.nbytes / timing.best
    return _row("float32, copy", timing, gigabytes=rate / 1e9)


def _row(what: str, timing: harness.Timing, **more) -> harness.Row:
    empty = dict.fromkeys(_COLUMNS)
    return {"benchmark": "limits", **empty, "what": what, **timing._asdict(), **more}


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
