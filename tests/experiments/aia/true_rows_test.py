"""A search that stops short of what the true rows explain says so."""

import pytest

from experiments.aia import true_rows
from fljax import results
from fljax.results import Labels

_LABELS = Labels("aia", "diabetes", "mlp", point="rate=1")


def _rows(attack, *misfits):
    return [
        _LABELS.row(attack, "passive", 0, true_rows.METRIC, value, 9, client)
        for client, value in enumerate(misfits)
    ]


@pytest.mark.parametrize(
    ("left", "asked"),
    [
        ((1.0, 2.9), False),
        ((1.0, 3.1), True),
        ((float("nan"), 1.0), True),  # a simulation that ran away
        ((), False),
    ],
)
def test_the_true_rows_are_looked_at_where_a_search_left_more_than_noise(left, asked):
    found = _rows("trajectory", *left)
    assert true_rows.are_asked_for(found) == asked
    others = _rows("linear_inversion", 50.0) + _rows("trajectory_strangers", 50.0)
    assert not true_rows.are_asked_for(others)


def test_it_says_of_how_many_clients_and_what_to_try():
    found = _rows("trajectory", 1.1, 40.0, 7.0) + _rows("true_rows", 1.0, 1.25, 0.5)
    (said,) = true_rows.said(found)
    assert "(rate=1) for 2 of 3 clients" in said
    assert "misfit up to 40, of the true rows 1.2" in said
    assert "--trajectory_iterations" in said
    assert not list(true_rows.said(_rows("trajectory", 2.0) + _rows("true_rows", 1.0)))
    assert not list(true_rows.said(_rows("trajectory", 40.0)))


def test_true_rows_that_explain_nothing_say_so_of_the_training():
    found = _rows("trajectory", 40.0, 1.0) + _rows("true_rows", 41.0, 1.0)
    (said,) = true_rows.said(found)
    assert "messages of 1 of 2 clients do not fit their rows" in said
    assert "not as the attacks were told" in said


@pytest.mark.slow
def test_a_run_whose_search_is_too_short_compares_with_the_true_rows(run, tmp_path):
    data = "--data_name=breast_cancer", "--data_sensitive=high_texture"
    told = "--data_preset=neural", "--model_hidden=32", "--num_rounds=60"
    quick = "--attack_kinds=trajectory", "--trajectory_path_steps=6"
    few = "--trajectory_iterations=10", "--partition_clients=4"
    code, out, _ = run(*data, *told, *quick, *few)
    assert code == 0
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    true = [row for row in rows if row.attack == true_rows.NAME]
    left = [
        row for row in rows if row.attack == "trajectory" and row.metric == "misfit"
    ]
    assert len(true) == len(left) and {row.setting for row in true} == {"passive"}
    assert max(row.value for row in true) < 3 < max(row.value for row in left)
    assert "the search of trajectory stopped short" in " ".join(out.split())
