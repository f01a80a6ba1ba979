"""Where an attack stops being better than the last model."""

import pytest

from experiments.report import claims, curves
from experiments.report.cards import card as card_of


@pytest.fixture
def swept(rows):
    made = []
    for value, ours in {"0": 80.0, "0.2": 70.0, "0.4": 60.5}.items():
        point = {"point": f"knowledge_noise={value}"}
        made += rows(55.0, 56.0, attack="majority", **point)
        made += rows(71.0, 72.0, attack="imputation", setting="baseline", **point)
        made += rows(60.0, 61.0, **point) + rows(
            62.0, 63.0, attack="model_global", **point
        )
        made += rows(ours, ours + 1.2, attack="trajectory", **point)
    return [row._replace(n=400) for row in made]


def test_it_is_said_for_every_flag_that_makes_an_adversary_know_less(swept, rows):
    (said,) = curves.sentences(swept)
    assert said == (
        "trajectory reads more than the last model that was returned with "
        "knowledge_noise 0, 0.2; it is not shown to with 0.4. More than imputation "
        "from exact columns with 0 only."
    )
    assert said in list(claims.of_attacks([card_of("run", swept, {}, None)]))
    exact = curves.points(swept)[0]
    assert (exact.name, exact.value, exact.better) == (
        "knowledge_noise",
        "0",
        ("trajectory",),
    )
    assert exact.accuracy["imputation"].mean == 71.5 and exact.beyond == exact.better
    other = [row._replace(point=row.point.replace("knowledge_noise", "batch_size"))
             for row in swept]  # fmt: skip
    assert not list(curves.sentences(other)) and not list(curves.sentences(rows(1.0)))


def test_of_one_seed_both_intervals_are_over_its_rows(swept):
    found = curves.points([row for row in swept if row.seed == 0])
    assert [point.better for point in found] == [("trajectory",), ("trajectory",), ()]


def test_imputation_from_what_is_known_stands_beside(swept, rows):
    point = {"point": "knowledge_noise=0.2"}
    known = rows(58.0, 59.0, attack="imputation", setting="as_known", **point)
    swept += [row._replace(n=400) for row in known]
    (said,) = curves.sentences(swept)
    assert said.endswith(
        "with 0 only; from the columns as they are known with all of these."
    )
    assert curves.points(swept)[1].accuracy[curves.AS_KNOWN].mean == 58.5
