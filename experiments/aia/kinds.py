"""The names of `--attack_kinds`: the registry's attacks, active servers and the oracle.

Here attacks, which are given an `Adversary`, meet what scores them.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments import defense_options
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
from experiments.aia.adversary_config import MESSAGES, Sight
from experiments.aia.guesses import Guess
from experiments.aia.scoring import Scoring
from experiments.aia.settings import attack_kinds
from experiments.aia.setup import Setup
from experiments.aia.strangers import Strangers
from experiments.aia.wall import server, view
from fljax import verdicts
from fljax.attacks import needs
from fljax.auditing.doubts import SIMULATING
from fljax.driver.config import ConfigError
from fljax.results import Row

_LAST_ROUND_DOES = ("model", "oracle")  # need no more of the transcript
_SOME_DO = ("model", "grad", *SIMULATING)  # need no more clients
_MESSAGES = ("active", "oracle")  # and those of the registry that need them
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


def check_new(name: str, before: Sequence[Row], found: Sequence[Row]) -> None:
    """Refuses numbers of an attack under the name of another one's.

    Args:
      name: of its kind.
      before: rows of the kinds before it.
      found: its own.

    Raises:
      ConfigError: it gives what another one does.
    """
    known = {(row.attack, row.setting) for row in before}
    twice = known.intersection((row.attack, row.setting) for row in found)
    if twice:
        raise ConfigError(
            f"--attack_kinds: {name} and another attack both give {min(twice)[0]!r}"
        )


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
    runner, sight = _runner(name, setup, adversary), adversary.sight

    def again(given: Adversary) -> list[Attacked]:
        return [_seen_by(sight, each) for each in runner(given)]

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
    if "active" not in config.attack.kinds or adversary.sight != MESSAGES:
        return lambda given: gradients.run(given, told)
    isolated = active.isolate(setup, adversary)
    return lambda given: gradients.run_active(given, told, isolated, config.active)


def _seen_by(sight: Sight, each: Attacked) -> Attacked:
    """An attack under the name of what its adversary sees."""
    prediction = each.prediction
    if prediction.setting != MESSAGES.setting:
        return each
    return each._replace(prediction=prediction._replace(setting=sight.setting))


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
