"""Tables of documents: long ones, wide ones, costs of defenses, powers of the bound's flags."""

import numpy as np
import pytest

from experiments.report import cards, kept, published
from experiments.report.cards import Reference
from experiments.report.documents import (
    by_alpha,
    costs,
    example_clients,
    means_of_five,
    papers,
    slopes,
    stand_in,
    wide,
    writing,
)
from experiments.report.reproduction import Number
from fljax.driver.config import ConfigError
from fljax.results import Labels


def _kept(monkeypatch, rows):
    read = kept.read("fed_cdp.fig5")._replace(rows=rows)
    monkeypatch.setattr(kept, "read", lambda name: read)


def _accuracies(defense, values):
    labels = Labels("fed_cdp", "mnist", "cnn", defense=defense)
    return [
        labels.row("fedavg", "final", seed, "accuracy_percent", value, 10)
        for seed, value in enumerate(values)
    ]


def test_costs_are_paired_by_seed(monkeypatch):
    free, defended = _accuracies("none", [50.0, 80.0]), _accuracies("d", [48.0, 76.0])
    _kept(monkeypatch, free + defended)
    assert costs.text("n").splitlines()[-1].endswith("| 3.0 [-9.7, 15.7] | 2 |")
    with pytest.raises(ConfigError, match="two accuracies under none"):
        _kept(monkeypatch, free + free)
        costs.text("n")
    with pytest.raises(ConfigError, match="expected accuracies without a defense"):
        _kept(monkeypatch, defended)
        costs.text("n")


def test_powers_of_errors_stand_beside_those_of_the_bound(monkeypatch):
    labels = Labels("theory", "toy", "linear", point="batch_size")

    def rows(attack, metric, values):
        return [
            labels.row(attack, "shuffled", seed, metric, value, 5)
            for seed, value in enumerate(values)
        ]

    found = rows("reconstruct", "optimum_distance_slope", [1.0, 2.0])
    found += rows("theorem1", "rate_slope", [-0.5, -0.5])
    _kept(monkeypatch, found + rows("theorem1", "bound_slope", [0.5, 0.5]))
    line = slopes.text("n").splitlines()[-1]
    assert line.startswith(
        "| shuffled | batch_size | Algorithm 2 | 1.50 [-4.85, 7.85] |"
    )
    assert line.endswith("| -0.50 [-0.50, -0.50] | 0.50 [0.50, 0.50] | 2 |")


def test_numbers_of_other_rows_stand_beside_each_that_is_printed(monkeypatch):
    lines = stand_in.text().splitlines()[2:]
    printed = [
        line
        for line in published.stored("diana2025")
        if (line["table"], line["dataset"]) == ("table1", "income_l")
    ]
    assert len(lines) == len(printed)
    for line, one in zip(lines, printed, strict=True):
        assert line.startswith(f"| {one['method']} | {one['setting']} | ")
        assert f"| {float(one['value']):.2f} ± " in line
    own = [
        row
        for row in kept.read("aia.fig3.oracle").rows
        if (row.attack, row.metric) == ("model_oracle", "aia_accuracy_percent")
        and (row.client, row.point) == ("all", "partition_heterogeneity=0.4")
    ]
    mean = np.mean([row.value for row in own])
    assert lines[-1].startswith(f"| model_oracle | oracle | {mean:.1f} [")
    assert lines[-1].endswith(f"| {len(own)} x {min(row.n for row in own)} |")
    monkeypatch.setattr(stand_in, "_RESULTS", ("aia.fig6",))
    with pytest.raises(LookupError, match="grad passive: in none of aia.fig6"):
        stand_in.text()


def test_example_clients_have_a_column_for_each_label(monkeypatch):
    found = [
        Labels(
            "label_distribution", "mnist", "mlp", point=f"alpha=0.1;label={label}"
        ).row(attack, "example", 0, "share_percent", value, 1)
        for attack, shares in (("true", (90.0, 10.0)), ("fused", (88.4, 11.6)))
        for label, value in enumerate(shares)
    ]
    _kept(monkeypatch, found)
    assert example_clients.text("n").splitlines() == [
        "| client | share of each label, % | 0 | 1 |",
        "| --- | --- | ---: | ---: |",
        "| alpha = 0.1 | has | 90 | 10 |",
        "| alpha = 0.1 | all of it, weighed | 88 | 12 |",
    ]
    with pytest.raises(ConfigError, match="expected clients that are examples"):
        _kept(monkeypatch, _accuracies("none", [50.0]))
        example_clients.text("n")


