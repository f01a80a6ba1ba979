"""Seconds per stage of a run, with compile time apart."""

import contextlib
import time
from collections.abc import Iterator

import jax

Seconds = dict[str, dict[str, float]]
_COMPILING = (
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)
_spent: list[float] = []


def _listen(event: str, duration_secs: float, **_) -> None:
    if event in _COMPILING:
        _spent.append(duration_secs)


jax.monitoring.register_event_duration_secs_listener(_listen)


@contextlib.contextmanager
def stage(seconds: Seconds, name: str) -> Iterator[None]:
    """Adds the time of its block to `seconds[name]`, as `compile` and `run`.

    What JAX reports as lowering and compiling counts as `compile`, everything else as
    `run`.
    """
    begin, before = time.perf_counter(), len(_spent)
    yield
    total = time.perf_counter() - begin
    compiling = min(sum(_spent[before:]), total)
    entry = seconds.setdefault(name, {"compile": 0.0, "run": 0.0})
    entry["compile"] += compiling
    entry["run"] += total - compiling
