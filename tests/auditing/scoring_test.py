"""What counts as a leak, and numbers in the units of the file."""

import json

import numpy as np
import pandas as pd
import pytest

from fljax import verdicts
from fljax.attacks.estimates import LabelEstimate, NotApplicable, Prediction
from fljax.auditing import program, scoring
from fljax.auditing.truth import Truth


def _truth(sensitive, unit=1.0, labels=None):
    sensitive = np.asarray(sensitive)
    count, size = sensitive.shape
    return Truth(
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
    (line,) = _judged(truth, always=Prediction(np.zeros((1, 100), int)))
    assert line.total.value == line.total.baseline == 70
    assert line.verdict == verdicts.NOT_CLEAR  # an interval over 100 rows is wide
    (line,) = _judged(truth, knows=Prediction(truth.sensitive))
    assert line.total.value == 100 and line.verdict == verdicts.LEAKS


def test_one_client_among_many_is_enough_and_luck_is_not():
    rng = np.random.default_rng(0)
    truth = _truth(rng.integers(0, 2, (20, 40)))
    guess = rng.integers(0, 2, (20, 40))
    (line,) = _judged(truth, luck=Prediction(guess))
    assert line.verdict == verdicts.NO_GAIN
    assert line.detail == "0 of 20 clients alone"
    guess[3] = truth.sensitive[3]
    (line,) = _judged(truth, one=Prediction(guess))
    assert (line.verdict, line.detail) == (verdicts.LEAKS, "1 of 20 clients alone")
    assert line.total.value == pytest.approx(100 * np.mean(guess == truth.sensitive))


def test_an_attack_without_an_answer_says_so():
    truth = _truth([[0, 1, 1, 1]])
    (line,) = _judged(truth, diverged=Prediction(np.full((1, 4), -1)))
    assert line.verdict == verdicts.NO_GAIN
    assert line.detail == "no answer on 100 % of the rows"


def test_errors_are_in_the_units_of_the_file():
    real = np.linspace(-1, 1, 50)[None]
    truth = _truth(real, unit=10.0)
    near, far = Prediction(real + 0.01), Prediction(-real)
    lines = _judged(truth, near=near, far=far)
    assert lines[0].total.value == pytest.approx(0.1)
    assert lines[0].total.baseline == pytest.approx(10 * np.abs(real).mean())
    assert [line.verdict for line in lines] == [verdicts.LEAKS, verdicts.NO_GAIN]


def _labels(rng, clients, audits=400):
    """True distributions and independent guesses `[audits, clients, 3]`."""
    return rng.dirichlet(np.ones(3), (2, audits, clients))


@pytest.mark.parametrize("clients", [1, 4, 20])
def test_guesses_that_do_not_depend_on_the_truth_leak_in_one_audit_of_forty(clients):
    real, guess = _labels(np.random.default_rng(clients), clients)
    uniform = np.full((clients, 3), 1 / 3)
    leaks = 0
    for labels, value in zip(real, guess, strict=True):
        truth = _truth(np.zeros((clients, 2), int), labels=labels)
        (line,) = _judged(truth, rule=LabelEstimate(value, uniform))
        leaks += line.verdict == verdicts.LEAKS
    # Three standard errors of a share of 1 / 40; it was 8, 37, 88 % with K = 3.
    assert leaks / len(real) <= 1 / 40 + 3 * np.sqrt(1 / 40 / len(real))


def test_a_label_distribution_of_one_client_has_no_interval():
    truth = _truth([[0, 1]], labels=[[0.9, 0.1]])
    estimate = LabelEstimate(np.array([[0.8, 0.2]]), np.array([[0.5, 0.5]]))
    (line,) = _judged(truth, rule=estimate)
    assert line.total.value == pytest.approx(0.1)
    assert line.total.baseline == pytest.approx(0.4)
    assert line.verdict == verdicts.NO_INTERVAL


def test_label_distributions_of_several_clients_that_are_near_leak():
    (labels, _), _ = _labels(np.random.default_rng(0), 4, audits=2)
    truth = _truth(np.zeros((4, 2), int), labels=labels)
    near = LabelEstimate(0.9 * labels + 0.1 / 3, np.full((4, 3), 1 / 3))
    (line,) = _judged(truth, rule=near)
    assert line.verdict == verdicts.LEAKS


def test_what_did_not_run_has_a_reason_and_no_number():
    (line,) = _judged(_truth([[0, 1]]), other=NotApplicable("too few messages"))
    assert (line.verdict, line.detail) == (scoring.NOT_APPLICABLE, "too few messages")
    assert line.total is None and not line.metric


def test_a_sensitive_number_is_inferred_with_an_error(linear, audited):
    answers, lines = audited(
        linear, sensitive="age", attacks=("model", "grad", "reconstruct")
    )
    by_name = {line.attack: line for line in lines}
    assert "is a number" in by_name["grad"].detail
    frame = pd.read_csv(linear / "rows.csv")
    ages = frame.age.to_numpy().reshape(2, 30)
    errors = np.abs(answers["reconstruct"].value - ages).mean(axis=1)
    line = by_name["reconstruct"]
    assert line.metric == verdicts.ERROR.metric and line.verdict == verdicts.LEAKS
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
    answers = {"model": Prediction(always, learnt), "other": Prediction(always, own)}
    for line in _judged(truth, **answers, silent=Prediction(always)):
        assert (line.verdict == scoring.UNEXPLAINED) is bool(why)
        assert why in line.detail and ("input_order" in line.detail) is bool(why)
    (_, line) = _judged(truth, **answers | {"other": Prediction(truth.sensitive, own)})
    assert line.verdict == verdicts.LEAKS


@pytest.mark.parametrize("change", ["order", "units"])
def test_rows_that_were_not_trained_on_are_noticed(linear, config, capsys, change):
    frame = pd.read_csv(linear / "rows.csv")
    columns = ["height", "age", "married", "client", "y"]
    other = frame[columns] if change == "order" else frame.assign(y=100 * frame.y)
    other.to_csv(linear / "other.csv", index=False)
    attacks = ("linear_inversion",)
    program.PROGRAM.run(
        config(linear, known=str(linear / "other.csv"), attacks=attacks)
    )
    said = json.loads((linear / "out" / "manifest.json").read_text())["verdicts"]
    assert said["linear_inversion"].startswith(scoring.UNEXPLAINED)
    assert "standardise_target" in said["linear_inversion"]
    assert scoring.UNEXPLAINED in (linear / "out" / "report.html").read_text()
    said = capsys.readouterr().out
    assert verdicts.NO_GAIN not in said and verdicts.NOT_CLEAR not in said


def test_a_model_that_has_learnt_the_rows_has_a_lower_loss(linear, record, audited):
    answers, _ = audited(linear, attacks=("model",))
    ratio = answers["model"].diagnostics["loss_ratio"]
    frame = pd.read_csv(linear / "rows.csv")
    frame.assign(y=100 * frame.y).to_csv(linear / "other.csv", index=False)
    other, _ = audited(linear, known=str(linear / "other.csv"), attacks=("model",))
    assert (ratio < other["model"].diagnostics["loss_ratio"]).all()
