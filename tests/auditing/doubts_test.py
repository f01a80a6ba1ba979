"""What is said where messages and rows do not fit, or a search stopped short."""

import jax
import numpy as np
import pytest

from fljax import fit, verdicts
from fljax.attacks.adversary import LocalTraining
from fljax.attacks.estimates import LabelEstimate, Prediction
from fljax.attacks.trajectory import misfits, noise
from fljax.auditing import doubts, fits, scoring, slips, words
from fljax.auditing import lines as lines_lib
from fljax.auditing.doubts import SHORT
from fljax.auditing.fits import Fit
from fljax.auditing.measuring import Controls
from tests.auditing.judging import judged as _judged
from tests.auditing.judging import truth as _truth


def _said(**said):
    return {name: np.array(values) for name, values in said.items()}


@pytest.mark.parametrize(
    ("misfit", "explained", "verdict", "why"),
    [
        ([1.4], 50, verdicts.NOT_SHOWN, ""),
        ([1.4], -20, fit.UNLEARNT, "targets, less than a constant does"),
        ([1.4], np.nan, verdicts.NOT_SHOWN, ""),
        ([11.0], 50, lines_lib.MISFIT, "misfit up to 11"),
        ([np.inf], np.nan, lines_lib.MISFIT, "misfit up to inf"),
        ([5.0], 50, lines_lib.MISFIT, "misfit up to 5"),
        ([1.0, 5.0, 1.0], 50, verdicts.NOT_SHOWN, "of 1 of 3 clients do not fit"),
        ([1.0, 5.0, 1.0], -20, fit.UNLEARNT, "of 1 of 3 clients do not fit"),
        ([1.0, 11.0, 1.0], 50, lines_lib.MISFIT, "of 1 of 3 clients do not fit"),
        (None, 50, verdicts.NOT_SHOWN, ""),
        (None, 1.9, fit.UNLEARNT, "explains 1.9 %"),
        ([1.4], -1e6, fit.UNLEARNT, "is 1e+04 times that of a constant"),
    ],
)
def test_nothing_is_concluded_where_rows_do_not_fit(misfit, explained, verdict, why):
    truth = _truth([[0, 1] * 20])
    always = np.zeros((1, 40), int)
    answers = {"mine": Prediction(always), "silent": Prediction(always)}
    rows = Fit(np.array([90, explained]), None if misfit is None else np.array(misfit))
    for line in scoring.lines(answers, truth, continuous=False, rows=rows):
        assert line.verdict == verdict and why in line.detail
        doubted = verdict == lines_lib.MISFIT or "1.9" in why
        assert ("input_order" in line.detail) is doubted


def test_of_shares_of_labels_nothing_is_concluded_either_where_rows_do_not_fit():
    truth = _truth([[0, 1] * 20] * 5, labels=np.eye(5))
    far = LabelEstimate(np.full((5, 5), 0.2), np.full((5, 5), 0.2))
    near = far._replace(value=np.eye(5))

    def told(answer, misfit, explained=50.0):
        rows = Fit(np.full(5, explained), np.full(5, misfit))
        lines = scoring.lines({"mine": answer}, truth, continuous=False, rows=rows)
        return lines[0], words.summary("smoker", lines, list("abcde"), rows, ())[0]

    line, said = told(far, 40.0)
    assert line.verdict == lines_lib.MISFIT and "input_order" in line.detail
    assert said.startswith("No conclusion about the clients' shares of labels: the mes")
    line, said = told(far, 1.0, explained=-20.0)  # of what a model learns of a column
    assert line.verdict == verdicts.NOT_SHOWN
    assert "shows a leak of the clients' shares of labels" in said
    line, _ = told(near, 40.0)
    assert line.verdict == verdicts.LEAKS


def test_a_leak_beside_noise_that_lacks_says_so():
    truth = _truth([[0, 1] * 40] * 3)
    rows = Fit(np.full(3, 50.0), np.ones(3), lacking="messages of 3 of 3 clients ...")
    right = {"model": Prediction(truth.sensitive)}
    lines = scoring.lines(right, truth, continuous=False, rows=rows)
    assert lines[0].verdict == verdicts.LEAKS
    said = words.summary("smoker", lines, list("abc"), rows, ())
    assert "The declared noise was not all there: messages of 3 of 3" in " ".join(said)


