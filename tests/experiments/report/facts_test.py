"""What a card tells of a manifest, whatever the manifest looks like."""

import dataclasses

import pytest

from experiments.report import cards, facts
from experiments.tabular.settings import TrainConfig


def _card(rows, manifest, reference=None):
    return cards.card("run", rows(80.0, 81.0), manifest, reference)


def _folded(card):
    return {each.caption: each.body for each in facts.folded(card)}


def test_data_defense_training_and_seeds_are_told(rows):
    manifest = {
        "flags": {
            "partition_clients": 2, "partition_kind": "contiguous", "num_rounds": 100,
            "batch_size": 32, "learning_rate": 2e-6, "partition_heterogeneity": 0.0,
        },
        "data": [{"name": "a.csv", "sha256": "0123456789abcdef", "origin": "local"}],
    }  # fmt: skip
    assert dict(facts.about(_card(rows, manifest))) == {
        "Data": "medical; a.csv (sha256 0123456789ab, local)",
        "Model": "mlp",
        "Defense": "none",
        "Training": "2 clients, rows dealt contiguous, 100 rounds, batch size 32, "
        "learning rate 2e-06",
        "Seeds": "2: 0, 1",
    }


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"data_sensitive": "married", "data_target": "income"},
         "married; target income"),
        ({"sensitive": "married", "target": "income"}, "married; target income"),
        ({"data_sensitive": "smoker", "data_target": None}, "smoker"),
        ({"data_sensitive": None, "data_target": "income"}, None),
        ({"data_sensitive": 7}, None),
        ({}, None),
    ],
    ids=["aia", "audit", "no target", "the default", "no text", "no flags"],
)  # fmt: skip
def test_the_inferred_column_is_told_where_the_flags_name_it(rows, flags, said):
    found = dict(facts.about(_card(rows, {"flags": flags})))
    assert found.get("Inferred") == said


@pytest.mark.parametrize(("decay", "said"), [(0.9, "times 0.9 after"), (1.0, None)])
def test_a_learning_rate_that_falls_is_told(rows, decay, said):
    flags = {"learning_rate": 0.1, "learning_rate_decay": decay}
    found = dict(facts.about(_card(rows, {"flags": flags})))["Training"]
    assert found == "learning rate 0.1" + (f", {said} each round" if said else "")


def test_runs_of_other_files_targets_or_trainings_are_told_apart(rows):
    def made(digest="1", **flags):
        return _card(rows, {"flags": flags, "data": [{"sha256": digest}]})

    one = made(data_target="y", num_rounds=40, data_path="a/rows.csv", defense="none")
    alike = made(data_target="y", num_rounds=40, data_path="b/rows.csv", defense="d")
    assert facts.data_of(one) == facts.data_of(alike)
    assert facts.trained_alike(one, alike)
    assert facts.data_of(one) != facts.data_of(made("2", data_target="y"))
    assert facts.data_of(one) != facts.data_of(made(data_target="z"))
    for other in ({"num_rounds": 3}, {"model_hidden": [8]}, {"fraction": 0.5}):
        assert not facts.trained_alike(one, made(data_target="y", **other))
    broken = _card(rows, {"data": [7, {"sha256": 8}], "flags": 9})
    assert facts.data_of(broken) and not facts.trained_alike(broken, one)


def test_every_flag_of_a_training_tells_runs_apart(rows):
    lanes = {"lanes"}  # how it is computed, not what
    for field in dataclasses.fields(TrainConfig):
        one, other = ({"flags": {field.name: value}} for value in ("a", "b"))
        alike = facts.trained_alike(_card(rows, one), _card(rows, other))
        assert alike == (field.name in lanes), field.name


def test_a_single_seed_is_not_counted(rows):
    card = cards.card("run", rows(80.0), {}, None)
    assert dict(facts.about(card))["Seeds"] == "0"


def test_data_that_stand_in_are_never_called_by_the_other_name(rows):
    reference = cards.Reference("Table 1", "Income-L", False, "mlp", False, {})
    said = dict(facts.about(_card(rows, {}, reference)))["Data"]
    assert said == "medical, a stand-in for Income-L: no result of Income-L"


def test_many_files_are_folded_away(rows):
    files = [{"name": f"{i}.zip", "sha256": "0" * 64, "origin": "x"} for i in range(51)]
    card = _card(rows, {"data": files})
    assert dict(facts.about(card))["Data"] == "medical; 51 files"
    assert _folded(card)["Data files"][50] == ["50.zip", "0" * 12, "x"]


def test_all_that_was_spent_on_a_defense_is_told(rows):
    spent = {
        "name": "dp_sgd",
        "epsilon_rdp": 1.0,
        "noise_multiplier": [12.81, 11.48],
        "clients": [{"delta": 1e-6}, {"delta": 1e-5}],
        "assumption": "Poisson batches",
    }
    card = _card(rows, {"defense": spent})
    assert facts.assumptions(card) == ["Poisson batches"]
    assert _folded(card)["Budget of the defense, by point, seed and client"] == [
        ["name", "dp_sgd"],
        ["epsilon_rdp", "1"],
        ["noise_multiplier", "12.81, 11.48"],
        ["clients, 0, delta", "1e-06"],
        ["clients, 1, delta", "1e-05"],
        ["assumption", "Poisson batches"],
    ]


@pytest.mark.parametrize("manifest", [{}, {"defense": {}}, {"defense": []}], ids=str)
def test_without_a_defense_nothing_is_told_of_one(rows, manifest):
    card = _card(rows, manifest)
    assert facts.assumptions(card) == []
    assert list(_folded(card)) == ["Versions", "Flags"]


def test_seconds_are_told_by_point_and_stage(rows):
    manifest = {
        "seconds": {
            "data": {"compile": 0.5, "run": 1.0},
            "run": {"train": {"compile": 3.0, "run": 2.0}},
            "h=0.1": {"train": {"compile": 0.0, "run": 2.25}},
        },
        "total_seconds": 8.75,
    }
    found = _folded(_card(rows, manifest))
    assert found["Seconds by stage, 8.75 in all"] == [
        ["", "data", "0.50", "1.00"],
        ["", "train", "3.00", "2.00"],
        ["h=0.1", "train", "0.00", "2.25"],
    ]


def test_flags_tell_nothing_of_the_users_folders(rows):
    flags = {"run_dir": "secret/a", "data_dir": "secret/b", "data_path": "secret/c.csv"}
    found = _folded(_card(rows, {"flags": flags}))
    assert found["Flags"] == [["--data_path", "c.csv"]]


def _deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "junk",
    [None, 7, "text", True, [], [7], {}, {"a": None}, {"a": {"b": [{"c": 1}]}},
     _deep(900), {"x" * 9999: "y" * 9999}, {"run": 10**400, "compile": float("nan")}],
    ids=["null", "number", "text", "bool", "empty list", "list", "empty", "mapping",
         "nested", "deep", "long", "large"],
)  # fmt: skip
def test_a_manifest_of_another_form_is_no_error(rows, junk):
    names = ("flags", "data", "defense", "seconds", "total_seconds", "packages")
    card = _card(rows, dict.fromkeys(names, junk) | {"device": junk})
    said = facts.about(card), facts.assumptions(card), facts.folded(card)
    assert len(repr(said)) < 20_000
