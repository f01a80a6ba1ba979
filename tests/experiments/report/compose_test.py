"""The whole report, from rows to pages."""

import pytest

from experiments import report
from experiments.report import Number, Reference
from experiments.report.document import Contents, Heading, Mark, Paragraph, Table

_ACCURACY = "aia_accuracy_percent"
_REFERENCE = Reference(
    table="Table 1",
    data="Medical",
    same_data=True,
    model="mlp",
    defended=False,
    numbers={
        ("passive", "model", _ACCURACY): Number(95.9, 0.04),
        ("passive", "grad", _ACCURACY): Number(87.26, 0.92),
        ("active_50", "model", _ACCURACY): Number(96.79, 0.79),
    },
)


def _made(rows, **fields):
    made = rows(79.0, 80.0, attack="majority", **fields)
    made += rows(95.8, 95.9, 96.0, **fields) + rows(89.9, 90.0, attack="grad", **fields)
    return made + rows(1.0, 2.0, attack="grad", metric="distance", **fields)


def _table(blocks, begin) -> Table:
    return next(
        b for b in blocks if isinstance(b, Table) and b.caption.startswith(begin)
    )


def _column(table, name):
    index = list(table.header).index(name)
    return [getattr(line[index], "text", line[index]) for line in table.body]


def test_a_card_shows_ours_published_difference_and_verdict(rows):
    made = _made(rows) + rows(95.0, attack="model_global")
    card = report.card("run", made, {}, _REFERENCE)
    table = _table(report.compose_blocks([card]), "Results")
    attacks = ["majority", "model", "grad", "model_global"]
    assert _column(table, "attack") == attacks
    assert _column(table, "published") == ["", "95.90 ± 0.04", "87.26 ± 0.92", ""]
    assert _column(table, "difference") == ["", "+0.00", "+2.69", ""]
    assert _column(table, "verdict") == [
        "", "reproduced", "above by 0.21", "no published number"
    ]  # fmt: skip
    assert _column(table, "baseline") == ["", "79.50", "79.50", "79.50"]
    assert _column(table, "seeds x rows")[1] == "3 x 100"
    assert "in the paper, not comparable" not in table.header


def test_intervals_end_where_the_measure_does(rows):
    made = rows(98.0, 99.0, 100.0) + rows(0.0, 0.1, metric="total_variation")
    made += rows(0.1, 0.9, attack="none", setting="round_0", metric="test_loss")
    made += rows(0.0, 0.1, metric="gain")
    blocks = report.compose_blocks([report.card("run", made, {}, None)])
    assert _column(_table(blocks, "Results"), "ours, mean [95 %]") == [
        "99.00 [96.52, 100.00]",
        "0.05 [0, 0.6853]",
    ]
    assert _column(_table(blocks, "Utility"), "test loss") == ["0.5 [0, 5.582]"]
    (folded,) = [b for b in blocks if getattr(b, "summary", "").startswith("Other")]
    shown = _column(folded.blocks[0], "ours, mean [95 %]")
    assert shown == ["0.05 [-0.5853, 0.6853]"]


def test_other_measurements_are_folded_away_unless_published(rows):
    key = ("passive", "grad", "distance")
    known = _REFERENCE._replace(numbers={key: Number(1.5)})
    for reference, folded in ((_REFERENCE, True), (known, False)):
        card = report.card("run", _made(rows), {}, reference)
        blocks = report.compose_blocks([card])
        shown = "distance" in _column(_table(blocks, "Results"), "metric")
        others = "Other measurements of run"
        assert (others in [getattr(b, "summary", "") for b in blocks]) == folded
        assert shown != folded


def test_attacks_without_a_known_score_are_shown_and_not_denied(rows):
    made = rows(0.5, attack="fed_cdp", metric="attack_success")
    blocks = report.compose_blocks([report.card("run", made, {}, None)])
    assert Paragraph("No attack was run.") not in blocks
    assert _column(_table(blocks, "Other"), "metric") == ["attack success"]


def test_what_rows_say_of_a_defense_is_a_table(rows):
    fields = {"defense": "dp_sgd", "attack": "none", "setting": "defense"}
    made = _made(rows, defense="dp_sgd")
    made += rows(1.0, 1.0, metric="epsilon_rdp", **fields)
    made += rows(12.81, 12.81, metric="noise_multiplier", **fields)
    blocks = report.compose_blocks([report.card("run", made, {}, None)])
    table = _table(blocks, "Defense of run")
    assert list(table.header) == ["defense", "epsilon rdp", "noise multiplier"]
    assert list(table.body[0]) == ["dp_sgd", "1.00", "12.81"]
    assert "none" not in _column(_table(blocks, "Results"), "attack")


def test_the_summary_has_a_line_per_published_number_and_counts_them(rows):
    cards = [report.card(name, _made(rows), {}, _REFERENCE) for name in ("a", "b")]
    blocks = report.compose_blocks(cards)
    table = _table(blocks, "Every published number")
    assert _column(table, "run") == ["a", "a", "b", "b"]
    said = "4 published numbers: 2 reproduced, 2 above"
    assert report.counts(cards) == said
    assert Paragraph(f"{said}.") in blocks
    missing = "Published, but not in this run: model (active_50)."
    assert Paragraph(missing) in blocks


