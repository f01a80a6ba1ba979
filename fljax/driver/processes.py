"""Several processes that compute one run together: machines of a cluster, or of a test.

Each is started with the same flags and its own number. All devices of all of them form
one mesh (`fljax.parallel`), all hold the same results, and the first one writes them.
"""

import dataclasses

from fljax.driver.config import ConfigError
from fljax.driver.option import option

_AUTO = "auto"
_is_first = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessConfig:
    """No prefix."""

    coordinator: str | None = option(
        None,
        "address HOST:PORT of process 0, or auto where the cluster's environment says "
        "everything; none: a single process",
    )
    num_processes: int | None = option(None, "of a run with a coordinator", min=1)
    process_id: int | None = option(None, "number of this one, from 0", min=0)


def join(told: ProcessConfig) -> None:
    """Meets the other processes; call before the first use of a device.

    Raises:
      ConfigError: the flags do not fit each other, or nobody answers.
    """
    import jax

    numbers = told.num_processes, told.process_id
    if told.coordinator in (None, _AUTO):
        if numbers != (None, None):
            raise ConfigError(
                "--num_processes, --process_id: need --coordinator=HOST:PORT"
            )
        if told.coordinator is None:
            return
    elif None in numbers or told.process_id >= told.num_processes:
        raise ConfigError(
            "--coordinator: needs --num_processes and a smaller --process_id, got "
            f"{told.num_processes} and {told.process_id}"
        )
    address = None if told.coordinator == _AUTO else told.coordinator
    try:
        jax.distributed.initialize(address, *numbers)
    except (ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise ConfigError(
            f"--coordinator: no run with the others: {said:.200}"
        ) from error
    global _is_first
    _is_first = jax.process_index() == 0


def is_first() -> bool:
    """Whether this is the process that writes, and talks to people."""
    return _is_first
