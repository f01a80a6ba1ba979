"""What a report says of programs that judge no gain over a baseline."""

import pytest

from experiments import epsilons
from tests.experiments.report.short import a_card, only, sentences


def _rebuilt(rows, method, defense, values):
    return [
        row._replace(client=client, seed=0)
        for client, value in enumerate(values)
        for row in rows(
            value, attack=method, defense=defense, setting="leakage_type=2",
            metric="attack_success", experiment="gradient_leakage",
        )
    ]  # fmt: skip


def test_rebuilt_images_are_counted_by_client(rows):
    made = _rebuilt(rows, "non_private", "none", (1, 1, 1, 0))
    made += _rebuilt(rows, "fed_cdp", "fed_cdp(clip=4, sigma=6)", (0,) * 4)
    said = only(a_card("run", made))
    assert "type 2: non_private 3 of 4, fed_cdp 0 of 4." in said
    assert "None of 4 still allows for 60 % (95 %)" in said
    assert "One seed." in said


def test_clients_of_one_run_are_counted_once_for_each_strength_of_a_defense(rows):
    weak, strong = "fed_cdp(clip=4, sigma=0)", "fed_cdp(clip=4, sigma=6)"
    swept = _rebuilt(rows, "fed_cdp", weak, (1,) * 4)
    swept += _rebuilt(rows, "fed_cdp", strong, (0,) * 4)
    whole = _rebuilt(rows, "fed_cdp", strong, (0,) * 8)
    said = only(a_card("a", swept), a_card("b", whole))
    assert f"type 2: {weak} 4 of 4, {strong} 0 of 4, {strong} 0 of 8." in said
    assert "None of 4 still allows for 60 % (95 %)" in said


def test_what_privacy_costs_is_claimed_of_separate_intervals_only(rows):
    made = []
    for name, values in {
        "non_private": (90.0, 91.0), "fed_cdp": (50.0, 51.0), "fed_sdp": (80.0, 95.0)
    }.items():  # fmt: skip
        made += rows(
            *values, attack=name, defense=name, setting="final",
            metric="accuracy_percent", experiment="fed_cdp",
        )  # fmt: skip
    said = only(a_card("run", made))
    assert "less than without a defense by 40.0 points" in said
    assert "(not clearly less than without a defense)" in said
    assert "no attack was run" in said


def test_a_defense_is_compared_in_its_own_federation_and_run(rows):
    made = {}
    for run, changed in (("a", 0.0), ("b", -20.0)):
        made[run] = []
        for percent, base in ((5, 60.0), (10, 90.0)):
            point = f"clients=100;participating_percent={percent}"
            for name, where, value in (
                ("non_private", point, base), ("fed_cdp", f"{point};clip=4", base - 10)
            ):  # fmt: skip
                made[run] += rows(
                    value + changed, value + changed + 0.1, attack=name, defense=name,
                    point=where, setting="final", metric="accuracy_percent",
                    experiment="fed_cdp",
                )  # fmt: skip
    said = only(*(a_card(run, each) for run, each in made.items()))
    assert (
        said.count("less than without a defense by 10.0 points") == 3
    )  # of the six shown
    assert "participating_percent=10 run a 90.05" in said
    assert "participating_percent=5 run b 40.05" in said


def test_a_defense_of_another_file_or_training_stops_nothing_here(rows):
    def run(name, values, defense="none", rounds=40, digest="1"):
        made = rows(57.0, 57.0, 57.0, attack="majority", defense=defense)
        made += rows(*values, defense=defense)
        about = {"flags": {"num_rounds": rounds}, "data": [{"sha256": digest}]}
        return a_card(name, made, **about)

    leak, nothing = (98.0, 99.0, 98.5), (57.1, 56.9, 57.0)
    bare = run("a", leak)
    said = only(bare, run("b", nothing, "median"))
    assert "With a defense: no leak shown under median, run b" in said
    said = only(bare, run("b", nothing, "median", rounds=3))
    assert "No defense was measured against model (passive)." in said
    told = sentences(bare, run("b", nothing, "median", digest="2"))
    assert list(told) == ["medical, mlp, run a", "medical, mlp, run b"]
    assert "No defense was measured" in told["medical, mlp, run a"]


def test_a_defense_that_attacks_do_not_know_is_named(rows):
    made = rows(57.0, 57.0, 57.0, attack="majority") + rows(98.0, 99.0, 98.5)
    told = {"defense=mine:good": {"attacks_do_not_know": ["mine:good"], "delta": 1e-5}}
    said = only(a_card("run", made, defense=told))
    assert (
        "Attacks do not know what mine:good does to messages: what they read under it is "
        "a lower bound."
    ) in said
    assert "do not know" not in only(a_card("run", made))


def test_an_epsilon_says_whom_it_protects(rows):
    made = []
    for name, unit in (("fed_sdp", "client"), ("fed_cdp", "record")):
        about = {"attack": name, "defense": name, "experiment": "fed_cdp"}
        made += rows(50.0, 51.0, setting="final", metric="accuracy_percent", **about)
        made += rows(3.0, setting=epsilons.drawn(unit), metric="epsilon", **about)
    said = only(a_card("run", made))
    assert "fed_sdp 50.50 [44.15, 56.85] %, epsilon 3 of a client;" in said
    assert "fed_cdp 50.50 [44.15, 56.85] %, epsilon 3 of a record" in said


def test_promises_are_no_measurements(rows):
    made = []
    for way, values in {
        "printed": (1.0, 2.0),
        "implemented": (9.0, float("inf")),
    }.items():
        made += rows(*values, setting=way, metric="epsilon", experiment="accounting")
    said = only(a_card("run", made))
    assert "printed 1 to 2; implemented 9 (1 without a finite number)." in said
    assert "Nothing was trained or attacked." in said


def test_an_audit_is_told_by_its_own_verdicts(rows):
    made = rows(90.0, experiment="audit")
    told = {
        "model": "leaks (2 of 3)",
        "grad": "does not show",
        "x": "not applicable: y",
    }
    said = only(a_card("run", made, verdicts=told))
    assert said.startswith("1 of 2 attacks show a leak: model.")


@pytest.mark.parametrize("verdicts", [None, {}, []], ids=str)
def test_an_audit_without_verdicts_is_not_told(rows, verdicts):
    made = rows(90.0, experiment="audit")
    assert not sentences(a_card("run", made, verdicts=verdicts))


def test_the_slopes_of_the_theorem_stand_beside_what_was_measured(rows):
    fields = {"experiment": "theory", "setting": "shuffled", "point": "batch_size"}
    made = rows(
        -0.7, -0.8, attack="reconstruct", metric="optimum_distance_slope", **fields
    )
    made += rows(-0.4, -0.4, attack="theorem1", metric="rate_slope", **fields)
    assert "shuffled batches: batch size -0.75 [" in only(a_card("run", made))
    assert "(eq. (6): -0.40)" in only(a_card("run", made))
