"""Results as JSON and back."""

import json
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from fljax.driver import json_values
from fljax.results import Row


class _Look(NamedTuple):
    accuracy: np.ndarray
    rounds: tuple[int, ...]


def _there_and_back(value, *types):
    return json_values.decode(json.loads(json.dumps(json_values.encode(value))), types)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -3,
        0.1 + 0.2,
        math.inf,
        "text",
        [],
        (1, (2.5, "x"), [None]),
        {"a": {"b": (1,)}, "float": 1.0, "array": []},
        Row("aia", "toy", "mlp", "none", "grad", "passive", "", 0, 3, "m", 80.1, 10),
    ],
    ids=str,
)
def test_values_come_back_as_they_were(value):
    found = _there_and_back(value, Row)
    assert found == value
    assert type(found) is type(value)


def test_no_number_stays_none():
    assert math.isnan(_there_and_back([math.nan])[0])


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i4", "|b1", "|u1"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_arrays_come_back_to_the_bit(dtype, shape):
    value = np.random.default_rng(0).normal(size=shape).astype(dtype)
    found = _there_and_back(value)
    np.testing.assert_array_equal(found, value)
    assert (found.dtype, found.shape) == (value.dtype, value.shape)


def test_arrays_of_jax_come_back_as_those_of_numpy():
    found = _there_and_back([jnp.arange(3)])[0]
    assert type(found) is np.ndarray
    assert found.tolist() == [0, 1, 2]


def test_named_tuples_are_those_that_are_stated():
    value = [_Look(np.arange(3.0), (1, 2))]
    (found,) = _there_and_back(value, _Look)
    assert type(found) is _Look
    np.testing.assert_array_equal(found.accuracy, value[0].accuracy)
    assert found.rounds == (1, 2)
    with pytest.raises(ValueError, match="kept as JSON"):
        _there_and_back(value, Row)


@pytest.mark.parametrize(
    "value",
    [object(), {1: 2}, {3}, b"", np.array([object()])],
    ids=["object", "key", "set", "bytes", "array of objects"],
)
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError):
        json_values.encode(value)


@pytest.mark.parametrize(
    "text",
    ["{}", '{"a": 1}', '{"float": 1}', '{"array": ["<f4", [2], ""]}', '{"named": []}'],
)
def test_what_is_no_kept_result_is_refused(text):
    with pytest.raises((ValueError, TypeError)):
        json_values.decode(json.loads(text))
