"""Batches of a pass of which the last is smaller: its noise may be, too."""

import dataclasses

import pytest

from fljax.privacy import fed_cdp
from tests.privacy.wei import MNIST

_TOLD = dataclasses.replace(
    MNIST,
    records=501,  # the last batch has one
    local_steps=101,
    draws="each",
    batches="fixed",
)


def test_a_draw_for_each_example_is_stated_of_the_smallest_batch():
    found = fed_cdp.implemented(_TOLD)
    one = dataclasses.replace(_TOLD, draws="one")
    even = dataclasses.replace(_TOLD, records=500)
    assert found.epsilon == pytest.approx(fed_cdp.implemented(one).epsilon)
    assert found.epsilon > fed_cdp.implemented(even).epsilon
    assert "1 draws" in found.sampling


def test_draws_of_a_stated_number_do_not_follow_the_batch():
    stated = dataclasses.replace(_TOLD, largest=5)
    assert fed_cdp.implemented(stated).epsilon < fed_cdp.implemented(_TOLD).epsilon
    whole, followed = (fed_cdp.implemented_client(t).epsilon for t in (stated, _TOLD))
    assert whole < followed