@pytest.mark.parametrize(
    ("change", "fields", "reason"),
    [
        ({"same_data": False}, {}, "other data"),
        ({"model": "linear"}, {}, "other model"),
        ({"defended": True}, {}, "without defense"),
        ({}, {"defense": "dp_sgd"}, "with defense"),
    ],
)
def test_a_number_of_something_else_is_never_called_published(
    rows, change, fields, reason
):
    reference = _REFERENCE._replace(data="Income-L", **change)
    card = report.card("run", _made(rows, **fields), {}, reference)
    table = _table(report.compose_blocks([card]), "Results")
    assert not {"published", "difference"} & set(table.header)
    assert _column(table, "in the paper, not comparable")[1:3] == [
        "Income-L 95.90 ± 0.04",
        "Income-L 87.26 ± 0.92",
    ]
    assert _column(table, "verdict")[1] == f"not comparable ({reason})"
    assert report.counts([card]) == "2 published numbers: 2 not comparable"


def test_a_point_of_a_sweep_has_only_numbers_of_its_own(rows):
    numbers = {("batch_size=64", "model", _ACCURACY): Number(95.9)} | dict(
        _REFERENCE.numbers
    )
    made = _made(rows, point="batch_size=64") + _made(rows, point="batch_size=32")
    card = report.card("run", made, {}, _REFERENCE._replace(numbers=numbers))
    (each,) = card.compared
    assert each.line.row.point == "batch_size=64"


def test_a_run_without_table_is_a_plain_card(rows):
    blocks = report.compose_blocks([report.card("run", _made(rows), {}, None)])
    table = _table(blocks, "Results")
    assert "verdict" not in table.header
    headings = [b.text for b in blocks if isinstance(b, Heading)]
    title = "Attribute inference on federated training"
    assert headings == [title, "In short", "run"]
    assert Contents([("short", "In short"), ("card1", "run")]) in blocks
    assert report.counts([]) == ""


def test_a_run_that_only_trained_has_a_card_too(rows):
    made = rows(2.0, attack="none", setting="round_0", metric="train_loss")
    blocks = report.compose_blocks([report.card("run", made, {}, None)])
    assert Paragraph("No attack was run.") in blocks
    assert _column(_table(blocks, "Utility"), "training loss") == ["2.00"]
    assert [p.name for p in report.pictures(blocks)] == ["card1-loss_by_round.svg"]


def test_bounds_and_undetermined_scores_are_explained(rows):
    made = rows(80.0, 80.0) + rows(81.0, 81.0, metric="aia_accuracy_bound_percent")
    made += rows(70.0, attack="reconstruct")
    made += rows(0.5, attack="reconstruct", metric="determined")
    blocks = report.compose_blocks([report.card("run", made, {}, None)])
    said = [b.text for b in blocks if isinstance(b, Paragraph)]
    assert any("0 of 1 accuracies are at or above it" in text for text in said)
    assert any(text.startswith("Not determined:") for text in said)
    assert _column(_table(blocks, "Results"), "bound") == ["81.00", ""]


def test_long_tables_are_folded_away(rows):
    made = [row for i in range(61) for row in rows(50.0, point=f"h={i}")]
    blocks = report.compose_blocks([report.card("run", made, {}, None)])
    assert not [b for b in blocks if isinstance(b, Table)]
    assert "Results of run" in [getattr(b, "summary", "") for b in blocks]


def test_the_same_rows_make_the_same_bytes(rows):
    def render():
        cards = [
            report.card("a", _made(rows), {}, _REFERENCE),
            report.card("b", _made(rows, defense="dp_sgd"), {}, None),
        ]
        blocks = report.compose_blocks(cards)
        text = report.to_markdown(blocks, folder="figures")
        return report.to_html(blocks), text, report.pictures(blocks)

    first, again = render(), render()
    assert first == again
    assert first[0].count("<img ") == first[1].count("](figures/") == len(first[2]) > 1


_EVIL = "<img src=x onerror=alert(1)> | $\\frac$ [a](http://b.c) \ud800\u202e"


def test_texts_of_others_appear_as_text_only(rows):
    fields = ("data", "model", "attack", "setting", "point", "metric", "defense")
    made = [
        row._replace(**{name: _EVIL})
        for name in fields
        for row in rows(79.0, 80.0, 81.0)
    ]
    swept = [
        row._replace(defense=_EVIL, point=f"defense{_EVIL}={value}")
        for value in (_EVIL, "1")
        for row in _made(rows)
    ]
    manifest = {"flags": {_EVIL: _EVIL}, "data": [{"name": _EVIL}], "device": _EVIL}
    reference = _REFERENCE._replace(same_data=False)
    cards = [
        report.card(_EVIL, made + swept, manifest, reference),
        report.card("plain", _made(rows), manifest, None),
    ]
    blocks = report.compose_blocks(cards)
    page = report.to_html(blocks)
    text = report.to_markdown(blocks, folder="figures")
    for out in (page, text):
        out.encode()
        assert "<img src=x" not in out
        assert "\u202e" not in out
    assert "http://" not in text
    assert all(
        picture.name.replace("-", "_").replace(".", "_").isidentifier()
        for picture in report.pictures(blocks)
    )


def test_verdicts_have_a_colour_and_words(rows):
    card = report.card("run", _made(rows), {}, _REFERENCE)
    table = _table(report.compose_blocks([card]), "Results")
    assert table.body[1][-1] == Mark("reproduced", "good")
    assert table.body[2][-1] == Mark("above by 0.21", "bad")


def test_a_report_begins_with_what_is_in_it(rows):
    def begin(*experiments):
        made = [row for name in experiments for row in rows(1.0, experiment=name)]
        blocks = report.compose_blocks([report.card("run", made, {}, None)])
        said = [b.text for b in blocks if isinstance(b, Paragraph)]
        return blocks[0].text, said[:2]

    attacked, accounted = begin("aia"), begin("accounting")
    assert attacked[0] == "Attribute inference on federated training"
    assert accounted[0] == "Privacy accounting of federated training"
    both = begin("aia", "accounting")
    assert both[0] == "What federated training leaks, and what is promised"
    assert both[1] == [attacked[1][0], accounted[1][0]]
