"""The whole report, from rows to pages."""

import pathlib

import pytest

from experiments.report import page, rendering
from experiments.report.cards import Reference
from experiments.report.cards import card as card_of
from experiments.report.programs import PROGRAMS
from experiments.report.reproduction import Number
from experiments.report.tables import Mark

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


def _section(*cards):
    return page.content(cards)["cards"][0]


def _column(table, name):
    index = list(table.header).index(name)
    return [getattr(line[index], "text", line[index]) for line in table.body]


def _text(*cards):
    return rendering.to_markdown(page.content(cards), "figures")


def test_a_card_shows_ours_published_difference_and_verdict(rows):
    made = _made(rows) + rows(95.0, attack="model_global")
    card = card_of("run", made, {}, _REFERENCE)
    table = _section(card)["scores"]
    attacks = ["majority", "model", "grad", "model_global"]
    assert _column(table, "attack") == attacks
    assert _column(table, "published") == ["", "95.90 ± 0.04", "87.26 ± 0.92", ""]
    assert _column(table, "difference") == ["", "+0.00", "+2.69", ""]
    assert _column(table, "verdict") == [
        "", "reproduced", "above by 0.21", "no published number"
    ]  # fmt: skip
    assert _column(table, "majority") == ["", "79.50", "79.50", "79.50"]
    assert _column(table, "seeds x rows")[1] == "3 x 100"
    assert "in the paper, not comparable" not in table.header


def test_intervals_end_where_the_measure_does(rows):
    made = rows(98.0, 99.0, 100.0) + rows(0.0, 0.1, metric="total_variation")
    made += rows(0.1, 0.9, attack="none", setting="round_0", metric="test_loss")
    made += rows(0.0, 0.1, metric="gain")
    found = _section(card_of("run", made, {}, None))
    assert _column(found["scores"], "ours, mean [95 %]") == [
        "99.00 [96.52, 100.00]",
        "0.05 [0, 0.6853]",
    ]
    assert _column(found["utility"], "test loss") == ["0.5 [0, 5.582]"]
    shown = _column(found["other"], "ours, mean [95 %]")
    assert shown == ["0.05 [-0.5853, 0.6853]"]


def test_other_measurements_are_folded_away_unless_published(rows):
    key = ("passive", "grad", "distance")
    known = _REFERENCE._replace(numbers={key: Number(1.5)})
    for reference, folded in ((_REFERENCE, True), (known, False)):
        card = card_of("run", _made(rows), {}, reference)
        shown = "distance" in _column(_section(card)["scores"], "metric")
        assert shown != folded
        summary = "<summary>Other measurements of run</summary>"
        assert (summary in _text(card)) == folded


def test_attacks_without_a_known_score_are_shown_and_not_denied(rows):
    made = rows(0.5, attack="fed_cdp", metric="attack_success")
    found = _section(card_of("run", made, {}, None))
    assert not found["trained_only"]
    assert _column(found["other"], "metric") == ["attack success"]


def test_what_rows_say_of_a_defense_is_a_table(rows):
    fields = {"defense": "dp_sgd", "attack": "none", "setting": "defense"}
    made = _made(rows, defense="dp_sgd")
    made += rows(1.0, 1.0, metric="epsilon_rdp", **fields)
    made += rows(12.81, 12.81, metric="noise_multiplier", **fields)
    found = _section(card_of("run", made, {}, None))
    table = found["defense"]
    assert list(table.header) == ["defense", "epsilon rdp", "noise multiplier"]
    assert list(table.body[0]) == ["dp_sgd", "1.00", "12.81"]
    assert "none" not in _column(found["scores"], "attack")


def test_the_summary_has_a_line_per_published_number_and_counts_them(rows):
    cards = [card_of(name, _made(rows), {}, _REFERENCE) for name in ("a", "b")]
    table = page.content(cards)["summary"]
    assert _column(table, "run") == ["a", "a", "b", "b"]
    said = "4 published numbers: 2 reproduced, 2 above"
    assert page.counts(cards) == said
    text = _text(*cards)
    assert f"\n{said}.\n" in text
    assert "\nPublished, but not in this run: model (active_50).\n" in text


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
    card = card_of("run", _made(rows, **fields), {}, reference)
    table = _section(card)["scores"]
    assert not {"published", "difference"} & set(table.header)
    assert _column(table, "in the paper, not comparable")[1:3] == [
        "Income-L 95.90 ± 0.04",
        "Income-L 87.26 ± 0.92",
    ]
    assert _column(table, "verdict")[1] == f"not comparable ({reason})"
    assert page.counts([card]) == "2 published numbers: 2 not comparable"


