"""What counts as a leak, and numbers in the units of the file."""

import json

import numpy as np
import pandas as pd
import pytest

from fljax import verdicts
from fljax.attacks.estimates import LabelEstimate, NotApplicable, Prediction
from fljax.auditing import case, fits, inputs, learnt, program, words
from fljax.auditing import lines as lines_lib
from fljax.auditing.doubts import STRONGEST
from fljax.auditing.fits import Fit
from fljax.auditing.measuring import Controls, Imputed
from fljax.verdicts import BLIND
from tests.auditing.judging import judged as _judged
from tests.auditing.judging import truth as _truth


def test_naming_the_most_frequent_value_is_no_leak():
    truth = _truth([[0] * 70 + [1] * 30])
    (line,) = _judged(truth, always=Prediction(np.zeros((1, 100), int)))
    assert line.total.value == line.total.baseline == 70
    assert line.verdict == verdicts.NOT_SHOWN and STRONGEST in line.detail
    (line,) = _judged(truth, knows=Prediction(truth.sensitive))
    assert line.total.value == 100 and line.verdict == verdicts.LEAKS


def test_one_client_among_many_is_enough_and_luck_is_not():
    rng = np.random.default_rng(0)
    truth = _truth(rng.integers(0, 2, (20, 40)))
    guess = rng.integers(0, 2, (20, 40))
    (line,) = _judged(truth, luck=Prediction(guess))
    assert line.verdict == verdicts.NOT_SHOWN and "below the majority" in line.detail
    majority = (truth.sensitive.mean(axis=1) > 0.5).astype(int)
    guess = np.repeat(majority[:, None], 40, axis=1)
    guess[3] = truth.sensitive[3]
    (line,) = _judged(truth, one=Prediction(guess))
    assert line.verdict == verdicts.LEAKS and "1 of 20 clients alone" in line.detail
    assert line.total.value == pytest.approx(100 * np.mean(guess == truth.sensitive))


def test_who_is_read_alone_while_noise_hides_the_others_is_told():
    truth = _truth([[0] * 28 + [1] * 12] * 20)
    guess = np.random.default_rng(0).integers(0, 2, (20, 40))
    guess[3] = truth.sensitive[3]
    imputed = Controls(Imputed([np.zeros(40, int)] * 20))
    (line,) = found = _judged(truth, imputed, one=Prediction(guess))
    assert line.verdict == verdicts.LEAKS and line.total.value < line.total.baseline
    said, *_ = words.summary(
        "smoker", found, list("abcdefghijklmnopqrst"), Fit(np.ones(20)), ()
    )
    assert "100.0 % of d (40 rows). 1 of 20 clients leak, which the mean" in said


def _controls(rng, truth, imputed=0.0, strangers=0.0):
    """Values that are right with so much more than even probability."""

    def guess(real, share):
        return np.where(rng.random(real.shape) < 0.5 + share, real, 1 - real)

    strange = _truth(rng.integers(0, 2, truth.sensitive.shape))
    estimates = {"attack": Prediction(guess(strange.sensitive, strangers))}
    own = Imputed(list(guess(truth.sensitive, imputed)))
    return Controls(own, estimates, strange)


@pytest.mark.parametrize(
    ("imputed", "strangers", "verdict"),
    [
        (0.1, 0.1, verdicts.LEAKS),
        (0.4, 0.1, verdicts.PREDICTABLE),
        (0.1, 0.4, verdicts.PREDICTABLE),
    ],
)
def test_what_anyone_could_guess_is_no_leak(imputed, strangers, verdict):
    rng = np.random.default_rng(0)
    truth = _truth(rng.integers(0, 2, (4, 200)))
    controls = _controls(rng, truth, imputed, strangers)
    right = rng.random(truth.sensitive.shape) < 0.88
    guess = np.where(right, truth.sensitive, 1 - truth.sensitive)
    (line,) = _judged(truth, controls, attack=Prediction(guess))
    assert line.verdict == verdict
    assert list(line.total.references) == ["majority", "imputation", "strangers"]
    assert line.total.references["imputation"] == pytest.approx(
        50 + 100 * imputed, abs=6
    )
    assert ("beyond imputation" in line.detail) is (line.gains[1].mean > 0)


def test_permuted_targets_are_shown_and_judge_nothing():
    truth = _truth([[0, 1] * 40] * 2)
    right = Prediction(truth.sensitive)
    beside = Controls(permuted={"trajectory": right})
    (line,) = _judged(truth, beside, trajectory=right)
    assert line.verdict == verdicts.LEAKS  # though it is as right with them
    assert "100 with permuted targets" in line.detail
    assert line.total.references == {"majority": 50.0, "permuted": 100.0}
    real = np.linspace(-1, 1, 40)[None]
    blind = {"model": Prediction(-real)}
    (line,) = _judged(_truth(real), Controls(permuted=blind), model=Prediction(real))
    assert line.total.references["permuted"] == pytest.approx(2 * np.abs(real).mean())


def test_the_populations_model_is_not_judged():
    truth = _truth([[0, 1] * 40])
    (line,) = _judged(truth, model_global=Prediction(truth.sensitive))
    assert line.verdict == lines_lib.NOT_JUDGED and line.total.value == 100


