"""Room for the rows of all clients, which are padded to those of the largest."""

from fljax import memory
from fljax.driver.config import ConfigError

_BYTES = 32  # of a cell: rows, truth and strangers, and what is made on the way


def check(clients: int, most: int, inputs: int) -> None:
    """Refuses what cannot be held, before it is made.

    Args:
      clients: that are audited.
      most: rows of the largest.
      inputs: of a row.

    Raises:
      ConfigError: naming both numbers.
    """
    needed, free = float(_BYTES) * clients * most * inputs, memory.available()
    if needed > free:
        raise ConfigError(
            f"--client_column: {clients} clients, each with room for the {most} rows of "
            f"the largest, need about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB "
            "are free; audit some of them with --client, the largest by itself"
        )
