"""Trajectory matching: seconds of a federation, and how near they are to multiplying.

    python -m experiments.benchmarks.trajectory [--shapes=medical] [--json=FILE]

Federations with the shapes of the published experiments are trained on drawn rows, and
every client is attacked from all of its messages, with the settings that programs use.
Compiling is apart. Nearly all of the time goes into simulated steps: the gradient of one
and the adjoint of another are timed alone too, beside the written baseline, in which the
candidates of a row go through the network side by side (`vmap`). Both must agree first.

Operations are those that the compiler counts in one gradient and in one adjoint, times
how many of each an attack takes. The limit is the rate of a large matrix product on as
many devices, measured in the same run.
"""

import dataclasses
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from experiments.benchmarks import federations, harness, scaling, victims
from experiments.benchmarks.victims import Scene
from fljax import losses, metrics, parallel
from fljax.attacks import attribute, trajectory
from fljax.attacks.trajectory import matching, merging, relaxation, simulation
from fljax.driver.option import option

Shape = Literal["medical", "income_l"]
_SECONDS = {"medical": 7.0, "income_l": 150.0}  # targets, all clients of one training
_MOST_STEPS = trajectory.Settings().path_steps  # simulated, of a round
_ENDS = 2  # gradients of a round to first order
_TOLERANCE = 1e-4
_COLUMNS = {
    "shape": ("shape", ""), "task": ("task", ""), "clients": ("clients", ""),
    "devices": ("devices", ""), "trace_seconds": ("trace s", ".2f"),
    "compile_seconds": ("compile s", ".2f"), "median": ("median s", ".4g"),
    "seconds_per_client": ("s/client", ".4g"), "gigaflops": ("GFLOP", ".4g"),
    "share": ("of the limit", ".1%"), "ratio": ("x vmap", ".3g"),
    "accuracy": ("accuracy", ".1%"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.SmallFlags):
    """No prefix."""

    shapes: tuple[Shape, ...] = option(("medical", "income_l"), "federations")
    rounds: int = option(100, "messages of each client", min=1)
    iterations: int = option(240, "of the search", min=1)
    rough_iterations: int = option(0, "of a search before, to first order", min=0)
    stages: int = option(2, "of the search", min=1)
    repeats: int = option(1, "timed calls of an attack", min=1)


class Steps(NamedTuple):
    """A client's simulated steps: `(params [P], values, direction [P]) -> result`."""

    gradient: Callable
    adjoint: Callable


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Times all attacks and one step of each.

    Returns:
      Three rows per shape, and the targets.

    Raises:
      ArithmeticError: if the two ways of a step do not compute the same.
    """
    if config.smoke:
        config = dataclasses.replace(config, rounds=5, iterations=6)
    over = parallel.mesh()
    sizes = scaling.Config(smoke=config.smoke, repeats=1)
    alone, together = (scaling.measure_limits(n, sizes) for n in (1, over.size))
    rows, targets = [], []
    for name in config.shapes:
        shape = federations.shape(name, config.smoke)
        scene = victims.train(shape, config.rounds, config.seed)
        steps = _step_rows(scene, alone.multiplications)
        attack = _attack_row(scene, config, over, together.multiplications, steps)
        rows += [{"shape": name, **row} for row in (attack, *steps)]
        goal = _SECONDS[name]
        targets.append(
            harness.Target(f"{name}: seconds", attack["median"], goal, at_least=False)
        )
    return [{**dict.fromkeys(_COLUMNS), **row} for row in rows], targets


def counts(settings: trajectory.Settings, rounds: int) -> tuple[int, int]:
    """Gradients and adjoints of steps in the searches; the posterior's are few."""
    looks = settings.stages * settings.checkpoints
    searched = max(settings.iterations // looks, 1) * looks
    held = max(round(settings.held_out * rounds), 1)
    adjoints = searched * min(settings.batch_rounds, rounds - held)
    others = (settings.stages + 1) * rounds + (looks + settings.stages) * held
    steps = _ENDS if settings.first_order else settings.path_steps
    found = (adjoints + others) * steps, adjoints * steps
    if settings.first_order or not settings.rough_iterations:
        return found
    before = counts(matching.eased(settings), rounds)
    return found[0] + before[0], found[1] + before[1]


def _search(scene: Scene, config: Config) -> tuple[trajectory.Settings, int]:
    """The settings of an attack, and how many steps a client takes in a round."""
    each = -(-scene.truth.shape[1] // federations.BATCH_SIZE)
    settings = trajectory.Settings(
        path_steps=min(each, _MOST_STEPS),
        iterations=config.iterations,
        rough_iterations=config.rough_iterations,
        stages=config.stages,
    )
    return settings, each


def _attack_row(scene: Scene, config: Config, over, rate: float, steps) -> harness.Row:
    settings, own = _search(scene, config)
    merged = merging.table(own, settings.path_steps)
    found: list[jax.Array] = []

    def attack(item, _):
        number, exchange, known = item
        return trajectory.trajectory_matching(
            jax.random.key(number), scene.loss_fn, exchange, known,
            federations.candidates(), scale=federations.LEARNING_RATE * own,
            settings=settings, table=merged,
        ).index  # fmt: skip

    @jax.jit
    def attacks(*items):
        return parallel.map_items(attack, items, (), over)

    def call(*items):
        found[:] = [program.call(*items)]
        return found

    count = len(scene.truth)
    args = jax.device_put((np.arange(count, dtype=np.uint32), *scene.victims))
    program = harness.prepare(attacks, *args)
    timed = program._replace(call=call)
    timing = harness.measure(timed, *args, repeats=config.repeats, warm_ups=0)
    each = counts(settings, config.rounds)
    work = count * sum(
        n * step["gigaflops"] for n, step in zip(each, steps, strict=True)
    )
    hits = metrics.accuracy(np.asarray(*found), scene.truth, np.ones(scene.truth.shape))
    return {
        "task": "attack", "clients": count, "devices": over.size, **timing._asdict(),
        "seconds_per_client": timing.median / count, "gigaflops": work,
        "share": 1e9 * work / timing.median / rate, "accuracy": hits,
    }  # fmt: skip


def _step_rows(scene: Scene, rate: float) -> list[harness.Row]:
    """One gradient and one adjoint of the first client, on one device."""
    exchange, known = jax.tree.map(lambda leaf: leaf[0], scene.victims)
    last = jax.tree.map(lambda leaf: leaf[-1], exchange)
    params, unravel = ravel_pytree(last.params)
    values = jnp.full((len(known.y), 2), 0.5)
    args = jax.device_put((params, values, ravel_pytree(last.delta)[0]))
    soft = relaxation.categorical(
        scene.loss_fn, known, jnp.asarray(federations.candidates())
    )
    baseline = _side_by_side(scene.loss_fn, known)
    ways = [_steps(mean, unravel) for mean in (soft.mean_loss, baseline)]
    rows = []
    for task, ours, theirs in zip(Steps._fields, *ways, strict=True):
        programs = [harness.prepare(fun, *args) for fun in (ours, theirs)]
        got, want = (program.call(*args) for program in programs)
        difference = harness.largest_difference(got, want)
        harness.check_equal(task, difference, _TOLERANCE)
        timing, other = (
            harness.measure(program, *args, repeats=20) for program in programs
        )
        work = programs[0].call.cost_analysis()["flops"]
        rows.append({
            "task": task, "clients": 1, "devices": 1, **timing._asdict(),
            "gigaflops": work / 1e9, "share": work / timing.median / rate,
            "ratio": other.median / timing.median, "difference": difference,
        })  # fmt: skip
    return rows


def _steps(mean_loss: Callable, unravel: Callable) -> Steps:
    field = simulation.of_loss(lambda flat, values: mean_loss(unravel(flat), values))
    return Steps(
        jax.jit(lambda params, values, _: field.slope(params, values)),
        jax.jit(lambda params, values, along: field.pull(params, values, along)),
    )


def _side_by_side(loss_fn: losses.LossFn, known) -> Callable:
    """The baseline: `(params, values) -> []`, all candidates through the network."""

    def mean_loss(params, values):
        def under(candidate):
            block = jnp.broadcast_to(candidate, (len(known.y), 1))
            rows = attribute.complete(known.public, block)
            return jax.vmap(loss_fn, (None, 0, 0))(params, rows, known.y)

        each = jax.vmap(under, out_axes=1)(jnp.asarray(federations.candidates()))
        return losses.masked_mean(jnp.sum(values * each, axis=1), known.mask)

    return mean_loss


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
