"""What counts as a leak, and numbers in the units of the file."""

import json

import numpy as np
import pandas as pd
import pytest

from fljax.auditing import program, scoring
from fljax.auditing.evidence import Guess, Shares, Skipped


def _truth(sensitive, unit=1.0, labels=None):
    sensitive = np.asarray(sensitive)
    count, size = sensitive.shape
    return scoring.Truth(
        sensitive=sensitive,
        mask=np.ones((count, size), bool),
        unit=unit,
        labels=np.zeros((count, 2)) if labels is None else np.asarray(labels),
        rows=np.zeros((count, size, 1)),
        scale=np.ones(1),
    )


def _judged(truth, **answers):
    return scoring.lines(answers, truth, continuous=truth.sensitive.dtype.kind == "f")


def test_naming_the_most_frequent_value_is_no_leak():
    truth = _truth([[0] * 70 + [1] * 30])
    (line,) = _judged(truth, always=Guess(np.zeros((1, 100), int), {}))
    assert line.total.value == line.total.baseline == 70
    assert line.verdict == scoring.SHOWS_NONE
    (line,) = _judged(truth, knows=Guess(truth.sensitive, {}))
    assert line.total.value == 100 and line.verdict == scoring.LEAKS


def test_one_client_among_many_is_enough_and_luck_is_not():
    rng = np.random.default_rng(0)
    truth = _truth(rng.integers(0, 2, (20, 40)))
    guess = rng.integers(0, 2, (20, 40))
    (line,) = _judged(truth, luck=Guess(guess, {}))
    assert line.verdict == scoring.SHOWS_NONE
    assert line.detail == "0 of 20 clients alone"
    guess[3] = truth.sensitive[3]
    (line,) = _judged(truth, one=Guess(guess, {}))
    assert (line.verdict, line.detail) == (scoring.LEAKS, "1 of 20 clients alone")
    assert line.total.value == pytest.approx(100 * np.mean(guess == truth.sensitive))


def test_an_attack_without_an_answer_says_so():
    truth = _truth([[0, 1, 1, 1]])
    (line,) = _judged(truth, diverged=Guess(np.full((1, 4), -1), {}))
    assert line.verdict == scoring.SHOWS_NONE
    assert line.detail == "no answer on 100 % of the rows"


def test_errors_are_in_the_units_of_the_file():
    real = np.linspace(-1, 1, 50)[None]
    truth = _truth(real, unit=10.0)
    near, far = Guess(real + 0.01, {}), Guess(-real, {})
    lines = _judged(truth, near=near, far=far)
    assert lines[0].total.value == pytest.approx(0.1)
    assert lines[0].total.baseline == pytest.approx(10 * np.abs(real).mean())
    assert [line.verdict for line in lines] == [scoring.LEAKS, scoring.SHOWS_NONE]


@pytest.mark.parametrize(("guess", "leaks"), [(0.8, True), (0.65, False)])
def test_a_distance_must_be_less_than_half_the_baselines(guess, leaks):
    truth = _truth([[0, 1]], labels=[[0.9, 0.1]])
    (line,) = _judged(
        truth,
        mean_distribution=Shares(np.array([[0.5, 0.5]]), "baseline", True),
        rule=Shares(np.array([[guess, 1 - guess]])),
    )
    assert line.total.value == pytest.approx(0.9 - guess)
    assert line.total.baseline == pytest.approx(0.4)
    assert (line.verdict == scoring.LEAKS) is leaks


def test_what_did_not_run_has_a_reason_and_no_number():
    (line,) = _judged(_truth([[0, 1]]), other=Skipped("too few messages"))
    assert (line.verdict, line.detail) == (scoring.NOT_APPLICABLE, "too few messages")
    assert line.total is None and not line.metric


def test_a_sensitive_number_is_inferred_with_an_error(linear, guesses):
    answers, lines = guesses(
        linear, sensitive="age", attacks=("model", "grad", "reconstruct")
    )
    by_name = {line.attack: line for line in lines}
    assert "is a number" in by_name["grad"].detail
    frame = pd.read_csv(linear / "rows.csv")
    ages = frame.age.to_numpy().reshape(2, 30)
    errors = np.abs(answers["reconstruct"].value - ages).mean(axis=1)
    line = by_name["reconstruct"]
    assert line.metric == scoring.ERROR and line.verdict == scoring.LEAKS
    found = [number.value for number in line.clients]
    np.testing.assert_allclose(found, errors, rtol=1e-4)


def _said(**said):
    return {name: np.array(values) for name, values in said.items()}


@pytest.mark.parametrize(
    ("own", "learnt", "why"),
    [
        (_said(misfit=[1.4]), _said(loss_ratio=[1.2]), ""),
        (_said(misfit=[11.0]), _said(loss_ratio=[0.5]), "misfit 11"),
        (_said(misfit=[np.nan]), {}, "misfit inf"),
        (_said(misfit=[5.0]), _said(loss_ratio=[0.5]), ""),
        (_said(misfit=[5.0]), _said(loss_ratio=[1.2]), "loss 120 %"),
        ({}, _said(loss_ratio=[0.5]), ""),
        ({}, _said(loss_ratio=[0.999]), "loss 99.9 %"),
    ],
)
def test_no_leak_is_not_said_of_rows_that_do_not_fit(own, learnt, why):
    truth = _truth([[0, 1] * 20])
    always = np.zeros((1, 40), int)
    answers = {"model": Guess(always, learnt), "other": Guess(always, own)}
    for line in _judged(truth, **answers, silent=Guess(always, {})):
        assert (line.verdict == scoring.UNEXPLAINED) is bool(why)
        assert why in line.detail and ("--input_order" in line.detail) is bool(why)
    (_, line) = _judged(truth, **answers | {"other": Guess(truth.sensitive, own)})
    assert line.verdict == scoring.LEAKS


@pytest.mark.parametrize("change", ["order", "units"])
def test_rows_that_were_not_trained_on_are_noticed(linear, told, capsys, change):
    frame = pd.read_csv(linear / "rows.csv")
    columns = ["height", "married", "age", "client", "y"]
    other = frame[columns] if change == "order" else frame.assign(y=100 * frame.y)
    other.to_csv(linear / "other.csv", index=False)
    attacks = ("linear_inversion", "trajectory")
    program.run(told(linear, known=str(linear / "other.csv"), attacks=attacks))
    said = json.loads((linear / "out" / "manifest.json").read_text())["verdicts"]
    assert said["trajectory"].startswith(scoring.UNEXPLAINED)
    assert "--standardise_target" in said["trajectory"]
    assert scoring.UNEXPLAINED in (linear / "out" / "report.html").read_text()
    assert scoring.SHOWS_NONE not in capsys.readouterr().out


def test_a_model_that_has_learnt_the_rows_has_a_lower_loss(linear, record, guesses):
    answers, _ = guesses(linear, attacks=("model",))
    ratio = answers["model"].said["loss_ratio"]
    frame = pd.read_csv(linear / "rows.csv")
    frame.assign(y=100 * frame.y).to_csv(linear / "other.csv", index=False)
    other, _ = guesses(linear, known=str(linear / "other.csv"), attacks=("model",))
    assert (ratio < other["model"].said["loss_ratio"]).all()
