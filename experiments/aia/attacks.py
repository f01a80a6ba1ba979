"""The registry's attacks with the settings of the flags, on every seed."""

import functools
from collections.abc import Hashable

import numpy as np

from experiments.aia.adversary import Adversary, Attacked, each_seed, stacked
from experiments.aia.settings import AttackConfig, TrajectoryConfig
from fljax.attacks import answers, needs, registry
from fljax.attacks.adversary import AdversaryView
from fljax.attacks.attribute import gradient_grid
from fljax.attacks.estimates import Estimates, Prediction
from fljax.attacks.reconstruction import local_optimum
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import clients as trajectory
from fljax.attacks.trajectory import matching
from fljax.attacks.trajectory.attack import Inference
from fljax.auditing import imported
from fljax.auditing.doubts import SIMULATING
from fljax.driver.config import ConfigError
from fljax.types import Array


def settings(
    name: str,
    attack: AttackConfig,
    simulated: TrajectoryConfig,
    counts: np.ndarray | None = None,
    *,
    summed: bool = False,
) -> Hashable:
    """What the flags say of an attack of the registry; None for its own settings.

    Args:
      name: of the attack.
      attack: flags.
      simulated: flags.
      counts: `[seeds, C]` messages of the clients; None before the training.
      summed: whether they are sums over clients.
    """
    sent = np.zeros(0) if counts is None else counts[counts > 0]
    fewest, most = (int(sent.min()), int(sent.max())) if sent.size else (1, 1)
    if name == "grad":
        return gradient_grid.Settings(
            rounds=attack.grad_rounds,
            learning_rates=attack.grad_learning_rates,
            iterations=attack.grad_iterations,
            temperature=attack.grad_temperature,
            noise=attack.grad_noise,
        )
    if name == "reconstruct":
        # Where clients took part unequally often, everyone's first messages.
        return local_optimum.Settings(
            messages=fewest,
            subset_trials=attack.subset_trials,
            subset_rounds=attack.subset_rounds,
        )
    if name in SIMULATING:
        # As many messages of everyone, spread over its own and ending with its last: who
        # sent fewer has some twice. Of sums with changing participants there are more than
        # anybody is in.
        number = min(simulated.rounds or most, most)
        return trajectory.Settings(
            epoch_steps=simulated.path_steps,
            messages=simulated.rounds if summed and fewest < most else number,
            search=matching.Settings(
                iterations=simulated.iterations,
                rough_iterations=simulated.rough_iterations,
                batch_rounds=simulated.batch_rounds,
                rate=simulated.rate,
                stages=simulated.stages,
                held_out=simulated.held_out,
                estimate_scale=simulated.estimate_scale,
            ),
        )
    return None


def find(name: str) -> AttackSpec:
    """An attack of the registry, or the user's own.

    Raises:
      ConfigError: there is none of this name.
    """
    if ":" not in name:
        return registry.ATTACKS[name]
    return imported.attack("--attack_kinds", name)


def missing(name: str, view: AdversaryView, chosen: Hashable) -> str:
    """Why an attack does not apply, in one line; empty if it does."""
    spec = find(name)
    if spec.gives is not Prediction:
        return "it does not predict the sensitive column"
    return needs.missing(spec.needs, view, chosen or spec.settings)


def run(
    name: str, adversary: Adversary, attack: AttackConfig, simulated: TrajectoryConfig
) -> list[Attacked]:
    """An attack of the registry, or the user's own."""
    spec, sent = find(name), adversary.messages
    summed = adversary.transcript.member is not None
    told = settings(name, attack, simulated, sent.count, summed=summed)
    chosen = told or spec.settings
    one = functools.partial(_of_seed, spec, chosen, simulated)
    found = stacked(each_seed(adversary, f"{name}, seeds", one))
    return [
        Attacked(each, prediction, sent.has_messages)
        for each, prediction in found.items()
    ]


def _of_seed(
    spec: AttackSpec, chosen: Hashable, simulated: TrajectoryConfig, view: AdversaryView
) -> Estimates:
    if spec.name in SIMULATING:
        view = _misjudged(view, simulated.scale_error)
    try:
        found = spec.run(view.read_only(), chosen)
        estimates = answers.checked(spec.name, view, found)
    except answers.AnswerError as error:
        raise ConfigError(f"--attack_kinds: {error}") from error
    if spec.name == "reconstruct":
        return {
            k: each._replace(details={"params": each.details["params"]})
            for k, each in estimates.items()
        }
    if spec.name in SIMULATING:
        return {
            name: _simulated(view, each.details["inference"], simulated, each.value)
            for name, each in estimates.items()
        }
    return estimates


def _misjudged(view: AdversaryView, factor: float) -> AdversaryView:
    """The same with a learning rate that is taken for so many times what it is."""
    rate = view.training.learning_rate
    assert rate is not None
    training = view.training._replace(learning_rate=rate * factor)
    return view._replace(training=training)


def _simulated(
    view: AdversaryView, found: Inference, simulated: TrajectoryConfig, value: Array
) -> Prediction:
    """What is reported of trajectory matching, given the view that it had."""
    diagnostics = {"misfit": found.misfit}
    if simulated.estimate_scale:
        training = view.training
        assert training.learning_rate is not None
        scale = training.learning_rate * training.local_steps(view.sizes)
        told = np.asarray(scale, np.float32) / np.float32(simulated.scale_error)
        diagnostics["relative_scale"] = found.scale / told
    details = {} if view.continuous else {"probability": found.probability}
    return Prediction(value, diagnostics, details)
