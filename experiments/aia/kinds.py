"""The names of `--attack_kinds`: the registry's attacks, active servers and the oracle.

Here attacks, which are given an `Adversary`, meet what scores them; `refusals` has which
of them can be run.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from experiments.aia import (
    active,
    attacks,
    controls,
    gradients,
    guesses,
    oracle,
    scoring,
)
from experiments.aia.adversary import Adversary, Attacked
from experiments.aia.adversary_config import MESSAGES, Sight
from experiments.aia.guesses import Guess
from experiments.aia.scoring import Scoring
from experiments.aia.settings import attack_kinds
from experiments.aia.setup import Setup
from experiments.aia.strangers import Strangers
from fljax import verdicts
from fljax.driver.config import ConfigError
from fljax.results import Row


def chosen(setup: Setup) -> list[str]:
    """What was asked for, in the order in which it runs; the user's own last."""
    asked = dict.fromkeys(setup.config.attack.kinds)
    known = [name for name in attack_kinds() if name in asked]
    return [*known, *(name for name in asked if name not in known)]


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
