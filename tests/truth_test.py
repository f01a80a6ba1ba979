"""The walker finds a truth that is planted anywhere, and the imports behind imports."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from experiments.gradient_leakage import scores
from fljax import metrics
from tests import truth

_TRUTH = np.random.default_rng(0).integers(0, 9, (3, 10))


class _Pair(NamedTuple):
    one: object
    other: object


@dataclasses.dataclass(frozen=True)
class _Slotted:
    __slots__ = ("inside",)
    inside: object


def _closure(value):
    return lambda x: x + value


def _default(x, value=_TRUTH):
    return x + value


class _Object:
    def __init__(self, value):
        self._hidden = value

    def method(self):
        return self._hidden


@pytest.mark.parametrize(
    "received",
    [
        _TRUTH,
        jnp.asarray(_TRUTH, jnp.float32),
        _TRUTH[1],
        _TRUTH.reshape(5, 6),
        np.concatenate([np.zeros((2, 10)), _TRUTH]),
        np.stack([np.zeros(10), _TRUTH[2], np.ones(10)], axis=1),
        pd.DataFrame({"a": np.zeros(10), "b": _TRUTH[0]}),
        {"list": [None, _Pair("text", (_TRUTH,))]},
        _TRUTH[0].tolist(),
        _Slotted(_TRUTH),
        _Object(_TRUTH).method,
        _closure(_TRUTH),
        _default,
        functools.partial(np.add, x2=_TRUTH),
        jax.jit(_closure(_TRUTH)),
    ],
    ids=[
        "itself", "other_type", "one_client", "reshaped", "rows_among_others", "column",
        "frame", "nested", "numbers", "slots", "bound_method", "closure", "default",
        "partial", "jitted",
    ],
)  # fmt: skip
def test_a_planted_truth_is_found(received):
    assert truth.leaks({"known": np.zeros(7), "more": received}, {"age": _TRUTH})


def test_nothing_is_found_where_nothing_is():
    mixed = np.random.default_rng(1).permutation(_TRUTH.ravel())
    assert not truth.leaks([mixed, jax.random.key(0), print], {"age": _TRUTH})


def test_the_place_is_named():
    found = truth.leaks(_Pair({"a": _TRUTH}, 0), {"age": _TRUTH})
    assert found == ["age at .one['a']"]


@pytest.mark.parametrize("leaf", [np.zeros(100), np.arange(3)], ids=["equal", "few"])
def test_a_truth_that_chance_could_say_is_refused(leaf):
    with pytest.raises(ValueError, match="age: nothing in it"):
        truth.leaks([], {"age": leaf})


def test_imports_are_followed():
    names = truth.imports(scores, "fljax")
    assert {"fljax.image_metrics", "fljax.metrics", "fljax.tree"} <= names
    assert not truth.imports(metrics, "experiments")
