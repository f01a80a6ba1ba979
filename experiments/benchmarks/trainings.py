"""Times `federation.train`, the engine that every program and user calls."""

import statistics
import time
from collections.abc import Callable

import jax
import numpy as np
import optax

from experiments.benchmarks import federations, harness
from fljax import accelerators, federation, losses
from fljax.driver import stages
from fljax.federation import FedAvg, Federation, Trained, Training
from fljax.types import Model, Params, PyTree


def together() -> int:
    """How many trainings the engine works on at the same time.

    One on each device of a CPU; under `vmap` on an accelerator.
    """
    each = 1 if not accelerators.used() else federation.SIDE_BY_SIDE
    return each * jax.device_count()


def method(model: Model) -> FedAvg:
    """FedAvg with plain SGD on the squared error, from a model that is given.

    Its numbers are that model, so that both sides of a comparison begin alike.
    """
    loss_fn = losses.example_loss(model.apply, losses.squared)
    return FedAvg(model=model, loss_fn=loss_fn, optimiser=_sgd, begin=_given)


def seeds(count: int, params: Params) -> Training:
    """Trainings of as many seeds, each from this model."""
    numbers = jax.tree.map(lambda leaf: np.stack([leaf] * count), params)
    return Training.of_seeds(*range(count), numbers=numbers)


def measure(
    whole: Federation, trainings: Training, *, repeats: int
) -> tuple[harness.Timing, Trained]:
    """Times the rounds of trainings alone, all at the same time: ours beside ours.

    The first call is timed whole: tracing, compiling, placing and fetching included.
    """
    return _measured(
        lambda: whole,
        trainings,
        lambda: federation.train(whole, trainings).seconds,
        repeats,
    )


def measure_whole(
    make: Callable[[], Federation], trainings: Training, *, repeats: int
) -> harness.Timing:
    """Times all that a call takes once it is compiled, as a peer's call is timed.

    What `make` does is counted: who draws batches in which order; and so are placing
    rows, making models and fetching them.
    """

    def call() -> float:
        begin = time.perf_counter()
        jax.block_until_ready(federation.train(make(), trainings).run)
        return time.perf_counter() - begin

    return _measured(make, trainings, call, repeats)[0]


def _measured(
    make: Callable[[], Federation],
    trainings: Training,
    call: Callable[[], float],
    repeats: int,
) -> tuple[harness.Timing, Trained]:
    whole = make()
    spent: stages.Seconds = {}
    begin = time.perf_counter()
    with stages.stage(spent, "first"):
        trained = federation.train(whole, trainings)
    first = time.perf_counter() - begin
    seconds = [call() for _ in range(repeats)]
    low, high = np.percentile(seconds, [25, 75])
    timing = harness.Timing(
        trace_seconds=0.0,
        compile_seconds=spent["first"]["compile"],
        first_seconds=first,
        median=statistics.median(seconds),
        iqr=float(high - low),
        best=min(seconds),
        repeats=repeats,
    )
    return timing, trained


def _sgd(numbers: PyTree) -> optax.GradientTransformation:
    del numbers
    return optax.sgd(federations.LEARNING_RATE)


def _given(key, numbers: PyTree) -> Params:
    del key
    return numbers
