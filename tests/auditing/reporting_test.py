"""The page of an audit: the verdict first, each number once."""

import re

import numpy as np
import pytest

from fljax import verdicts
from fljax.auditing import lines as lines_lib
from fljax.auditing import reporting
from fljax.auditing.findings import Audited, Findings
from fljax.auditing.lines import Line, Number
from fljax.driver import console


def _line(attack, setting="passive", metric=verdicts.ACCURACY.metric, low=60.0):
    references = {"majority": 50.0, "imputation": 61.0, "strangers": 62.0}
    number = Number(70.0, low, 80.0, 30, references)
    return Line(attack, setting, metric, number, [number], verdicts.LEAKS)


_SKIPPED = Line("grad", "", "", None, (), lines_lib.NOT_APPLICABLE, "too few messages")


@pytest.fixture
def page(tmp_path, capsys):
    """`(*lines) -> page, what the screen shows`."""

    def make(*lines):
        audited = Audited(
            data="rows", model="linear", defense="none", seed=0,
            clients=np.array([4]), used=np.array([12]), left_out=np.array([0]),
            files=(), sensitive="married", target="income", categories=("a", "b"),
            unit=1.0, middle=0.0, row_numbers=[np.arange(30)], explained=np.array([50.0]), flags={"seed": 0},
        )  # fmt: skip
        findings = Findings(audited, lines, {})
        findings.save(tmp_path / "out")
        console.screen().print(*reporting.screen(findings))
        text = (tmp_path / "out" / "report.html").read_text()
        return text, capsys.readouterr().out

    return make


def _header(page):
    return re.findall(
        '<th scope="col"[^>]*>([^<]*)</th>', page.partition("</thead>")[0]
    )


def test_the_verdict_stands_beside_the_attack(page):
    shown, _ = page(_line("model"), _SKIPPED)
    assert _header(shown) == [
        "attack", "verdict", "value [95 %]", "majority", "imputation", "strangers",
        "metric", "detail",
    ]  # fmt: skip


def test_words_come_first_then_the_table_then_what_to_do(page):
    shown, said = page(_line("model"))
    said = " ".join(said.split())
    for text in (" ".join(shown.split()), said):
        assert "names married of 70.0 % [60.0, 80.0] of its rows (model)" in text
        assert "learned from other people&#39;s rows, name 61.0 %" in text.replace(
            "people's", "people&#39;s"
        )
        assert "--defense=" in text or "--defense" in text
    assert said.index("names married") < said.index("imputation strangers")


def test_settings_are_shown_where_they_differ(page):
    shown, _ = page(_line("model"), _line("grad", "active_10"))
    assert "setting" in _header(shown)


def test_no_number_is_repeated(page):
    shown, _ = page(_line("model"), _SKIPPED)
    assert shown.count("70.00 [60.00, 80.00]") == 1
    assert shown.count("<svg") == 1 and "accuracy %: model 70" in shown


def test_texts_of_strangers_are_escaped(page):
    shown, _ = page(_line("<script>"))
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_the_page_says_what_was_inferred(page):
    shown, _ = page(_line("model"))
    assert "<strong>Inferred</strong>: married; target income" in shown
    assert "<strong>Settings</strong>: seed 0</li>" in shown


def test_an_error_is_never_below_nothing(page):
    shown, said = page(_line("model", metric=verdicts.ERROR.metric, low=-1.0))
    assert "70.00 [0.00, 80.00]" in shown and "70.00 [0.00, 80.00]" in said
