"""Which printed number stands beside which of a run."""

import pytest

from experiments.fed_cdp import methods as methods_lib
from experiments.fed_cdp import program, published, reporting, results_table
from experiments.fed_cdp.settings import complete


def test_points_have_the_names_of_the_published_table(parsed):
    told = parsed(
        program.PROGRAM,
        "--flagfile=experiments/flags/fed_cdp.table2.flags",
        "--clients=100,1000",
        "--percent=5,10,20,50",
        "--defense=none; fed_sdp(clip=4, sigma=6); fed_cdp(clip=4, sigma=6); "
        "fed_cdp(clip=6, decay_to=2, sigma=6)",
    )
    told = complete(told)
    variants = methods_lib.variants(told.run, 500)
    printed = published.numbers("table2", "mnist")
    numbers = {
        (v.name, v.clients, v.percent): printed.get(
            (methods_lib.label(told.run, v, spec), v.name, published.ACCURACY)
        )
        for v in variants
        for spec in v.specs
    }
    assert len(numbers) == 32
    assert numbers["fed_cdp_decay", 1000, 10.0] == pytest.approx(97.5)
    assert None not in numbers.values()


def test_a_report_sets_accuracies_beside_the_table_that_the_run_names():
    beside = published.reference({"paper_table": "table4"}, "breast_cancer")
    assert (beside.table, beside.model, beside.same_data) == ("Table IV", "mlp", True)
    at = "clip=4;sigma=6", "fed_cdp", "accuracy_percent"
    assert beside.numbers[at].mean == pytest.approx(97.9)
    for ours, paper in (("lfw_deepfunneled", "lfw"), ("cifar10_half", "cifar10")):
        like = published.reference({"paper_table": "table4"}, ours)
        assert (like.data, like.same_data, len(like.numbers)) == (paper, False, 6)
    one = published.reference({"paper_table": "table1"}, "mnist")
    assert ("final", "non_private", "accuracy_percent") in one.numbers
    times = published.numbers("table3", "mnist")
    assert times["", "fed_cdp_decay", "ms_per_local_iteration"] == 22.6
    assert published.reference({"paper_table": "table3"}, "mnist") is None
    assert published.reference({"paper_table": None}, "mnist") is None
    digits = published.reference({"paper_table": "table1"}, "digits")
    assert (digits.data, digits.same_data) == ("mnist", False)


def test_the_noise_of_the_published_code_stands_beside_fed_cdp():
    coded, printed = "fed_cdp(clip=4, sigma=1, mode=per_batch)", "fed_cdp(clip=4)"
    found = {}
    for text in (coded, f"{printed}; {coded}", printed):
        told = {"paper_table": "table2", "defense": text}
        numbers = published.reference(told, "mnist").numbers
        assert any(method == "non_private" for _, method, _ in numbers)
        at = "clients=100;participating_percent=10"
        found[text] = [
            numbers[at, method, "accuracy_percent"].mean
            for method in ("fed_cdp", "fed_cdp_per_batch")
            if (at, method, "accuracy_percent") in numbers
        ]
    assert list(found.values()) == [[83.1], [83.1, 83.1], [83.1]]


def test_clips_of_the_published_code_stand_beside_its_multiplier():
    coded = "fed_cdp(clip=1|4, sigma=0.5, mode=per_batch)"
    told = {"paper_table": "table4", "defense": coded}
    numbers = published.reference(told, "mnist").numbers
    at = "clip=1;sigma=0.5", "fed_cdp_per_batch", "accuracy_percent"
    assert numbers[at].mean == pytest.approx(93.4)
    told = {"paper_table": "table5", "defense": coded}
    points = {point for point, *_ in published.reference(told, "mnist").numbers}
    assert len(points) == 6


def test_the_table_on_the_screen_has_the_paper_beside_the_published_code(parsed):
    told = parsed(
        program.PROGRAM,
        "--flagfile=experiments/flags/fed_cdp.committed.flags",
    )
    (variant,) = methods_lib.variants(complete(told).run, 500)
    (spec,) = variant.specs
    label = methods_lib.label(told.run, variant, spec)
    point = reporting.Point(
        variant, methods_lib.Trial(0.05, spec), label, {}, [], [], []
    )
    shown = results_table.paper(told, point, published.ACCURACY)
    assert shown == pytest.approx(83.1)
