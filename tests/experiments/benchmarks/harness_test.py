"""Timing, equality, targets and tables of the benchmarks."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.benchmarks import harness


def test_a_plain_function_is_called_once_for_each_warm_up_and_repeat():
    calls = []
    timing = harness.measure(calls.append, 3, repeats=4, warm_ups=2)
    assert calls == [3] * 6
    assert timing.repeats == 4
    assert timing.trace_seconds == timing.compile_seconds == 0
    assert 0 < timing.best <= timing.median


def test_a_jitted_function_is_traced_once_and_compiled_apart():
    traces = []

    def fun(x):
        traces.append(x)
        return jnp.sin(x)

    timing = harness.measure(jax.jit(fun), jnp.ones(3), repeats=2)
    assert len(traces) == 1
    assert timing.trace_seconds > 0 and timing.compile_seconds > 0


def test_the_difference_is_relative_to_the_largest_value():
    got = {"a": np.array([1.0, 2.0]), "b": np.array([4.5])}
    want = {"a": np.array([1.0, 2.0]), "b": np.array([5.0])}
    assert harness.largest_difference(got, want) == 0.1
    got["b"][0] = np.nan
    assert math.isnan(harness.largest_difference(got, want))


@pytest.mark.parametrize("difference", [2e-4, math.nan], ids=["large", "nan"])
def test_unequal_results_are_refused(difference):
    with pytest.raises(ArithmeticError, match="training: results differ"):
        harness.check_equal("training", difference, 1e-4)


@pytest.mark.parametrize(
    ("value", "at_least", "met"),
    [(2.0, True, True), (1.9, True, False), (2.0, False, True), (2.1, False, False),
     (None, True, False), (None, False, False)],
)  # fmt: skip
def test_a_target_is_met_on_its_side_of_the_bound(value, at_least, met):
    target = harness.Target("speed", value, 2.0, at_least)
    assert target.met is met
    assert harness.exit_code([target], check=True) == int(not met)
    assert harness.exit_code([target], check=False) == 0


def test_the_report_shows_missing_values_as_dashes(capsys):
    target = harness.Target("speed", 3.0, 2.0)
    harness.report(
        [{"name": "one", "x": None}], {"name": ("n", ""), "x": ("x", ".1f")}, [target]
    )
    printed = capsys.readouterr().out
    assert "one" in printed and "-" in printed and "≥ 2" in printed
