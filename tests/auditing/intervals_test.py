"""How wide an audit's intervals are, and what it compares with."""

import numpy as np
import pytest
from scipy import stats

from fljax import verdicts
from fljax.attacks.estimates import LabelEstimate, Prediction
from tests.auditing.judging import judged as _judged
from tests.auditing.judging import truth as _truth


@pytest.mark.parametrize(("clients", "attacks"), [(1, 1), (1, 3), (4, 3)])
def test_intervals_are_as_wide_as_clients_and_attacks_demand(clients, attacks):
    real = np.tile([0, 1], (clients, 40))
    guess = Prediction(np.where(np.arange(80) < 8, 1 - real, real))
    answers = {f"attack{at}": guess for at in range(attacks)}
    line, *_ = _judged(_truth(real), **answers, model_global=guess)  # is not judged
    level = verdicts.own_level(clients, attacks)
    ends = stats.binomtest(72, 80).proportion_ci(level, method="wilson")
    mean = verdicts.deviations(verdicts.level(attacks)) / verdicts.deviations(level)
    reach = mean * (90 - 100 * ends.low) / np.sqrt(clients)
    assert line.gains[0].low == pytest.approx(40 - reach)


def test_a_label_distribution_is_compared_with_those_of_all_other_clients():
    labels = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    truth = _truth(np.zeros((3, 2), int), labels=labels)
    (line,) = _judged(truth, rule=LabelEstimate(labels, np.full((3, 2), 0.5)))
    found = [client.references["strangers"] for client in line.clients]
    typical = np.sqrt(1.01 * 0.51) - 0.01  # of 1 and 0.5
    np.testing.assert_allclose(found, [typical, typical, 0.5])


def test_the_interval_of_the_mean_is_over_the_rows_of_all_clients():
    real = np.tile([0, 1], (4, 40))
    guess = Prediction(np.where(np.arange(80) < 8, 1 - real, real))
    (line,) = _judged(_truth(real), mine=guess)
    ends = stats.binomtest(72, 80).proportion_ci(0.95, method="wilson")
    wanted = [90 - (90 - 100 * ends.low) / 2, 90 + (100 * ends.high - 90) / 2]
    np.testing.assert_allclose([line.total.low, line.total.high], wanted)
