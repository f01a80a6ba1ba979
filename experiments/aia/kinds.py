"""The names of `--attack_kinds`: the registry's attacks, active servers and the oracle.

Here attacks, which are given an `Adversary`, meet what scores them.
"""

import functools
from collections.abc import Callable

import numpy as np

from experiments.aia import active, attacks, controls, gradients, oracle, scoring
from experiments.aia.adversary import Adversary, Attacked
from experiments.aia.scoring import Scoring
from experiments.aia.settings import attack_kinds
from experiments.aia.setup import Setup
from experiments.aia.strangers import Strangers
from experiments.aia.wall import view
from fljax import verdicts
from fljax.driver.config import ConfigError
from fljax.results import Row

_LAST_ROUND_DOES = ("model", "oracle")  # need no more of the transcript
_SOME_DO = ("model", "grad", *attacks.SIMULATING)  # need no more clients
_POOLED = ("model", "reconstruct", "active", "oracle")  # attack anyone's rows


def chosen(setup: Setup) -> list[str]:
    """What was asked for, in the order in which it runs; the user's own last."""
    asked = dict.fromkeys(setup.config.attack.kinds)
    known = [name for name in attack_kinds() if name in asked]
    return [*known, *(name for name in asked if name not in known)]


def check(setup: Setup) -> None:
    """Refuses attacks that cannot run, before anything is trained.

    Raises:
      ConfigError: naming the flag.
    """
    config, asked = setup.config, chosen(setup)
    if asked and setup.targets is None:
        raise ConfigError(
            f"--data_sensitive: {setup.table.name} names no sensitive attribute; choose "
            "a column, or train only with --attack_kinds="
        )
    if config.run.record == "last" and set(asked) - set(_LAST_ROUND_DOES):
        raise ConfigError(
            "--record=last: only --attack_kinds=model,oracle need no more"
        )
    if config.run.max_clients_in_memory is not None and set(asked) - set(_SOME_DO):
        raise ConfigError(
            "--max_clients_in_memory: only --attack_kinds="
            f"{','.join(_SOME_DO)} attack some clients"
        )
    for name in asked:
        _check(setup, name)


def check_messages(setup: Setup, recorded: np.ndarray, source: str) -> None:
    """Reconstruction needs one message more than the model has parameters.

    Args:
      setup: from `pipeline.prepare`.
      recorded: `[seeds, Q, K]` client of every message.
      source: what decides how many there are.
    """
    needed = 1 + setup.num_parameters
    everyone = range(setup.clients.sizes.shape[1])
    fewest = min((recorded == c).sum(axis=(1, 2)).min() for c in everyone)
    if fewest < needed:
        raise ConfigError(
            f"{source}: reconstruct needs {needed} messages of every client, "
            f"got {fewest}"
        )
    rounds = setup.config.attack.subset_rounds
    if rounds and (len(set(rounds)) < needed or max(rounds) >= fewest):
        raise ConfigError(
            f"--attack_subset_rounds: expected at least {needed} different messages "
            f"below {fewest}, got {len(set(rounds))} up to {max(rounds)}"
        )


def rows(
    name: str, setup: Setup, adversary: Adversary, scored: Scoring,
    strangers: Strangers | None,
) -> list[Row]:  # fmt: skip
    """Runs one kind on every client of every seed, and scores it beside its controls.

    Args:
      name: of the kind.
      setup: of the run.
      adversary: of every seed.
      scored: compares with the truth.
      strangers: to be attacked likewise, None for nobody.
    """
    if name == "oracle":
        return oracle.rows(setup, adversary, scored)
    again = _runner(name, setup, adversary)
    found = again(adversary)
    scores = [row for each in found for row in scoring.rows(scored, each)]
    if name == "reconstruct":
        scores += oracle.reconstruction_rows(setup, adversary, scored, found)
    others = {}
    if strangers is not None:
        alike = controls.of_strangers(adversary, strangers.known)
        others[verdicts.STRANGERS] = alike, strangers.targets
    if "permuted" in setup.config.attack.controls:
        others["permuted"] = controls.permuted(adversary), scored.targets
    for control, (other, truth) in others.items():
        scoring_them = scored._replace(targets=truth)
        for each in controls.repeated(control, found, again, other):
            scores += scoring.rows(scoring_them, each)
    return scores


def _runner(
    name: str, setup: Setup, adversary: Adversary
) -> Callable[[Adversary], list[Attacked]]:
    """One kind, as often as it is called; clients are isolated here, once."""
    config = setup.config
    if name == "active":
        return functools.partial(active.run, setup)
    if name != "grad":
        told = config.attack, config.trajectory
        return lambda given: attacks.run(name, given, *told)
    settings = attacks.settings("grad", config.attack, config.trajectory)
    if "active" not in config.attack.kinds:
        return lambda given: gradients.run(given, settings)
    isolated = active.isolate(setup, adversary)
    return lambda given: gradients.run_active(given, settings, isolated, config.active)


def _check(setup: Setup, name: str) -> None:
    config = setup.config
    if config.attack.score == "pooled" and name not in _POOLED:
        raise ConfigError(
            f"--attack_score=pooled: {name} attacks a client's own rows only"
        )
    if name not in ("active", "oracle"):
        settings = attacks.settings(name, config.attack, config.trajectory)
        if why := attacks.missing(name, view(setup), settings):
            raise ConfigError(f"--attack_kinds: {name}: {why}")
    if name == "active":
        active.check(setup)
    if name == "reconstruct" and config.run.transcript is None:
        check_messages(setup, setup.problem.schedule.recorded_clients, "--num_rounds")
