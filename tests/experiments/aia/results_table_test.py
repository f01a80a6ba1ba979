"""Numbers beside the paper's, each on one line of the screen."""

import io

import pytest
from rich.console import Console

from experiments.aia import results_table
from fljax.results import Row

_ACCURACY = "aia_accuracy_percent"
_BOUND = "aia_accuracy_bound_percent"


def _row(attack, metric, value, *, seed=0):
    return Row(
        experiment="aia",
        data="medical",
        model="linear",
        defense="none",
        attack=attack,
        setting="baseline" if attack in ("majority", "imputation") else "passive",
        point="",
        seed=seed,
        client="all",
        metric=metric,
        value=value,
        n=39133,
    )


def _lines(rows, paper_table=None):
    out = Console(width=120, file=io.StringIO())
    for table in results_table.of_results(rows, paper_table):
        out.print(table)
    return [" ".join(line.split()) for line in out.file.getvalue().splitlines()]


def test_what_no_paper_has_needs_no_column():
    lines = _lines([_row("none", "epsilon_rdp", 8.0), _row("model", _ACCURACY, 60.0)])
    assert not any("paper" in line for line in lines)
    assert any(line.startswith("passive epsilon rdp") for line in lines)  # no attack's


def test_the_fullest_row_stays_on_one_line_of_120_characters():
    rows = []
    for seed in range(10):
        rows += [
            _row("majority", _ACCURACY, 50.0, seed=seed),
            _row("imputation", _ACCURACY, 75.0, seed=seed),
            _row("reconstruct_subset", _ACCURACY, 89.0 + seed, seed=seed),
            _row("reconstruct_subset_strangers", _ACCURACY, 60.0, seed=seed),
            _row("reconstruct_subset", _BOUND, 100.0, seed=seed),
            _row("reconstruct_subset", "optimum_distance", 12.34 + seed, seed=seed),
        ]
    lines = _lines(rows, "table2")
    accuracy, distance = [line for line in lines if "reconstruct_subset" in line]
    assert accuracy == (
        "reconstruct_subset passive accuracy % 93.50 [91.33, 95.67] 50.00 75.00 60.00 "
        "100.00 94.13 ± 0.16"
    )
    assert distance == (
        "reconstruct_subset passive optimum distance 16.84 [14.67, 19.01]"
    )


def test_intervals_end_where_the_measure_does():
    rows = [
        _row("model", metric, value + 0.5 * seed, seed=seed)
        for metric, value in ((_ACCURACY, 99.25), ("brier_score", 0.0))
        for seed in range(2)
    ]
    accuracy, brier = [line for line in _lines(rows) if line.startswith("model")]
    assert "99.50 [96.32, 100.00]" in accuracy
    assert "0.25 [0.00, 3.43]" in brier


def test_without_bound_there_is_no_column_for_it():
    lines = _lines([_row("majority", _ACCURACY, 50.0), _row("model", _ACCURACY, 60.0)])
    assert "majority baseline accuracy % 50.00 [49.50, 50.50]" in lines
    assert "model passive accuracy % 60.00 [59.51, 60.48] 50.00" in lines
    assert not any("bound" in line for line in lines)


@pytest.mark.parametrize("metric", ["accuracy %", "mean abs. error"])
def test_the_score_of_an_attack_that_is_not_determined_says_so(metric):
    name = {"accuracy %": _ACCURACY}.get(metric, "aia_mean_absolute_error")
    rows = [
        _row("model", name, 60.0),
        _row("reconstruct", name, 60.0),
        _row("reconstruct", "optimum_distance", 2.0),
        _row("reconstruct", "determined", 0.9),
        _row("reconstruct_subset", name, 60.0),
        _row("reconstruct_subset", "determined", 1.0),
    ]
    lines = [line.partition(" [")[0] for line in _lines(rows)]
    assert f"reconstruct passive {metric} (not determined) 60.00" in lines
    assert "reconstruct passive optimum distance 2.00" in lines
    assert f"model passive {metric} 60.00" in lines
    assert f"reconstruct_subset passive {metric} 60.00" in lines


def test_a_number_that_is_not_comparable_is_not_shown():
    rows = [_row("reconstruct_subset", _ACCURACY, 94.0)]
    other_model = [row._replace(model="mlp") for row in rows]
    assert any("94.13 ± 0.16" in line for line in _lines(rows, "table2"))
    assert not any("94.13" in line for line in _lines(other_model, "table2"))
    told = {"data_name": "csv"}
    (table,) = results_table.of_results(rows, "table2", told)
    assert list(table.columns[-1].cells) == [""]


def test_no_rows_make_no_table():
    assert results_table.of_results([], None) == []
