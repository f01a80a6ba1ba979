"""Fed-CDP in each reading: how far the cells of a table are from the print."""

import types

from experiments.report import kept
from experiments.report.cards import Judged
from experiments.report.documents import readings
from experiments.report.reproduction import Number, Verdict
from fljax.metrics import Estimate
from fljax.results import Labels


def _cell(defense, attack, point, mean, printed, kind, seeds=3):
    labels = Labels("fed_cdp", "mnist", "cnn", defense=defense, point=point)
    row = labels.row(attack, "final", 0, "accuracy_percent", mean, 10)
    estimate = Estimate(mean, mean - 1, mean + 1, mean, seeds)
    line = types.SimpleNamespace(row=row, estimate=estimate)
    return Judged(line, Number(printed), Verdict(kind))


def _card(table, divisor, cells):
    flags = {"clients": [1000], "percent": [10.0], "divisor": divisor}
    return types.SimpleNamespace(
        reference=types.SimpleNamespace(table=table),
        manifest={"flags": flags, "command": f"run --divisor={divisor}"},
        compared=cells,
    )


def test_cells_are_told_by_table_clients_and_reading(monkeypatch):
    point = "clients=100;participating_percent=5"
    code = "fed_cdp(clip=4, sigma=0.5, mode=per_batch)"
    printed = "fed_cdp(clip=4, sigma=6)"
    per_batch = "fed_cdp_per_batch"
    cards = {
        "fed_cdp.a": _card("Table II", "one_less", [
            _cell(code, per_batch, point, 80.0, 90.0, "below"),
            _cell(code, per_batch, point.replace("5", "20"), 85.0, 90.0, "below"),
            _cell(code, per_batch, point.replace("100", "10000"), 70.0, 90.0, "below"),
            _cell(code, "fed_cdp_decay_per_batch", point, 0.0, 90.0, "below"),
        ]),
        "fed_cdp.b": _card("Table IV", "participants", [
            _cell(printed, "fed_cdp", "clip=1", 60.0, 90.0, "below"),
            _cell(printed, "fed_cdp", "clip=2", 91.0, 90.0, "reproduced"),
            _cell("none", "non_private", "", 0.0, 90.0, "below"),
        ]),
        "fed_cdp.c": _card("Table VI", "participants", []),
    }  # fmt: skip
    monkeypatch.setattr(kept, "names", lambda: [*cards, "aia.d"])
    monkeypatch.setattr(kept, "shown", cards.__getitem__)
    _, _, second, one, fourth = readings.text().splitlines()
    assert second.startswith(
        "| Table II | mnist | 5 to 20 % of 100 | the published code |"
    )
    assert second.endswith("| 2 | 3 | -7.5 | -10.0 | -5.0 | 2 below |")
    assert one.startswith("| Table II | mnist | 5 % of 10,000 | the published code |")
    assert one.endswith("| 1 | 3 | -20.0 | -20.0 | -20.0 | 1 below |")
    assert fourth.startswith("| Table IV | mnist | 100 of 1,000 | as printed |")
    assert fourth.endswith("| 2 | 3 | -14.5 | -30.0 | +1.0 | 1 reproduced, 1 below |")


def test_of_a_number_that_was_run_with_more_seeds_only_these_count(monkeypatch):
    told = "fed_cdp(clip=4, sigma=2)", "fed_cdp", "clip=4;sigma=2"
    few = _card("Table V", "participants", [
        _cell(*told, 81.0, 83.6, "too wide to tell"),
        _cell("fed_cdp(clip=4, sigma=4)", "fed_cdp", "clip=4;sigma=4", 78.4, 83.4, "below"),
    ])  # fmt: skip
    few.manifest["command"] += " --seeds=0,1,2 '--defense=fed_cdp(clip=4, sigma=2|4)'"
    more = _card("Table V", "participants", [_cell(*told, 79.6, 83.6, "below", 20)])
    more.manifest["command"] += " --seeds=0..19"
    cards = {"fed_cdp.few": few, "fed_cdp.more": more}
    monkeypatch.setattr(kept, "names", lambda: [*cards])
    monkeypatch.setattr(kept, "shown", cards.__getitem__)
    assert (
        readings.text()
        .splitlines()[-1]
        .endswith("| 2 | 3-20 | -4.5 | -5.0 | -4.0 | 2 below |")
    )
    more.manifest["command"] += " --decay=0.9"  # was told another thing
    assert "| 3 | 3-20 |" in readings.text().splitlines()[-1]
