"""The baseline's side of the attack benchmark: one cell of the grid after another.

The whole grid takes minutes, so by default a few cells are timed and the rest follows
from a model: an iteration costs a fixed time and a time for each attacked round.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from experiments.benchmarks import federations, harness, torch_baseline
from experiments.benchmarks.victims import Victims
from fljax.types import Key

_SAMPLED_ROUNDS = 10  # beside the smallest number of rounds
_SAMPLED_RATES = 2


class Cost(NamedTuple):
    """Seconds of one attack: `fixed + per_round * rounds`."""

    fixed: float
    per_round: float
    threads: int

    def total(self, counts: Sequence[int], times: int) -> float:
        """Seconds of `times` attacks with each of these numbers of rounds."""
        return times * (len(counts) * self.fixed + sum(counts) * self.per_round)


def attack(
    victims: Victims, client: int, *, count: int, rate: float, iterations: int,
    threads: int | None = None, noise=None,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """Logits `[n]` and last loss of one cell: the first `count` rounds of a client."""
    exchange, known = jax.tree.map(lambda leaf: leaf[client], victims)
    params, deltas = (_by_round(tree, count) for tree in exchange)
    low, high = federations.candidates()[:, 0].tolist()
    return torch_baseline.gradient_attack(
        params, deltas, known.public.numeric, known.y, (low, high),
        learning_rate=rate, num_iterations=iterations, noise=noise,
        num_threads=threads,
    )  # fmt: skip


def draws(
    key: Key, num_rows: int, num_iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """What `gradient_based` draws from its key for a binary attribute."""
    key_init, key_noise = jax.random.split(key)
    start = jax.random.normal(key_init, (num_rows, 1))
    keys = jax.random.split(key_noise, num_iterations)
    gumbel = jax.vmap(lambda key: jax.random.gumbel(key, (num_rows, 1)))(keys)
    return np.asarray(start)[:, 0], np.asarray(gumbel)[:, :, 0]


def grid_row(
    victims: Victims, *, counts: Sequence[int], rates: Sequence[float],
    iterations: int, threads: Sequence[int], repeats: int, full: bool,
) -> harness.Row:  # fmt: skip
    """Times the grid, or a few cells of one client from which the rest follows."""
    run = functools.partial(attack, victims, iterations=iterations)
    num_clients = len(victims.known.y)
    times = num_clients * len(rates)
    sampled = sorted({min(counts), min(max(counts), _SAMPLED_ROUNDS)})
    cost = min(
        (_cost(run, sampled, rates[:_SAMPLED_RATES], t, repeats) for t in threads),
        key=lambda cost: cost.total(counts, times),
    )
    seconds = cost.total(counts, times)
    if full:
        cells = itertools.product(range(num_clients), counts, rates)
        seconds = sum(_seconds(run, *cell, cost.threads, 1, 0) for cell in cells)
    per_iteration = 1e3 / iterations
    return {
        "task": "gradient grid" if full else "gradient grid, extrapolated",
        "implementation": "torch", "threads": cost.threads, "repeats": repeats,
        "cells": times * len(counts), "iterations": iterations,
        "median": seconds, "extrapolated": not full, "sampled_rounds": sampled,
        "milliseconds_per_iteration": per_iteration * cost.fixed,
        "milliseconds_per_iteration_and_round": per_iteration * cost.per_round,
    }  # fmt: skip


def _by_round(tree, count: int) -> list[dict[str, np.ndarray]]:
    stacked = federations.to_arrays(tree)
    return [{name: leaf[t] for name, leaf in stacked.items()} for t in range(count)]


def _cost(run, sampled, rates, threads: int, repeats: int) -> Cost:
    means = [
        np.mean([_seconds(run, 0, count, rate, threads, repeats, 1) for rate in rates])
        for count in sampled
    ]
    per_round, fixed = np.polyfit(sampled, means, 1) if len(means) > 1 else (0, *means)
    return Cost(float(fixed), float(per_round), threads)


def _seconds(run, client, count, rate, threads, repeats: int, warm_ups: int) -> float:
    def call():
        return run(client, count=count, rate=rate, threads=threads)

    return harness.measure(call, repeats=repeats, warm_ups=warm_ups).median
