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

from experiments import config as config_lib
from experiments.benchmarks import attributes_baseline, federations, harness
from experiments.settings import option
from fljax import local, losses, metrics, parallel, rounds, transcript
from fljax import schedule as schedule_lib
from fljax.attacks import attribute, gradient
from fljax.types import Exchange, Known, Params

_SECONDS, _RATIO = 40.0, 5.0  # targets of the grid
_TOLERANCE = 1e-3  # of the largest logit
_BLOCK = 2**14  # rows at a time, so that a hidden layer of 300k rows is never held
_COLUMNS = {
    "task": ("task", ""), "implementation": ("by", ""), "devices": ("devices", ""),
    "threads": ("threads", ""), "trace_seconds": ("trace s", ".2f"),
    "compile_seconds": ("compile s", ".2f"), "first_seconds": ("first s", ".4g"),
    "median": ("median s", ".4g"), "iqr": ("iqr s", ".2g"), "ratio": ("x torch", ".3g"),
    "accuracy": ("accuracy", ".1%"), "difference": ("difference", ".0e"),
    "model": ("model", ""),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
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
    seed: int = option(0, "of data, model, training and attacks", min=0)
    smoke: bool = option(False, "few rows, rounds and iterations")
    check: bool = option(False, "exit with 1 if a target is missed")
    json: str | None = option(None, "file for the results, one JSON object per line")


class Cell(NamedTuple):
    """One item of the grid: `[]` client, learning rate and number of its key."""

    client: jax.Array
    rate: jax.Array
    number: jax.Array


class Victims(NamedTuple):
    """What the adversary has of each client, leaves `[C, ...]`, and the key."""

    exchange: Exchange
    known: Known
    key: jax.Array


class Scene(NamedTuple):
    """The federation attacked.

    Attributes:
      loss_fn: loss of one example.
      victims: all clients.
      truth: `[C, n]`, for scoring only.
    """

    loss_fn: losses.LossFn
    victims: Victims
    truth: np.ndarray


def main() -> int:
    """Runs the benchmark that the flags ask for."""
    config = config_lib.read(Config)
    harness.configure()
    rows, targets = run(config)
    harness.report(rows, _COLUMNS, targets)
    harness.write(config.json, rows)
    return harness.exit_code(targets, config.check)


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
    scene = train(config)
    difference = _check(scene, config)
    baseline = attributes_baseline.grid_row(scene.victims, config)
    grid = _grid_row(scene, config) | {"difference": difference}
    grid["ratio"] = baseline["median"] / grid["median"]
    rows = [baseline, grid, _model_based_row(scene, config), _all_rows_row(config)]
    targets = [
        harness.Target("grid: seconds", grid["median"], _SECONDS, at_least=False),
        harness.Target("grid: times the baseline", grid["ratio"], _RATIO),
    ]
    empty = dict.fromkeys(_COLUMNS)
    return [{"benchmark": "attributes", **empty, **row} for row in rows], targets


def train(config: Config) -> Scene:
    """Trains on the Medical shape with the library and keeps every message."""
    shape = federations.shape("medical", config.smoke)
    rows = federations.generate(shape, config.seed)
    model = federations.model(shape)
    loss_fn = losses.example_loss(model.apply, losses.squared)
    update = local.sgd(loss_fn, optax.sgd(federations.LEARNING_RATE))
    server, num_rounds = optax.sgd(1.0), max(config.rounds)
    schedule = schedule_lib.build(
        shape.sizes, num_rounds=num_rounds, batch_size=federations.BATCH_SIZE
    )
    key_init, key_train, key_attack = jax.random.split(jax.random.key(config.seed), 3)

    @jax.jit
    def trained(key_init, key_train, rows):
        begin = rounds.start(model.init(key_init), schedule, server)
        return rounds.advance(
            key_train, begin, rows, schedule, num_rounds, local=update,
            server_optimiser=server,
        )  # fmt: skip

    seen = trained(key_init, key_train, rows).transcript
    clients = range(len(shape.sizes))
    parts = federations.split(rows, shape.sizes)
    victims = Victims(
        _stack([transcript.exchange(seen, client) for client in clients]),
        _stack([federations.known(part) for part in parts]),
        key_attack,
    )
    return Scene(loss_fn, victims, np.stack([federations.truth(p) for p in parts]))


def grid_fn(scene: Scene, config: Config, over) -> Callable:
    """`(cells, victims) -> (index [cells, counts, n], dissimilarity [cells, counts])`.

    Each device works through its own cells; a cell is attacked with every number of
    rounds, which is traced, so that all share one program.
    """
    counts = jnp.asarray(config.rounds, jnp.int32)

    def attack(cell, victims):
        mine = jax.tree.map(
            lambda leaf: leaf[cell.client], (victims.exchange, victims.known)
        )
        key = jax.random.fold_in(victims.key, cell.number)

        def with_count(count):
            guess = gradient.gradient_based(
                jax.random.fold_in(key, count), scene.loss_fn, *mine,
                federations.candidates(), num_rounds=count,
                optimiser=optax.sgd(cell.rate), num_iterations=config.iterations,
            )  # fmt: skip
            return guess.index, guess.dissimilarity

        return jax.lax.map(with_count, counts)

    def grid(cells, victims):
        return parallel.map_items(attack, cells, victims, over)

    return jax.jit(grid)


def _cells(config: Config, num_clients: int) -> Cell:
    pairs = list(itertools.product(range(num_clients), config.learning_rates))
    clients, rates = zip(*pairs, strict=True)
    return Cell(
        np.array(clients, np.int32), np.array(rates, np.float32), np.arange(len(pairs))
    )


def _grid_row(scene: Scene, config: Config) -> harness.Row:
    over = parallel.mesh()
    cells = _cells(config, len(scene.truth))
    program = harness.prepare(grid_fn(scene, config, over), cells, scene.victims)
    timing = harness.measure(program, cells, scene.victims, repeats=config.repeats)
    index, dissimilarity = map(np.asarray, program.call(cells, scene.victims))
    hits = []
    for client, truth in enumerate(scene.truth):
        own = cells.client == client
        best = np.unravel_index(dissimilarity[own].argmin(), dissimilarity[own].shape)
        hits.append(metrics.accuracy(index[own][best], truth, np.ones(truth.shape)))
    return {
        "task": "gradient grid", "implementation": "fljax", "devices": over.size,
        "cells": dissimilarity.size, "iterations": config.iterations,
        **timing._asdict(), "accuracy": float(np.mean(hits)),
    }  # fmt: skip


def _check(scene: Scene, config: Config) -> float:
    """Attacks one cell on both sides with the same draws; compares the logits."""
    count, rate, iterations = min(5, max(config.rounds)), 100.0, 5
    exchange, known, key = jax.tree.map(lambda leaf: leaf[0], scene.victims[:2]) + (
        scene.victims.key,
    )
    guess = jax.jit(
        lambda key: gradient.gradient_based(
            key, scene.loss_fn, exchange, known, federations.candidates(),
            num_rounds=count, optimiser=optax.sgd(rate), num_iterations=iterations,
        )
    )(jax.random.clone(key))  # fmt: skip
    logits, loss = attributes_baseline.attack(
        scene.victims, 0, count, rate, iterations, None,
        noise=_draws(jax.random.clone(key), len(known.y), iterations),
    )  # fmt: skip
    got = (guess.logits[:, 0], guess.dissimilarity * count)
    difference = harness.largest_difference(got, (logits, loss))
    harness.check_equal("gradient-based attack", difference, _TOLERANCE)
    return difference


def _draws(key, num_rows: int, num_iterations: int) -> tuple[np.ndarray, np.ndarray]:
    """What `gradient_based` draws from its key for a binary attribute."""
    key_init, key_noise = jax.random.split(key)
    start = jax.random.normal(key_init, (num_rows, 1))
    gumbel = jax.vmap(lambda k: jax.random.gumbel(k, (num_rows, 1)))(
        jax.random.split(key_noise, num_iterations)
    )
    return np.asarray(start)[:, 0], np.asarray(gumbel)[:, :, 0]


def _model_based_row(scene: Scene, config: Config) -> harness.Row:
    """Every client's last model, all clients in one call."""
    exchange, known, _ = scene.victims
    last = jax.tree.map(lambda p, d: p[:, -1] - d[:, -1], *exchange)
    attack = _model_based(scene.loss_fn)
    args = jax.device_put((last, known))
    timing = harness.measure(attack, *args, repeats=10 * config.repeats, warm_ups=3)
    index = np.asarray(attack(*args))
    hits = metrics.accuracy(index, scene.truth, np.ones(index.shape))
    return {
        "task": "model-based, medical", "implementation": "fljax", "devices": 1,
        "num_rows": index.size, **timing._asdict(), "accuracy": hits,
    }  # fmt: skip


def _all_rows_row(config: Config) -> harness.Row:
    """One model against all rows, block by block; time only."""
    shape = federations.shape("income_a", config.smoke)
    known = federations.known(federations.generate(shape, config.seed))
    model = federations.model(shape)
    params = jax.jit(model.init)(jax.random.key(config.seed))
    attack = _model_based(losses.example_loss(model.apply, losses.squared))
    num_blocks = -(-len(known.y) // _BLOCK)
    place = np.arange(num_blocks * _BLOCK)
    place = np.minimum(place, len(known.y) - 1).reshape(num_blocks, _BLOCK)
    known = jax.device_put(jax.tree.map(lambda leaf: leaf[place], known))

    def blocks(params: Params, known: Known):
        return jax.lax.map(lambda k: attack(params, k), known)

    timing = harness.measure(
        jax.jit(blocks), params, known, repeats=5 * config.repeats, warm_ups=2
    )
    return {
        "task": "model-based, income_a", "implementation": "fljax", "devices": 1,
        "num_rows": sum(shape.sizes), **timing._asdict(),
    }  # fmt: skip
