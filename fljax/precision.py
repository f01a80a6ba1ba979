"""Products in full float32 precision, which accelerators leave off unless told.

A TPU multiplies in bfloat16 and a recent GPU in TensorFloat-32, which keeps three digits:
enough to train with, and too few for an attack that solves for rows, or for a message that
is compared with one of another machine. So programs and trainings ask for full precision
unless JAX's setting says otherwise, and attacks ask in any case. A CPU always has it.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

_P = ParamSpec("_P")
_T = TypeVar("_T")
_DEFAULT = "jax_default_matmul_precision"
_FULL = "highest"


def use_full() -> None:
    """For all products from here on; what was chosen before, by JAX's setting, stays."""
    jax.config.update(_DEFAULT, _chosen())


def full(fun: Callable[_P, _T]) -> Callable[_P, _T]:
    """The same function with all of its products in full precision; of use inside jit."""
    return _with(lambda: _FULL, fun)


def by_default(fun: Callable[_P, _T]) -> Callable[_P, _T]:
    """The same function in full precision, unless JAX's setting says otherwise."""
    return _with(_chosen, fun)


def _with(precision: Callable[[], str], fun: Callable[_P, _T]) -> Callable[_P, _T]:
    @functools.wraps(fun)
    def precise(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with jax.default_matmul_precision(precision()):
            return fun(*args, **kwargs)

    return precise


def _chosen() -> str:
    return getattr(jax.config, _DEFAULT) or _FULL
