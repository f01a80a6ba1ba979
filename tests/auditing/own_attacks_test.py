"""A newcomer's attack with a mistake is named; nobody reads it as a leak or as none."""

import re

import numpy as np
import pandas as pd
import pytest

import fljax
from fljax.attacks.estimates import Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec


def _own(name: str, key: str | None = None, value=0, shape=None) -> AttackSpec:
    def run(view, settings):
        there = view.known.y.shape if shape is None else shape
        return {key or name: Prediction(np.full(there, value))}

    return AttackSpec(name, Needs(), run)


@pytest.mark.parametrize(
    "attacks, said",
    [
        ((_own("mine", value=0.5),), "'mine': expected value: numbers of candidates"),
        ((_own("mine", shape=(30, 2)),), "numbers [2, 30], got int64 [30, 2]"),
        (("model", _own("mine", key="model")), "called mine or mine_..., got 'model'"),
        ((_own("a", key="a_b"), _own("a_b")), "two attacks give 'a_b'"),
        ((_own("my_other"),), "'my_other': expected a name without the words"),
        ((AttackSpec("mine", lambda view, _: {}, Needs()),), "needs to be a Needs"),
        (None, "expected a list of names, got NoneType"),
        (_own("mine"), "expected a list of names, got AttackSpec"),
    ],
)
def test_what_cannot_be_scored_is_one_line(linear, attacks, said):
    rows = pd.read_csv(linear / "rows.csv")
    told = {"target": "y", "sensitive": "married", "client_column": "client"}
    with pytest.raises(ValueError, match=f"^attacks: .*{re.escape(said)}"):
        fljax.audit(linear / "seen", rows, model="linear", attacks=attacks, **told)


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"modle": 3}, "expected some of .* got 'modle'"),
        ({"model": 3}, "of 'model' expected none, for it has no settings, got int"),
        (
            {"grad": {"iterations": 3}},
            r"of 'grad' expected a .*grid\.Settings, got dict",
        ),
        ({"mine": 3.0}, r"of 'mine' expected a builtins\.int, got float"),
        (3, "expected attack -> its settings, got int"),
    ],
)
def test_settings_of_nobody_are_named(linear, settings, said):
    rows = pd.read_csv(linear / "rows.csv")
    mine = _own("mine")._replace(settings=3)
    with pytest.raises(ValueError, match=f"^settings: {said}$"):
        fljax.audit(
            linear / "seen", rows, target="y", sensitive="married", model="linear",
            client_column="client", attacks=("model", mine), settings=settings,
        )  # fmt: skip


def test_an_attack_cannot_write_to_what_others_read(linear):
    def run(view, settings):
        view.known.y[:] = 0
        raise AssertionError

    rows = pd.read_csv(linear / "rows.csv")
    told = {"target": "y", "sensitive": "married", "client_column": "client"}
    attacks = (AttackSpec("mine", Needs(), run),)
    with pytest.raises(ValueError, match="read-only"):
        fljax.audit(linear / "seen", rows, model="linear", attacks=attacks, **told)


def test_views_that_there_are_not_are_named():
    with pytest.raises(
        ValueError, match="views: expected some of messages, .* 'message'"
    ):
        Needs(views=("message",))
