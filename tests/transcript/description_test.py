"""A transcript's description: what is none, of another kind, or a lie."""

import json
import math

import numpy as np
import pytest


def test_a_forgery_that_is_consistent_passes(saved):
    # Without this the tests below could pass for a reason of their own.
    saved.forge(saved.arrays() | {"round": np.array([7, 9], np.int32)})
    np.testing.assert_array_equal(saved.load()[0].round, [7, 9])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"fljax-transcript"',
        "{}",
        "\ufeff{}",
        "[" * 100_000,
    ],
    ids=["empty", "cut", "list", "null", "string", "no fields", "marked", "deep"],
)
def test_a_description_that_is_none_is_refused(saved, text):
    saved.description.write_text(text, encoding="utf-8")
    saved.refused(".json")


def test_a_description_that_is_not_text_is_refused(saved):
    saved.description.write_bytes(b"\xff\xfe\x00{}")
    saved.refused(".json")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"version": 2},
        {"version": "1"},
        {"about": []},
        {"arrays": []},
        {"arrays": {"round": 3}},
        {"arrays": {"round": {"shape": 2, "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": ["x"], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [math.inf], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [-2], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [2.0], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [2], "dtype": "no such type"}}},
        {"arrays": {"round": {"shape": [2], "dtype": "|O"}}},
        {"arrays": {"round": {"shape": [2], "dtype": ">i4"}}},
    ],
    ids=[
        "format",
        "version",
        "version as text",
        "about as list",
        "arrays as list",
        "array as number",
        "shape as number",
        "shape of text",
        "infinite shape",
        "negative shape",
        "fractional shape",
        "unknown dtype",
        "object dtype",
        "foreign dtype",
    ],
)
def test_a_description_of_another_kind_is_refused(saved, changes):
    saved.describe(**changes)
    saved.refused(".json")


@pytest.mark.parametrize("field", ["format", "version", "sha256", "arrays", "about"])
def test_a_description_needs_every_field(saved, field):
    path = saved.description
    description = json.loads(path.read_text())
    del description[field]
    path.write_text(json.dumps(description))
    saved.refused(".json")


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("round", {"shape": [3], "dtype": "<i4"}),
        ("round", {"shape": [2, 1], "dtype": "<i4"}),
        ("round", {"shape": [10**6], "dtype": "<i4"}),
        ("round", {"shape": [2], "dtype": "<i8"}),
        ("round", {"shape": [2], "dtype": "<f4"}),
        ("params/dense/kernel", {"shape": [2, 1, 3], "dtype": "<f4"}),
    ],
    ids=["longer", "column", "huge", "wider", "float", "transposed"],
)
def test_a_lie_about_an_array_is_found(saved, name, spec):
    saved.describe(arrays=saved.specs(saved.arrays()) | {name: spec})
    saved.refused(".npz")
