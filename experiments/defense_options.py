"""The flag `--defense` and what is said of its values, the same in every program."""

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from experiments import epsilons
from fljax.defenses import specs, table
from fljax.defenses.specs import Spec
from fljax.driver.config import ConfigError
from fljax.privacy import Promise

FLAG = "--defense"
HELP = (
    "what is done against leakage: none, or defenses that act at different places, "
    "joined by +, e.g. fed_cdp(clip=4, sigma=6) + pruning(ratio=0.3); there are "
    f"{table.help_text()}, and module:attribute for one of your own"
)
SEVERAL = (
    f"{HELP}. Several are separated by semicolons, alternatives of a value by |, e.g. "
    "clip=1|2|4: each is trained"
)


def parse(text: str) -> Spec:
    """One spec, which may have alternatives.

    Raises:
      ConfigError: naming the flag.
    """
    try:
        return specs.parse(text)
    except specs.SpecError as error:
        raise ConfigError(f"{FLAG}: {error}") from error


def parse_all(text: str, flag: str = FLAG) -> tuple[Spec, ...]:
    """Every alternative of several specs.

    Args:
      text: value of the flag.
      flag: with its dashes.

    Raises:
      ConfigError: naming the flag.
    """
    try:
        return specs.parse_all(text)
    except specs.SpecError as error:
        raise ConfigError(f"{flag}: {error}") from error


@contextlib.contextmanager
def naming(spec: Spec) -> Iterator[None]:
    """Names the flag in what is said of a defense that cannot be.

    Raises:
      ConfigError: for a ValueError inside.
    """
    try:
        yield
    except ValueError as error:
        raise ConfigError(f"{FLAG}={spec}: {error}") from None


def warn_of_unknown(spec: Spec, flag: str = FLAG) -> None:
    """Of attacks that simulate defenses, and cannot one that does not say what it does."""
    if unknown := specs.without_effects(spec):
        warnings.warn(
            f"{flag}: attacks do not know what {', '.join(unknown)} does to messages, for "
            "its Definition has no effects: what they read is a lower bound",
            stacklevel=2,
        )


def short_name(spec: Spec) -> str:
    """As papers call it, e.g. `fed_cdp_decay`, whatever its numbers are."""
    found = []
    for part in spec.parts:
        decay = "_decay" if part.values.get("decay_to") is not None else ""
        mode = part.values.get("mode", "per_example")
        found.append(part.name + decay + ("" if mode == "per_example" else f"_{mode}"))
    return "+".join(found) or "non_private"


def promised(spec: Spec, promises: Iterable[Promise]) -> dict[str, dict[str, Any]]:
    """What a manifest says of a defense: each epsilon, and what it rests on."""
    return {
        str(spec) + " of a client" * (promise.noise.unit == "client"): {
            "epsilon": epsilons.as_json(promise.guarantee.epsilon_pld.max()),
            "assumption": promise.guarantee.assumption,
        }
        for promise in promises
    }