def test_a_point_of_a_sweep_has_only_numbers_of_its_own(rows):
    numbers = {("batch_size=64", "model", _ACCURACY): Number(95.9)} | dict(
        _REFERENCE.numbers
    )
    made = _made(rows, point="batch_size=64") + _made(rows, point="batch_size=32")
    card = card_of("run", made, {}, _REFERENCE._replace(numbers=numbers))
    (each,) = card.compared
    assert each.line.row.point == "batch_size=64"


def test_a_run_without_table_is_a_plain_card(rows):
    card = card_of("run", _made(rows), {}, None)
    assert "verdict" not in _section(card)["scores"].header
    headings = [line for line in _text(card).splitlines() if line.startswith("#")]
    title = "Attribute inference on federated training"
    assert headings == [f"# {title}", "## In short", "## run"]
    links = [("short", "In short"), ("card1", "run")]
    assert page.content([card])["links"] == links
    assert page.counts([]) == ""


def test_a_run_that_only_trained_has_a_card_too(rows):
    made = rows(2.0, attack="none", setting="round_0", metric="train_loss")
    found = _section(card_of("run", made, {}, None))
    assert found["trained_only"]
    assert _column(found["utility"], "training loss") == ["2.00"]
    assert [p.name for p in found["pictures"]] == ["card1-loss_by_round.svg"]


def test_bounds_and_undetermined_scores_are_explained(rows):
    made = rows(80.0, 80.0) + rows(81.0, 81.0, metric="aia_accuracy_bound_percent")
    made += rows(70.0, attack="reconstruct")
    made += rows(0.5, attack="reconstruct", metric="determined")
    found = _section(card_of("run", made, {}, None))
    text = _text(card_of("run", made, {}, None))
    assert "0 of 1 accuracies are at or above it" in text
    assert "\nNot determined: " in text
    assert _column(found["scores"], "bound") == ["81.00", ""]


def test_long_tables_are_folded_away(rows):
    made = [row for i in range(61) for row in rows(50.0, point=f"h={i}")]
    text = _text(card_of("run", made, {}, None))
    assert "<summary>Results of run</summary>" in text


def test_the_same_rows_make_the_same_bytes(rows):
    def render():
        cards = [
            card_of("a", _made(rows), {}, _REFERENCE),
            card_of("b", _made(rows, defense="dp_sgd"), {}, None),
        ]
        content = page.content(cards)
        text = rendering.to_markdown(content, "figures")
        return rendering.to_html(content), text, page.pictures(content)

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
        card_of(_EVIL, made + swept, manifest, reference),
        card_of("plain", _made(rows), manifest, None),
    ]
    content = page.content(cards)
    html, text = rendering.to_html(content), rendering.to_markdown(content, "figures")
    for out in (html, text):
        out.encode()
        assert "<img src=x" not in out
        assert "\u202e" not in out
    assert "http://" not in text
    assert all(
        picture.name.replace("-", "_").replace(".", "_").isidentifier()
        for picture in page.pictures(content)
    )


def test_verdicts_have_a_colour_and_words(rows):
    card = card_of("run", _made(rows), {}, _REFERENCE)
    table = _section(card)["scores"]
    assert table.body[1][-1] == Mark("reproduced", "good")
    assert table.body[2][-1] == Mark("above by 0.21", "bad")


def test_a_report_begins_with_what_is_in_it(rows):
    def begin(*experiments):
        made = [row for name in experiments for row in rows(1.0, experiment=name)]
        return _text(card_of("run", made, {}, None)).splitlines()

    attacked, accounted = begin("aia"), begin("accounting")
    assert attacked[0] == "# Attribute inference on federated training"
    assert accounted[0] == "# Privacy accounting of federated training"
    both = begin("aia", "accounting")
    assert both[0] == "# What federated training leaks, and what is promised"
    assert both[1:5] == ["", attacked[2], "", accounted[2]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_a_place_in_the_report(rows, name):
    program = PROGRAMS[name]
    assert (pathlib.Path("experiments") / name).is_dir() or name == "audit"
    text = _text(card_of("run", rows(1.0, 2.0, experiment=name), {}, None))
    assert text.startswith(f"# {program.title}\n\n{program.about}\n")


def test_no_program_is_left_out_of_the_report():
    folders = pathlib.Path("experiments").glob("*/program.py")
    assert {path.parent.name for path in folders} - {"report"} <= PROGRAMS.keys()


def test_a_run_without_numbers_over_all_clients_shows_those_of_its_client(rows):
    made = [
        row._replace(client=0)
        for row in rows(0.5, 0.7, experiment="theory", metric="rate_slope")
    ]
    found = _section(card_of("run", made, {}, None))
    assert _column(found["scores"], "metric") == ["rate slope"]
