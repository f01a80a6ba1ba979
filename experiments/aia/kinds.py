"""The names of `--attack_kinds`: the registry's attacks, active servers and the oracle.

Here attacks, which are given an `Adversary`, meet what scores them.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.aia import (
    active,
    attacks,
    controls,
    gradients,
    guesses,
    oracle,
    scoring,
    settings,
)
from experiments.aia.adversary import Adversary, Attacked
from experiments.aia.guesses import Guess
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


def resolved(setup: Setup) -> tuple[Setup, dict[str, str]]:
    """The same with `standard` replaced by the attacks that apply, and why not others.

    Raises:
      ConfigError: naming the flag that asks for what cannot be run.
    """
    attack = setup.config.attack
    if setup.config.run.save_guesses and attack.score == "pooled":
        raise ConfigError("--save_guesses: expected --attack_score=own")
    named = [name for name in attack.kinds if name != settings.STANDARD]
    if attack.kinds and setup.targets is None:
        raise ConfigError(
            f"--data_sensitive: {setup.table.name} names no sensitive attribute; choose "
            "a column, or train only with --attack_kinds="
        )
    left_out = {name: _why_not(*_refusal(setup, name)) for name in attack.standard}
    kept = [name for name, why in left_out.items() if not why]
    kinds = tuple(dict.fromkeys([*kept, *named]))
    config = setup.config._replace(attack=dataclasses.replace(attack, kinds=kinds))
    setup = setup._replace(config=config)
    for name in chosen(setup):
        flag, why = _refusal(setup, name)
        if why:
            raise ConfigError(f"{flag}: {name}: {why}")
    return setup, {name: why for name, why in left_out.items() if why}


def _why_not(flag: str, why: str) -> str:
    return why if flag == "--attack_kinds" else f"{flag}: {why}" if why else ""


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


class Found(NamedTuple):
    """What came of one kind; guesses only where they are to be saved."""

    rows: list[Row]
    guesses: list[Guess]


def run(
    name: str, setup: Setup, adversary: Adversary, scored: Scoring,
    strangers: tuple[Strangers, Scoring] | None,
) -> Found:  # fmt: skip
    """Runs one kind on every client of every seed, and scores it beside its controls.

    Args:
      name: of the kind.
      setup: of the run.
      adversary: of every seed.
      scored: compares with the truth.
      strangers: to be attacked likewise, and what compares them; None for nobody.
    """
    if name == "oracle":
        return Found(oracle.rows(setup, adversary, scored), [])
    again = _runner(name, setup, adversary)
    found = again(adversary)
    scores = [row for each in found for row in scoring.rows(scored, each)]
    if name == "reconstruct":
        scores += oracle.reconstruction_rows(setup, adversary, scored, found)
    others = {}
    if strangers is not None:
        them, compared = strangers
        alike = controls.of_strangers(adversary, them.known)
        others[verdicts.STRANGERS] = alike, compared
    if "permuted" in setup.config.attack.controls:
        others["permuted"] = controls.permuted(adversary), scored
    for control, (other, compared) in others.items():
        for each in controls.repeated(control, found, again, other):
            scores += scoring.rows(compared, each)
    kept = []
    if setup.config.run.save_guesses:
        kept = [said for each in found if (said := guesses.of_attack(each))]
    return Found(scores, kept)


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
    told = attacks.settings("grad", config.attack, config.trajectory)
    if "active" not in config.attack.kinds:
        return lambda given: gradients.run(given, told)
    isolated = active.isolate(setup, adversary)
    return lambda given: gradients.run_active(given, told, isolated, config.active)


def _refusal(setup: Setup, name: str) -> tuple[str, str]:
    """Which flag keeps a kind from running, and why; empty texts if none does."""
    config = setup.config
    if config.run.record == "last" and name not in _LAST_ROUND_DOES:
        only = ",".join(_LAST_ROUND_DOES)
        return "--record=last", f"only --attack_kinds={only} need no more"
    if config.run.max_clients_in_memory is not None and name not in _SOME_DO:
        only = ",".join(_SOME_DO)
        flag = "--max_clients_in_memory"
        return flag, f"only --attack_kinds={only} attack some clients"
    if config.attack.score == "pooled" and name not in _POOLED:
        return "--attack_score=pooled", "it attacks a client's own rows only"
    if name not in ("active", "oracle"):
        told = attacks.settings(name, config.attack, config.trajectory)
        if why := attacks.missing(name, view(setup), told):
            return "--attack_kinds", why
    if name == "active":
        active.check(setup)
    if name == "reconstruct" and config.run.transcript is None:
        check_messages(setup, setup.problem.schedule.recorded_clients, "--num_rounds")
    return "", ""
