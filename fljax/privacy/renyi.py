"""Renyi divergences of one step, by order, from dp_accounting.

At some low orders its series does not converge, and of next to nothing it may round below
0. Such an order is left out of a minimum over all, which remains an upper bound; its log
says so line by line, and need not.
"""

import contextlib
import logging
from collections.abc import Iterator

import numpy as np
from dp_accounting import rdp


def curve(accountant: rdp.RdpAccountant, event) -> tuple[np.ndarray, np.ndarray]:
    """Orders, and the divergence of an event at each.

    Args:
      accountant: a new one.
      event: of dp_accounting, one step.

    Returns:
      Orders, and divergences; infinite where an order is left out.
    """
    with _without("failed to converge"):
        found = accountant.compose(event)
    return found.orders, np.where(found.rdp < 0, np.inf, found.rdp)


@contextlib.contextmanager
def _without(text: str) -> Iterator[None]:
    """A block in which absl logs no line that has this text."""

    def other(record: logging.LogRecord) -> bool:
        return text not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)