def test_a_leak_stays_one_unless_nothing_explains_the_messages():
    truth = _truth([[0, 1] * 40] * 3)
    right = {"trajectory": Prediction(truth.sensitive, _said(misfit=[7.8, 1.2, 8.1]))}

    def told(*misfit, slip="", answers=right):
        rows = Fit(np.full(3, 50.0), np.array(misfit), slip)
        return scoring.lines(answers, truth, continuous=False, rows=rows)

    (line,) = told(1.0, 1.0, 1.0)
    assert line.verdict == verdicts.LEAKS and "fit" not in line.detail
    (line,) = told(40.0, 50.0, 1.0)
    assert line.verdict == verdicts.LEAKS and "of 2 of 3 clients do not" in line.detail
    answers = {"trajectory": Prediction(truth.sensitive, _said(misfit=[20.0] * 3))}
    (line,) = told(40.0, 50.0, 1.0, slip="they would if", answers=answers)
    assert line.verdict == lines_lib.MISFIT and "they would if" in line.detail
    assert "input_order" not in line.detail
    plain = {"model": Prediction(truth.sensitive)}  # which simulates no training
    (line,) = told(40.0, 50.0, 60.0, answers=plain)
    assert line.verdict == verdicts.LEAKS and "of 3 of 3 clients do not" in line.detail
    (line,) = _judged(truth, **answers)  # of true rows nothing is known
    assert line.verdict == lines_lib.MISFIT and "input_order" in line.detail


def test_a_leak_of_messages_that_fit_no_better_than_on_strangers_is_none():
    truth, strange = (_truth([[0, 1] * 40] * 3) for _ in range(2))
    wrong = Prediction(1 - strange.sensitive, _said(misfit=[7.7, 8.0, 7.9]))
    controls = Controls(None, {"trajectory": wrong}, strange)

    def told(*misfit):
        right = Prediction(truth.sensitive, _said(misfit=misfit))
        return _judged(truth, controls, trajectory=right)[0].verdict

    assert told(7.8, 1.2, 8.1) == lines_lib.MISFIT
    assert told(1.3, 1.2, 8.1) == told(4.0, 4.0, 4.0) == verdicts.LEAKS


def test_a_search_that_stopped_short_is_no_misfit():
    truth = _truth([[0, 1] * 20])
    found = Prediction(np.zeros((1, 40), int), _said(misfit=[78.0]))
    rows = Fit(np.array([50.0]), np.array([1.1]))
    (line,) = scoring.lines(
        {"linear_inversion": found}, truth, continuous=False, rows=rows
    )
    assert SHORT not in line.detail  # it explains less anyway
    lost = found._replace(diagnostics=_said(misfit=[np.nan]))
    (line,) = scoring.lines({"trajectory": lost}, truth, continuous=False, rows=rows)
    assert SHORT in line.detail
    (line,) = scoring.lines({"trajectory": found}, truth, continuous=False, rows=rows)
    assert line.verdict == verdicts.NOT_SHOWN and SHORT in line.detail
    said = " ".join(words.summary("married", [line], ["one"], rows, ()))
    assert "No attack" in said and "trajectory stopped short" in said


def test_what_noise_may_leave_of_so_few_messages_is_said():
    misfit = np.array([1.0, 6.0, 2.0])
    few = fits.of_noise(np.full(3, 5), clients=3)
    assert "up to 6, as noise may leave of so few messages)" in doubts.bad(misfit, few)
    for counts in ([30, 30, 30], [2, 30, 2], [3, 30, 3]):
        many = fits.of_noise(np.array(counts), clients=3)
        assert doubts.bad(misfit, many).endswith("(misfit up to 6)")
    assert not doubts.bad(np.ones(3), few)


@pytest.mark.slow
@pytest.mark.parametrize("messages", [3, 5, 12])
def test_noise_in_one_direction_seldom_leaves_a_larger_misfit(messages):
    shape = 200, 3, messages, 6
    sizes = np.arange(1, 7) ** -3.0
    left = np.random.default_rng(0).normal(size=shape).astype(np.float32) * sizes
    found = jax.vmap(jax.vmap(lambda r: misfits.misfit(noise.estimate(r), r)))(left)
    beyond = np.asarray(found).max(axis=1) > fits.of_noise(
        np.array(messages), clients=3
    )
    assert beyond.mean() < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
    assert np.median(found) < 2


def test_numbers_of_rounds_that_are_times_make_no_schedules():
    training = LocalTraining(batch_size=0, learning_rate=0.1, epochs=1)
    assert len(list(slips._rates(training, 100))) > 3
    assert not list(slips._rates(training, 1_700_000_000))
