"""A local step beside what the cores can multiply, gather and move.

    python -m experiments.benchmarks.steps [--check] [--json=FILE]

All devices train at once, each a federation of its own, or several on an accelerator. A
step multiplies its dense columns and its output layer, and reads and adds to a row of the
kernel for each one-hot column. Both are timed alone at their best, on all devices at once:
a large product of matrices, and a large batch's rows of a kernel as large as the model's.
Beyond that a step through an array of the gradient writes it, reads it, and reads and
writes the model; these passes, which `fljax.in_place` saves, are timed on arrays of the
model's size. An accelerator multiplies its one-hot columns too, gathers nothing, and moves
the model at the rate of a large copy: alone, a model is too small to be timed there.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from experiments.benchmarks import federations, harness, problems, scaling, trainings
from experiments.benchmarks.problems import Flags
from fljax import accelerators, parallel

_SHARE = 0.6
_UNITS = 128
_BATCH = 4096  # rows of a large batch, whose sums leave nothing but their reading
_TIMES = 200  # in a timed call
_COLUMNS = {
    "shape": ("shape", ""), "devices": ("devices", ""), "step": ("us a step", ".3g"),
    "multiply": ("to multiply", ".3g"), "gather": ("to gather", ".3g"),
    "move": ("to move the model", ".3g"), "share": ("share of both", ".1%"),
    "share_moved": ("share with moving", ".1%"),
}  # fmt: skip


class Work(NamedTuple):
    """What a step of one client has to do.

    Attributes:
      multiplications: floating-point operations of its products.
      gathered: bytes of kernel rows that it reads, and adds to.
      moved: bytes of the passes over gradient and model.
    """

    multiplications: float
    gathered: float
    moved: float


def run(config: Flags) -> tuple[list[harness.Row], list[harness.Target]]:
    """Times every shape.

    Returns:
      One row per shape, and the targets.
    """
    every = len(jax.devices())
    sizes = scaling.Config(smoke=config.smoke, repeats=config.repeats)
    limits = scaling.measure_limits(every, sizes)
    rows = [_row(name, config, every, limits) for name in config.shapes]
    targets = [
        harness.Target(f"{row['shape']}: share of both limits", row["share"], _SHARE)
        for row in rows
    ]
    return rows, targets


def work(of: federations.Shape, multiplies: bool = False) -> Work:
    """Of a batch; nobody asks for the gradient of the inputs.

    Args:
      of: the federation.
      multiplies: whether one-hot columns are multiplied as numbers are.
    """
    hidden = federations.BATCH_SIZE * _UNITS
    columns, bytes_ = 0 if multiplies else len(of.cardinalities), 4
    kernel = of.num_inputs * _UNITS
    dense = of.num_inputs if multiplies else of.num_numeric
    return Work(
        hidden * (4 * dense + 6),
        3 * bytes_ * hidden * columns,
        4 * bytes_ * kernel,
    )


def _row(name: federations.Name, config: Flags, every: int, limits: scaling.Limits):
    of = federations.shape(name, config.smoke)
    on_cpu = not accelerators.used()
    todo = work(of, multiplies=not on_cpu)
    moving = _moving(of, every, config) if on_cpu else limits.bandwidth / every
    gathers = on_cpu and of.num_onehot
    seconds = {
        "step": _step(name, config, every),
        "multiply": todo.multiplications * every / limits.multiplications,
        "gather": todo.gathered / _gathering(of, every, config) if gathers else 0,
        "move": todo.moved / moving,
    }
    both = seconds["multiply"] + seconds["gather"]
    return {
        "benchmark": "steps",
        "shape": name,
        "devices": every,
        **{what: 1e6 * value for what, value in seconds.items()},
        "share": both / seconds["step"],
        "share_moved": (both + seconds["move"]) / seconds["step"],
    }


def _step(name: federations.Name, config: Flags, every: int) -> float:
    """Seconds of one client's step on a device, those side by side counted together."""
    problem = problems.build(name, config)
    whole, count = problem.federation(problems.lanes(name)[0]), trainings.together()
    timing, _ = trainings.measure(
        whole, trainings.seeds(count, problem.params), repeats=config.repeats
    )
    steps = sum(-(-size // federations.BATCH_SIZE) for size in problem.shape.sizes)
    return timing.best / (problem.num_rounds * steps * count // every)


def _gathering(of: federations.Shape, every: int, config: Flags) -> float:
    """Bytes a second of kernel rows that a device reads and adds up."""
    rng = np.random.default_rng(config.seed)
    columns = len(of.cardinalities)
    codes = jnp.asarray(rng.integers(of.num_onehot, size=(columns, _BATCH)), jnp.int32)

    def read(kernel):
        out = jnp.zeros((_BATCH, _UNITS))
        for column in codes:
            out = out + kernel.at[column].get(mode="fill", fill_value=0)
        # The next reading waits for this one, and finds another kernel.
        return kernel.at[0, 0].add(1e-9 * out[0, 0] + 1e-9 * out[-1, -1])

    kernel = jnp.ones((of.num_onehot, _UNITS))
    return 4 * columns * _BATCH * _UNITS / _alone(read, kernel, every, config)


def _moving(of: federations.Shape, every: int, config: Flags) -> float:
    """Bytes a second that a device reads and writes of arrays of the model's size."""

    def update(both):
        model, slope = both
        return model - 0.01 * slope, slope

    model = jnp.ones((of.num_inputs, _UNITS))
    seconds = _alone(update, (model, 0.5 * model), every, config)
    return 3 * 4 * model.size / seconds


def _alone(fun: Callable, given, every: int, config: Flags) -> float:
    """Seconds of one of many calls, each of what the last one returned."""
    over, times = parallel.mesh(every), 2 if config.smoke else _TIMES

    def loop(given):
        return lax.fori_loop(0, times, lambda _, value: fun(value), given)

    own = PartitionSpec()
    spread = jax.shard_map(
        loop, mesh=over, in_specs=own, out_specs=own, check_vma=False
    )
    placed = parallel.place(given, over)
    return harness.measure(jax.jit(spread), placed, repeats=config.repeats).best / times


if __name__ == "__main__":
    harness.main(run, Flags, _COLUMNS)