def test_an_attack_without_an_answer_says_so():
    truth = _truth([[0, 1, 1, 1]])
    (line,) = _judged(truth, diverged=Prediction(np.full((1, 4), -1)))
    assert line.verdict == verdicts.NOT_SHOWN
    assert "no answer on 100 % of the rows" in line.detail


def test_errors_are_in_the_units_of_the_file():
    real = np.linspace(-1, 1, 50)[None]
    truth = _truth(real, unit=10.0)
    near, far = Prediction(real + 0.01), Prediction(-real)
    lines = _judged(truth, near=near, far=far)
    assert lines[0].total.value == pytest.approx(0.1)
    assert lines[0].total.baseline == pytest.approx(10 * np.abs(real).mean())
    assert [e.verdict for e in lines] == [verdicts.LEAKS, verdicts.NOT_SHOWN]
    assert "more than the median" in lines[1].detail
    assert "correlation -1.00" in lines[1].detail


def test_a_noisy_number_is_judged_after_shrinkage_towards_the_imputed_one():
    rng = np.random.default_rng(0)
    real = rng.normal(size=(4, 150))
    truth = _truth(real, unit=10.0)
    mean = Imputed([np.zeros(150)] * 4, None, left=1.0)
    strange = _truth(rng.normal(size=(4, 150)))
    noisy = Prediction(real + 2 * rng.normal(size=real.shape))
    blind = Prediction(2 * rng.normal(size=real.shape))
    controls = Controls(mean._replace(strangers=mean.own), {"noisy": blind}, strange)
    (line, none) = _judged(truth, controls, noisy=noisy, blind=blind)
    assert line.diagnostics["error_before_shrinkage"].mean() > 15
    assert line.total.references["majority"] == pytest.approx(8, abs=0.5)
    assert line.total.value < 7.5 and line.verdict == verdicts.LEAKS
    assert "correlation 0.39 [" in line.detail and "% of the variance" in line.detail
    assert none.verdict == verdicts.NOT_SHOWN


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
    assert line.verdict == verdicts.NOT_SHOWN and "no interval" in line.detail


def test_label_distributions_of_several_clients_that_are_near_leak():
    (labels, _), _ = _labels(np.random.default_rng(0), 4, audits=2)
    truth = _truth(np.zeros((4, 2), int), labels=labels)
    near = LabelEstimate(0.9 * labels + 0.1 / 3, np.full((4, 3), 1 / 3))
    (line,) = _judged(truth, rule=near)
    assert line.verdict == verdicts.LEAKS


def test_what_did_not_run_has_a_reason_and_no_number():
    (line,) = _judged(_truth([[0, 1]]), other=NotApplicable("too few messages"))
    assert (line.verdict, line.detail) == (lines_lib.NOT_APPLICABLE, "too few messages")
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


@pytest.mark.slow
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
    assert said["linear_inversion"].startswith(lines_lib.MISFIT)
    assert "standardise_target" in said["linear_inversion"]
    assert lines_lib.MISFIT in (linear / "out" / "report.html").read_text()
    assert "No conclusion" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_what_the_last_model_explains_is_measured_on_the_true_rows(
    linear, record, config, unit
):
    def descend(number, model, returned):  # the last model is the least squares' fit
        x = np.column_stack([frame[["age", "married", "height"]], np.ones(60)])
        *kernel, bias = np.linalg.lstsq(x, frame.y)[0]
        model["out/kernel"][:, 0], model["out/bias"][:] = kernel, bias

    frame = pd.read_csv(linear / "rows.csv")
    record(linear / "learnt", frame, change=descend)
    frame.assign(y=unit * frame.y).to_csv(linear / "other.csv", index=False)
    told = config(
        linear, transcript=str(linear / "learnt"), known=str(linear / "other.csv")
    )
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    found = learnt.explained(fits.knowing_the_truth(ready.view, ready.truth.sensitive))
    assert (found > 95).all() if unit == 1 else (found < 5).all()


def test_of_so_few_rows_that_perfection_is_not_shown_nothing_is_concluded():
    numbers = _truth(np.random.default_rng(0).normal(size=(10, 1)))
    (line,) = _judged(numbers, trajectory=Prediction(numbers.sensitive))
    assert line.verdict == verdicts.NOT_SHOWN and BLIND in line.doubts
    assert words.outcome([line]) == "no_conclusion"


def test_where_perfection_would_be_shown_what_is_not_counts():
    truth = _truth([[0] * 70 + [1] * 30])
    (line,) = _judged(truth, trajectory=Prediction(np.zeros((1, 100), int)))
    assert line.verdict == verdicts.NOT_SHOWN and BLIND not in line.doubts
    assert words.outcome([line]) == "no_leak_shown"


def test_the_share_of_one_client_has_no_interval_however_near():
    labels = np.array([[0.5, 0.3, 0.2]])
    truth = _truth([[0] * 10], labels=labels)
    (line,) = _judged(truth, last_layer=LabelEstimate(labels, np.full((1, 3), 1 / 3)))
    assert BLIND in line.doubts and words.outcome([line]) == "no_conclusion"
