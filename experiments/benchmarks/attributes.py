"""Attribute inference attacks: a grid of gradient-based ones, and model-based ones.

    python -m experiments.benchmarks.attributes [--full_baseline] [--json=FILE]

The grid is the passive attack on the Medical shape: numbers of rounds x learning rates
x clients, 100 iterations each, on messages of a real training. Ours is one compiled
program; the written PyTorch baseline attacks one cell after another. Before anything
is timed, both attack one cell with the same noise and must agree. The model-based
attack is timed on both clients and on all rows of the Income-A shape.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.benchmarks import attributes_baseline, federations, harness, victims
from experiments.benchmarks.victims import Scene
from fljax import losses, metrics, parallel
from fljax.attacks import attribute
from fljax.attacks.attribute import gradient
from fljax.driver.option import option
from fljax.types import Key

_SECONDS, _RATIO = 40.0, 5.0  # targets of the grid
_TOLERANCE = 1e-3  # of the largest change of a logit
_BLOCK = 2**14  # rows at a time, so that a hidden layer of 300k rows is never held
_COLUMNS = {
    "task": ("task", ""), "implementation": ("by", ""), "devices": ("devices", ""),
    "threads": ("threads", ""), "trace_seconds": ("trace s", ".2f"),
    "compile_seconds": ("compile s", ".2f"), "first_seconds": ("first s", ".4g"),
    "median": ("median s", ".4g"), "iqr": ("iqr s", ".2g"), "ratio": ("x torch", ".3g"),
    "accuracy": ("accuracy", ".1%"), "difference": ("difference", ".0e"),
    "milliseconds_per_iteration": ("ms/iteration", ".3g"),
    "milliseconds_per_iteration_and_round": ("+ ms/round of it", ".3g"),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(harness.SmallFlags):
    """No prefix."""

    rounds: tuple[int, ...] = option((1, 5, 10, 20, 50, 100), "messages used", min=1)
    learning_rates: tuple[float, ...] = option(
        (1e2, 1e3, 1e4, 1e5, 1e6), "of the attacks", above=0
    )
    iterations: int = option(100, "of each attack", min=1)
    full_baseline: bool = option(
        False, "time every cell of the baseline instead of extrapolating from a few"
    )
    threads: tuple[int, ...] = option(
        (1, 2), "thread counts of torch, of which the faster counts", min=1
    )
    repeats: int = option(2, "timed calls", min=1)


class Cell(NamedTuple):
    """One item of the grid: `[]` client, learning rate and number of its key."""

    client: jax.Array
    rate: jax.Array
    number: jax.Array


def run(config: Config) -> tuple[list[harness.Row], list[harness.Target]]:
    """Checks and times all attacks.

    Returns:
      One row per attack and implementation, and the targets.

    Raises:
      ArithmeticError: if the two sides do not compute the same.
    """
    if config.smoke:
        config = dataclasses.replace(
            config, rounds=(1, 3), learning_rates=(1e2, 1e4), iterations=3, repeats=1
        )
    key_grid, key_check = jax.random.split(jax.random.key(config.seed))
    shape = federations.shape("medical", config.smoke)
    scene = victims.train(shape, max(config.rounds), config.seed)
    difference = _check(scene, key_check, min(5, max(config.rounds)))
    baseline = attributes_baseline.grid_row(
        scene.victims, counts=config.rounds, rates=config.learning_rates,
        iterations=config.iterations, threads=config.threads, repeats=config.repeats,
        full=config.full_baseline,
    )  # fmt: skip
    grid = _grid_row(scene, key_grid, config) | {"difference": difference}
    grid["ratio"] = baseline["median"] / grid["median"]
    rows = [baseline, grid, _model_based_row(scene, config), _all_rows_row(config)]
    targets = [
        harness.Target("grid: seconds", grid["median"], _SECONDS, at_least=False),
        harness.Target("grid: times the baseline", grid["ratio"], _RATIO),
    ]
    empty = dict.fromkeys(_COLUMNS)
    return [{"benchmark": "attributes", **empty, **row} for row in rows], targets


def grid_fn(scene: Scene, config: Config, over) -> Callable:
    """`(key, cells, victims) -> (index [cells, counts, n], dissimilarity [cells, counts])`.

    Each device works through its own cells; a cell is attacked with every number of
    rounds, which is traced, so that all share one program.
    """
    counts = jnp.asarray(config.rounds, jnp.int32)

    def attack(cell, shared):
        key, clients = shared
        victim = jax.tree.map(lambda leaf: leaf[cell.client], clients)
        key = jax.random.fold_in(key, cell.number)

        def with_count(count):
            guess = gradient.gradient_based(
                jax.random.fold_in(key, count), scene.loss_fn, *victim,
                federations.candidates(), num_rounds=count,
                optimiser=optax.sgd(cell.rate), num_iterations=config.iterations,
            )  # fmt: skip
            return guess.index, guess.dissimilarity

        return jax.lax.map(with_count, counts)

    def grid(key, cells, clients):
        return parallel.map_items(attack, cells, (key, clients), over)

    return jax.jit(grid)


def _cells(config: Config, num_clients: int) -> Cell:
    pairs = list(itertools.product(range(num_clients), config.learning_rates))
    clients, rates = zip(*pairs, strict=True)
    return Cell(
        np.array(clients, np.int32), np.array(rates, np.float32), np.arange(len(pairs))
    )


def _grid_row(scene: Scene, key: Key, config: Config) -> harness.Row:
    over = parallel.mesh()
    cells = _cells(config, len(scene.truth))
    args = jax.device_put((key, cells, scene.victims))
    program = harness.prepare(grid_fn(scene, config, over), *args)
    timing = harness.measure(program, *args, repeats=config.repeats)
    index, dissimilarity = map(np.asarray, program.call(*args))
    hits = []
    for client, truth in enumerate(scene.truth):
        own = dissimilarity[cells.client == client]
        best = index[cells.client == client][np.unravel_index(own.argmin(), own.shape)]
        hits.append(metrics.accuracy(best, truth, np.ones(truth.shape)))
    return {
        "task": "gradient grid", "implementation": "fljax", "devices": over.size,
        "cells": dissimilarity.size, "iterations": config.iterations,
        **timing._asdict(), "accuracy": float(np.mean(hits)),
    }  # fmt: skip


def _check(scene: Scene, key: Key, count: int) -> float:
    """Attacks one cell on both sides with the same draws; compares the changes."""
    rate, iterations = 100.0, 5
    victim = jax.tree.map(lambda leaf: leaf[0], scene.victims)

    @jax.jit
    def attack(key, victim):
        return gradient.gradient_based(
            key, scene.loss_fn, *victim, federations.candidates(), num_rounds=count,
            optimiser=optax.sgd(rate), num_iterations=iterations,
        )  # fmt: skip

    guess = attack(jax.random.clone(key), victim)
    noise = attributes_baseline.draws(key, len(victim.known.y), iterations)
    want, _ = attributes_baseline.attack(
        scene.victims, 0, count=count, rate=rate, iterations=iterations, noise=noise
    )
    start = noise[0]
    difference = harness.largest_difference(guess.logits[:, 0] - start, want - start)
    harness.check_equal("gradient-based attack", difference, _TOLERANCE)
    return difference


def _model_based(loss_fn: losses.LossFn) -> Callable:
    """`(params, known) -> index [n]` of one client."""
    values = federations.candidates()
    return lambda p, known: attribute.model_based(loss_fn, p, known, values).index


def _model_based_row(scene: Scene, config: Config) -> harness.Row:
    """Every client's last model, all clients in one call."""
    exchange, known = scene.victims
    last = jax.tree.map(lambda p, d: p[:, -1] - d[:, -1], *exchange)
    attack = jax.jit(jax.vmap(_model_based(scene.loss_fn)))
    args = jax.device_put((last, known))
    timing = harness.measure(attack, *args, repeats=10 * config.repeats, warm_ups=3)
    index = np.asarray(attack(*args))
    return {
        "task": "model-based, medical", "implementation": "fljax", "devices": 1,
        "num_rows": index.size, **timing._asdict(),
        "accuracy": metrics.accuracy(index, scene.truth, np.ones(index.shape)),
    }  # fmt: skip


def _all_rows_row(config: Config) -> harness.Row:
    """One model against all rows, block by block on every device; time only."""
    shape = federations.shape("income_a", config.smoke)
    known = federations.known(federations.generate(shape, config.seed))
    model = federations.model(shape)
    params = jax.jit(model.init)(jax.random.key(config.seed))
    attack = _model_based(losses.example_loss(model.apply, losses.squared))
    num_rows, over = len(known.y), parallel.mesh()
    size = min(_BLOCK, num_rows)
    place = np.arange(-(-num_rows // size) * size).clip(max=num_rows - 1)
    blocks = jax.tree.map(lambda leaf: leaf[place.reshape(-1, size)], known)

    @jax.jit
    def all_rows(params, blocks):
        return parallel.map_items(lambda k, p: attack(p, k), blocks, params, over)

    args = jax.device_put((params, blocks))
    timing = harness.measure(all_rows, *args, repeats=5 * config.repeats, warm_ups=2)
    return {
        "task": "model-based, income_a", "implementation": "fljax",
        "devices": over.size, "num_rows": num_rows, **timing._asdict(),
    }  # fmt: skip


if __name__ == "__main__":
    harness.main(run, Config, _COLUMNS)
