"""What a report says of programs that judge no gain over a baseline."""

import pytest

from tests.experiments.report.short import a_card, only, sentences


def test_rebuilt_images_are_counted_by_client(rows):
    made = []
    for method, values in {"non_private": (1, 1, 1, 0), "fed_cdp": (0,) * 4}.items():
        made += [
            row._replace(client=client, seed=0)
            for client, value in enumerate(values)
            for row in rows(
                value, attack=method, defense=method, setting="leakage_type=2",
                metric="attack_success", experiment="gradient_leakage",
            )
        ]  # fmt: skip
    said = only(a_card("run", made))
    assert "type 2: non_private 3 of 4, fed_cdp 0 of 4." in said
    assert "None of 4 still allows for 60 % (95 %)" in said
    assert "One seed." in said


def test_what_privacy_costs_is_claimed_of_separate_intervalsonly(rows):
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


@pytest.mark.parametrize("verdicts", [None, {}, [], {"model": 3}], ids=str)
def test_an_audit_is_told_by_its_own_verdicts(rows, verdicts):
    made = rows(90.0, experiment="audit")
    told = {
        "model": "leaks (2 of 3)",
        "grad": "does not show",
        "x": "not applicable: y",
    }
    said = only(a_card("run", made, verdicts=told))
    assert said.startswith("1 of 2 attacks show a leak: model.")
    assert not sentences(a_card("run", made, verdicts=verdicts)) or verdicts == {
        "model": 3
    }


def test_the_slopes_of_the_theorem_stand_beside_what_was_measured(rows):
    fields = {"experiment": "theory", "setting": "shuffled", "point": "batch_size"}
    made = rows(
        -0.7, -0.8, attack="reconstruct", metric="optimum_distance_slope", **fields
    )
    made += rows(-0.4, -0.4, attack="theorem1", metric="rate_slope", **fields)
    assert "shuffled batches: batch size -0.75 [" in only(a_card("run", made))
    assert "(eq. (6): -0.40)" in only(a_card("run", made))
