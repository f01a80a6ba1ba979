"""The page of an audit: the verdict first, each number once."""

import re

import numpy as np
import pytest

from fljax import results, verdicts
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.estimates import Prediction
from fljax.auditing import advice as advice_lib
from fljax.auditing import drawings, measuring, reporting, words
from fljax.auditing import findings as findings_lib
from fljax.auditing import lines as lines_lib
from fljax.auditing.findings import Audited, Findings
from fljax.auditing.fits import Fit
from fljax.auditing.lines import Line, Number
from fljax.auditing.truth import Truth
from fljax.driver import console


def _line(attack, setting="passive", metric=verdicts.ACCURACY.metric, low=60.0):
    references = {"majority": 50.0, "imputation": 61.0, "strangers": 62.0}
    number = Number(70.0, low, 80.0, 30, references)
    clients = [number, number._replace(value=65.0, n=10)]
    return Line(attack, setting, metric, number, clients, verdicts.LEAKS)


_SKIPPED = Line("grad", "", "", None, (), lines_lib.NOT_APPLICABLE, "too few messages")


@pytest.fixture
def page(tmp_path, capsys):
    """`(*lines) -> page, what the screen shows`."""

    def make(*lines, **estimates):
        audited = Audited(
            data="rows", model="linear", defense="none", seed=0,
            clients=np.array([4, 7]), used=np.array([12, 12]),
            left_out=np.array([0, 0]),
            files=(), sensitive="married", target="income", categories=("a", "b"),
            unit=1.0, middle=0.0, row_numbers=[np.arange(20), np.arange(20, 30)],
            fit=Fit(np.array([50.0, 50.0])), flags={"seed": 0},
        )  # fmt: skip
        findings = Findings(audited, lines, estimates)
        reporting.save(findings, tmp_path / "out")
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
        assert "defense=dp_sgd" in text
        assert "Run it Then" not in text
    assert said.index("names married") < said.index("imputation strangers")


def test_what_the_model_explains_is_said_unless_it_is_nothing(page):
    said = " ".join(page(_line("model"))[1].split())
    assert (
        "The last model explains 50.0 % of the variation of clients' targets, from"
        in said
    )
    for unlearnt in ([1.0, 50.0], [np.nan, np.nan]):
        assert not findings_lib._learnt(Fit(np.array(unlearnt)))


def test_the_command_for_a_defense_has_what_is_known_of_the_training():
    flags = {"known": "../rows.csv", "model": "mlp:64", "client_column": "site"}
    training = LocalTraining(batch_size=0, learning_rate=0.05, epochs=2, momentum=0.9)
    advice = advice_lib.what_to_do(flags, ("0", "Nord, Ost"), training)
    for flag in (
        "model_hidden=64", "learning_rate=0.05", "batch_size=none", "local_epochs=2",
        "client_optimiser=momentum", "data_path=../rows.csv",
    ):  # fmt: skip
        assert f" --{flag} " in f"{advice.command} "
    assert """'--partition_values=0,"Nord, Ost"' """ in advice.command
    assert not re.search("optimiser_state|drop_last", advice.command)
    dropped = advice_lib.what_to_do(flags, (), training._replace(drop_last=True))
    assert "--drop_last=true" in dropped.command
    kept = advice_lib.what_to_do(flags, (), training._replace(kept=True)).command
    assert "--client_optimiser=momentum --optimiser_state=kept" in kept
    others = training._replace(kept=True, optimiser="rmsprop", momentum=0.0)
    kept = advice_lib.what_to_do(flags, (), others).command
    assert "optimiser" not in kept  # has no flag
    assert "in a clone" in advice.why and advice.then.startswith("Then record")
    assert "num_rounds" not in advice.command and "adversary" not in advice.command
    one = advice_lib.what_to_do(flags, (), training, 60, "sum").command
    assert "--num_rounds=60" in one and "--adversary=sum" in one
    assert "partition_values" not in one and "dropout" not in one
    dropped = advice_lib.what_to_do(flags, (), training._replace(dropout=0.2))
    assert "--dropout=0.2" in dropped.command
    told = advice_lib.what_to_do(
        flags, (), LocalTraining(algorithm="fed_prox", proximal=0.1)
    )
    assert "--algorithm=fed_prox --proximal=0.1" in told.command
    falling = training._replace(schedule=(1.0, 0.9, 0.81))
    advice = advice_lib.what_to_do(flags, (), falling)
    assert "--learning_rate=0.05 --learning_rate_decay=0.9 " in advice.command
    steps = training._replace(schedule=(1.0, 1.0, 0.1))  # have no flag
    advice = advice_lib.what_to_do(flags, (), steps)
    assert "learning_rate" not in advice.command
    assert advice.then.startswith("Run it with the learning rate")
    advice = advice_lib.what_to_do(flags, (), LocalTraining())
    assert "learning_rate" not in advice.command
    assert advice.then.startswith("Run it with the learning rate")


