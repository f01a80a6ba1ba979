"""Several processes that compute one run together: machines of a cluster, or of a test.

Each is started with the same flags and its own number. All devices of all of them form
one mesh (`fljax.parallel`), and all hold the same results. Only the first process reads
and writes the run's folder; what it read, and what it decided, `from_first` and `agree`
give to the others. Every process has to make the same calls in the same order.
"""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

from fljax.driver.config import ConfigError
from fljax.driver.option import option

_AUTO = "auto"
_is_first = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessFlags:
    """No prefix."""

    coordinator: str | None = option(
        None,
        "address HOST:PORT of process 0, or auto where the cluster's environment says "
        "everything; none: a single process",
    )
    num_processes: int | None = option(None, "of a run with a coordinator", min=1)
    process_id: int | None = option(None, "number of this one, from 0", min=0)

    def __post_init__(self):
        count, number = self.num_processes, self.process_id
        if self.coordinator in (None, _AUTO):
            if (count, number) != (None, None):
                raise ConfigError(
                    "--num_processes, --process_id: need --coordinator=HOST:PORT"
                )
        elif count is None or number is None or number >= count:
            raise ConfigError(
                "--coordinator: needs --num_processes and a smaller --process_id, got "
                f"{count} and {number}"
            )


def join(config: ProcessFlags) -> None:
    """Meets the other processes; call before the first use of a device.

    Raises:
      ConfigError: nobody answers.
    """
    if config.coordinator is None:
        return
    address = None if config.coordinator == _AUTO else config.coordinator
    try:
        jax.distributed.initialize(address, config.num_processes, config.process_id)
    except (ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"--coordinator: no run with the others: {reason:.200}"
        ) from error
    global _is_first
    _is_first = jax.process_index() == 0


def is_first() -> bool:
    """Whether this is the process that reads and writes files, and talks to people."""
    return _is_first


def from_first(read: Callable[[], bytes]) -> bytes:
    """What `read` returns in the first process, in every process.

    Args:
      read: called in the first process only.

    Raises:
      ConfigError: `read` raised it; in every process.
    """
    if jax.process_count() == 1:
        return read()
    content, failed = b"", False
    if is_first():
        try:
            content = read()
        except ConfigError as error:
            content, failed = str(error).encode(), True
    size, failed = broadcast(np.array([len(content), failed], np.int32))
    buffer = np.frombuffer(content, np.uint8) if is_first() else np.zeros(size, "u1")
    content = broadcast(buffer).tobytes()
    if failed:
        raise ConfigError(content.decode())
    return content


def value_from_first(read: Callable[[], Any]) -> Any:
    """`from_first` for whatever JSON can hold."""
    return json.loads(from_first(lambda: json.dumps(read()).encode()))


def broadcast(array: np.ndarray) -> np.ndarray:
    """The first process's array; those of the others have its shape and dtype."""
    if jax.process_count() == 1 or not array.size:
        return array
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    sent = np.asarray(multihost_utils.broadcast_one_to_all(flat))
    return sent.view(array.dtype).reshape(array.shape)


def agree(asked: bool, due: bool) -> tuple[bool, bool]:
    """Whether any process was asked to stop, and whether it is due in the first one."""
    if jax.process_count() == 1:
        return asked, due
    every = multihost_utils.process_allgather(np.array([asked, due], np.int32))
    return bool(every[:, 0].any()), bool(every[0, 1])
