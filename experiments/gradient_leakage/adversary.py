"""The adversary's search for what is behind a message, with what it knows (`knowledge`).

Nothing here is handed a client's image or label, only what `views.observe` made of them.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp

from experiments.gradient_leakage import knowledge
from experiments.gradient_leakage.knowledge import Known
from experiments.gradient_leakage.settings import Config
from fljax import losses
from fljax.attacks.inversion import Budget, Inversion, presets, seeds, solvers
from fljax.attacks.inversion.gaussian import Gaussian
from fljax.types import Key, Params


def attack(
    run: Config,
    loss_fn: losses.LossFn,
    shape: tuple[int, ...],
    num_classes: int,
    *,
    example: bool,
    prior: Gaussian | None = None,
) -> Callable[[Key, Params, Params, Known], Inversion]:
    """The search for what is behind ONE message or example's gradient.

    Args:
      run: which attack.
      loss_fn: the clients', of one example.
      shape: `(N, h, w, channels)` of what is sought.
      num_classes: K.
      example: whether it is one example's gradient.
      prior: what is known of images; its weight is the noise that is known.

    Returns:
      `(key, params, observed, known) -> found`, whose labels are classes; consumes the
      key.
    """
    simulate = knowledge.simulation(run, example=example)
    unmasked = knowledge.whole_message(run, example=example)
    budget = Budget(
        num_iterations=run.iterations,
        starts=run.starts,
        record_every=run.record_every,
        tolerance=run.tolerance,
        give_up=run.give_up,
    )

    def reconstruct(key, params, observed, known):
        def point(loss):
            return simulate(loss, known, observed)

        match run.attack:
            case "dlg":
                search = presets.dlg(
                    loss_fn, shape, num_classes, point=point,
                    solver=_solver(run, shape), budget=budget,
                )  # fmt: skip
            case "cpl":
                whole = unmasked(loss_fn, known)
                weighed = prior and prior._replace(weight=known.noise)
                search = presets.cpl(
                    point(loss_fn), shape, solver=_solver(run, shape), prior=weighed,
                    seed=seeds.patterned if prior is None else prior.draw,
                    probe=whole if run.labels == "probed" else None, budget=budget,
                )  # fmt: skip
            case _:
                search = presets.inverting_gradients(
                    point(loss_fn), shape, budget=budget
                )
        found = search(key, params, observed)
        labels = found.y if found.y.ndim == 1 else jnp.argmax(found.y, axis=1)
        return found._replace(y=labels)

    return reconstruct


def solver_name(run: Config, shape: tuple[int, ...]) -> str:
    """What seeks images of `shape` `(N, h, w, channels)`."""
    if run.attack == "inverting_gradients":
        return "adam"
    fits = shape[0] == 1 or math.prod(shape) <= run.whitened_pixels
    return run.solver if fits else "lbfgs"


def _solver(run: Config, shape: tuple[int, ...]) -> solvers.Solver:
    if solver_name(run, shape) == "whitened":
        return solvers.whitened_lbfgs(run.damping, run.inner_iterations)
    return solvers.lbfgs(run.inner_iterations)
