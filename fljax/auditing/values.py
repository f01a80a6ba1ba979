"""How many values a sensitive category may have: attacks try each on every row.

Time and memory grow with their number, and nobody is told for minutes. So it is bounded,
in an audit and in a program that trains, by the same flag and in the same words.
"""

from fljax.driver.config import ConfigError
from fljax.driver.option import option

_MOST = 100


def most_values() -> int:
    """The field that becomes --most_values."""
    return option(_MOST, "different values of a sensitive category, at most", min=2)


def check(prefix: str, column: str, count: int, most: int) -> None:
    """Refuses a category of too many values.

    Args:
      prefix: of the flags that name columns, e.g. `data_`.
      column: the sensitive one.
      count: its values.
      most: --most_values.

    Raises:
      ConfigError: with the ways out.
    """
    if count > most:
        raise ConfigError(
            f"--{prefix}sensitive: {column} has {count} different values, and "
            f"attacks try each on every row; list it in --{prefix}numeric if it is a "
            f"number, join rare values, or allow so many with --most_values={count}"
        )
