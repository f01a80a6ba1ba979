"""The flag `--defense`, the same in every program."""

from fljax.defenses import specs, table
from fljax.defenses.specs import Spec
from fljax.driver.config import ConfigError

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


def parse_all(text: str) -> tuple[Spec, ...]:
    """Every alternative of several specs.

    Raises:
      ConfigError: naming the flag.
    """
    try:
        return specs.parse_all(text)
    except specs.SpecError as error:
        raise ConfigError(f"{FLAG}: {error}") from error