def test_the_foremost_of_errors_is_the_smallest():
    def line(attack, value, metric=verdicts.ERROR.metric):
        found = _line(attack, metric=metric)
        return found._replace(total=found.total._replace(value=value))

    rows = line("inversion", 90.0, verdicts.REBUILT.metric)
    assert words.foremost(
        [line("model", 5.0), line("trajectory", 2.0), rows]
    ).attack == ("trajectory")


def test_clients_that_are_alike_are_no_range():
    line = _line("model")
    line = line._replace(clients=[line.clients[0]._replace(value=70.0)] * 2)
    (said,) = words.summary(
        "married", [line], ["client 0", "client 1"], Fit(np.full(2, 50.0)), ()
    )
    assert said.endswith("Of each of the 2 clients 70.0 %.")


def test_settings_are_shown_where_they_differ(page):
    shown, _ = page(_line("model"), _line("grad", "active_10"))
    assert "setting" in _header(shown)


def test_no_number_is_repeated(page):
    shown, _ = page(_line("model"), _SKIPPED)
    assert shown.count("70.00 [60.00, 80.00]") == 1
    assert shown.count("<svg") == 2 and "model: 70, without messages" in shown


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


def _surely(attack):
    """A line and an estimate: sure of row 20, then of row 3; its truth is another."""
    sure = np.full((2, 20), 0.6)
    sure[1, 0], sure[0, 3] = 0.9999, 0.95
    both = np.stack([1 - sure, sure], axis=-1)
    truth = np.zeros((2, 20), int)
    mask = np.arange(20) < np.array([[20], [10]])
    said = Prediction(np.ones((2, 20), int), {}, {"probability": both})
    known = Truth(truth, mask, 1.0, np.zeros((2, 2)), np.zeros((2, 20, 1)), np.ones(1))
    records = measuring.per_record(said, known)
    return _line(attack)._replace(records=records), said


def test_rows_stand_in_the_order_in_which_the_adversary_is_sure(page):
    line, said = _surely("trajectory")
    shown, _ = page(_line("model"), line, trajectory=said, model=said)
    table = shown.partition("The 10 rows of which it is surest")[2]
    cells = re.findall("<td[^>]*>([^<]*)</td>", table)[:8]
    assert cells == [
        "client 7", "20", "b", "above 99.9 %", "client 4", "3", "b", "95.0 %"
    ]  # fmt: skip
    assert "0.0 % of all rows" in shown  # not one is right
    assert "Is it as right as it is sure?" in shown


def test_every_picture_is_told_in_words(page):
    line, said = _surely("trajectory")
    shown, _ = page(line, trajectory=said)
    pictures = re.findall("<svg.*?</svg>", shown, re.DOTALL)
    assert len(pictures) == 3  # attacks, clients, calibration
    for each in pictures:
        title, text = re.search('labelledby="(.*) (.*)" font', each).groups()
        assert shown.count(f'id="{title}"') == shown.count(f'id="{text}"') == 1
        assert re.search(f'<desc id="{text}">[^<]{{20,}}', each)
    assert "client 4, 30 rows: 70" in pictures[1]
    assert (
        "99.9 % sure" not in pictures[2] and "60.0 % sure, 0.0 % right" in pictures[2]
    )


def test_many_clients_are_drawn_from_both_ends():
    line = _line("model")
    numbers = [line.total._replace(value=float(at)) for at in range(60)]
    names = [f"client {at}" for at in range(60)]
    drawn = drawings.of_clients("accuracy", line._replace(clients=numbers), names)
    assert len(drawn.bars) == 20 and drawn.left_out == 40
    assert drawn.bars[0].label.startswith("client 59,")
    assert drawn.bars[-1].label.startswith("client 0,")
    line = line._replace(clients=numbers, metric=verdicts.ERROR.metric)
    drawn = drawings.of_clients("error", line, names)
    assert drawn.bars[0].label.startswith("client 0,")


def test_numbers_of_each_record_are_rows_of_results(page, tmp_path):
    line, said = _surely("trajectory")
    page(line, trajectory=said)
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    named = {(r.metric, r.client): r for r in rows if r.attack == "trajectory"}
    assert named["named_at_99_precision_percent", "all"].n == 30
    assert named["calibration_error", 7].n == 10
    assert named["accuracy_at_confidence_62.5_percent", "all"].n == 28