def test_attacks_have_a_column_for_each_concentration(monkeypatch):
    found = [
        Labels("label_distribution", "mnist", "mlp", point=point).row(
            "predictor", "passive", 0, metric, value, 5
        )
        for point, metric, value in (
            ("alpha=10", "total_variation", 0.25),
            ("alpha=0.1", "total_variation", 0.5),
            ("alpha=0.1", "dominant_label_percent", 98.25),
            ("alpha=0.1;label=3", "total_variation", 0.9),
            ("", "total_variation", 0.7),
        )
    ]
    _kept(monkeypatch, found)
    assert by_alpha.text("n").splitlines() == [
        "| metric | attack | alpha = 0.1 | alpha = 10 |",
        "| --- | --- | ---: | ---: |",
        "| total variation | predictor | 0.5000 | 0.2500 |",
        "| most frequent label named, % | predictor | 98.2 |  |",
    ]


def test_what_is_not_run_is_counted_of_the_methods_that_are():
    def missing(names):
        return papers._not_run([kept.shown(name) for name in names])

    # Of ten clients of 100 alone, three other percentages and three times as many clients.
    own = missing(["fed_cdp.committed"])
    table = [
        line
        for line in published.stored("wei2021")
        if (line["table"], line["method"]) == ("table2", "fed_cdp")
    ]
    assert own == len(table) - 1
    more = missing(["fed_cdp.committed", "fed_cdp.committed.percent"])
    assert more == own - 3
    # Of other data nothing is missing, and what ran there alone is no method run here.
    assert missing(["gradient_leakage.digits"]) == 0
    assert missing(["fed_cdp.committed", "gradient_leakage.digits"]) == own


@pytest.mark.parametrize(("lines", "opens"), [(24, False), (25, True)])
def test_a_long_table_is_folded_away_under_what_it_has(lines, opens):
    table = writing.table(["a"], [[str(n)] for n in range(lines)])
    text = writing.folded(table, "numbers")
    assert (text != table) == opens
    if opens:
        first, *_, last = text.split("\n\n")
        assert first == "<details><summary>25 numbers</summary>"
        assert table in text and last == "</details>"


def test_the_numbers_of_a_case_stand_beside_one_another(rows):
    def made(value, metric, defense):
        about = {"experiment": "gradient_leakage", "setting": "leakage_type=2"}
        return rows(value, metric=metric, defense=defense, attack="cpl", **about)

    found = made(0.5, "reconstruction_distance", "none") + made(1.0, "ssim", "none")
    found += made(0.7, "ssim", "d") + made(7.0, "attack_iterations", "d")
    printed = {
        ("leakage_type=2", "cpl", "ssim"): Number(0.9),
        ("leakage_type=2", "cpl", "attack_iterations"): Number(300, differs="its end"),
    }
    reference = Reference("Table VII", "mnist", True, "mlp", None, printed)
    told = wide.text(cards.card("run", found, {}, reference).judged)
    assert told.splitlines()[0].split(" | ")[1:] == [
        "reconstruction distance", "ssim", "ssim, paper", "attack iterations",
        "attack iterations, paper", "seeds x rows |",
    ]  # fmt: skip
    assert [line.split(" | ")[1:-1] for line in told.splitlines()[2:4]] == [
        ["0.5", "1.00", "0.90", "", ""], ["", "0.7", "0.90", "7.00", "(300.00)"]
    ]  # fmt: skip
    assert told.endswith("of another end of a search.")


def test_a_published_mean_of_five_lies_among_those_of_ours(monkeypatch):
    labels = Labels("aia", "toy", "linear", point="batch_size=64")
    # Means of five of 1, 2 and 9; two more are of no five.
    values = [*[1.0] * 5, *[2.0] * 5, *[9.0] * 5, 100.0, 100.0]
    found = [
        labels.row("subset", "passive", seed, metric, value, 10)
        for metric, shift in (("pooled_loss", 0.0), ("other_loss", 50.0))
        for seed, value in enumerate(shift + np.array(values))
    ]
    printed = {("batch_size=64", "subset", "pooled_loss"): Number(3.5)}
    reference = Reference("Figure 2", "toy", True, "linear", None, printed)
    card = cards.card("run", found, {"command": "run it"}, reference)
    monkeypatch.setattr(kept, "shown", lambda name: card)
    *_, line, _, last = means_of_five.text("run").splitlines()
    assert line.split(" | ")[2:] == ["pooled loss", "2", "1.05 to 8.65", "3.50", "67 |"]
    assert last == "3 means of five."
    few = card._replace(rows=found[:4])
    monkeypatch.setattr(kept, "shown", lambda name: few)
    with pytest.raises(ConfigError, match="run: expected five seeds or more, got 4"):
        means_of_five.text("run")
