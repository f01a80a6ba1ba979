"""Which attacks of `--attack_kinds` can be run, and which flag keeps others from it."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments import defense_options
from experiments.aia import active, attacks, settings
from experiments.aia.adversary_config import MESSAGES, Sight
from experiments.aia.setup import Setup
from experiments.aia.wall import server, view
from fljax.attacks import needs
from fljax.auditing.doubts import SIMULATING
from fljax.driver.config import ConfigError

_LAST_ROUND_DOES = ("model", "oracle")  # need no more of the transcript
_SOME_DO = ("model", "grad", *SIMULATING)  # need no more clients
_MESSAGES = ("active", "oracle")  # and those of the registry that need them
_POOLED = ("model", "reconstruct", "active", "oracle")  # attack anyone's rows


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
    sights = setup.config.adversary.sights
    _check_sights(setup)
    left_out, kept = {}, []
    for name in attack.standard:
        refused = _refusals(setup, name)
        kept += [name] if len(refused) < len(sights) else []
        left_out |= _said(name, refused, len(sights))
    kinds = tuple(dict.fromkeys([*kept, *named]))
    _check_names(kinds)
    config = setup.config._replace(attack=dataclasses.replace(attack, kinds=kinds))
    setup = setup._replace(config=config)
    for name in named:
        refused = _refusals(setup, name)
        if len(refused) == len(sights):
            flag, why = refused[sights[0]]
            raise ConfigError(f"{flag}: {name}: {why}")
        left_out |= _said(name, refused, len(sights))
    bound, simulates = setup.problem.bound_defense, {*kinds} & {*SIMULATING}
    if bound is not None and attack.knows_defense and simulates:
        defense_options.warn_of_unknown(bound.spec)
    return setup, left_out


def _check_names(kinds: Sequence[str]) -> None:
    """Refuses two attacks of one name, whose numbers would be taken for those of one."""
    names = [attacks.find(each).name if ":" in each else each for each in kinds]
    if twice := sorted(name for name in {*names} if names.count(name) > 1):
        raise ConfigError(f"--attack_kinds: two attacks have the name {twice[0]!r}")


def _refusals(setup: Setup, name: str) -> dict[Sight, tuple[str, str]]:
    """For whom an attack cannot be run: the flag, and why."""
    every = {s: _refusal(setup, name, s) for s in setup.config.adversary.sights}
    return {sight: said for sight, said in every.items() if said[1]}


def _said(name: str, refused: Mapping[Sight, tuple[str, str]], sights: int):
    """The same for readers."""
    return {
        name if sights == 1 else f"{name} ({sight.setting})": (
            why if flag == "--attack_kinds" else f"{flag}: {why}"
        )
        for sight, (flag, why) in refused.items()
    }


def applies(setup: Setup, name: str, sight: Sight) -> bool:
    """Whether an attack can be run with what an adversary sees."""
    return not _refusal(setup, name, sight)[1]


def _check_sights(setup: Setup) -> None:
    """Refuses sums of messages that are not kept."""
    if all(sight == MESSAGES for sight in setup.config.adversary.sights):
        return
    if setup.config.run.max_clients_in_memory is not None:
        raise ConfigError(
            "--max_clients_in_memory: sums are of all clients, expected "
            "--adversary=messages"
        )
    if setup.config.attack.score == "pooled":
        raise ConfigError("--attack_score=pooled: expected --adversary=messages")
    clients = setup.clients.sizes.shape[1]
    there = (np.asarray(setup.problem.schedule.participants) < clients).sum(axis=-1)
    for size in setup.config.adversary.sum_of:
        if size > there.max():
            raise ConfigError(
                f"--sum_of: expected at most the {there.max()} clients of a round, got "
                f"{size}"
            )


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


def _refusal(setup: Setup, name: str, sight: Sight) -> tuple[str, str]:
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
    if name in _MESSAGES and sight != MESSAGES:
        return "--adversary", "needs each client's own messages"
    if name not in _MESSAGES:
        told = attacks.settings(name, config.attack, config.trajectory)
        if why := attacks.missing(name, view(setup, sight=sight), told):
            return "--attack_kinds", why
        if attacks.find(name).needs.members and _hides_members(setup, sight):
            return "--adversary=models", needs.UNKNOWN_MEMBERS
    if name == "active":
        active.check(setup)
    if name == "reconstruct" and config.run.transcript is None:
        check_messages(setup, setup.problem.schedule.recorded_clients, "--num_rounds")
    return "", ""


def _hides_members(setup: Setup, sight: Sight) -> bool:
    """Whether global models do not tell whose messages made them."""
    return sight.view == "models" and not server(setup).tells_sums
