"""How near a guess of label shares is."""

import numpy as np
import pytest

from experiments.label_distribution import scores


def test_scores_by_hand():
    guess, truth = [[0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5]]
    found = scores.each(guess, truth)
    assert found["total_variation"].tolist() == [0.5, 0.5]
    assert found["dominant_label_percent"].tolist() == [100, 100]
    assert found["cross_entropy"][0] == pytest.approx(np.log(2), rel=1e-6)
    assert found["kl_divergence"][0] == pytest.approx(np.log(2), rel=1e-6)
    # A label that is ruled out though it is there costs much, not infinitely much.
    assert found["kl_divergence"][1] == pytest.approx(
        -0.5 * np.log(1e-4 / 2) - np.log(2), rel=1e-3
    )


def test_of_equally_frequent_labels_any_is_the_dominant_one():
    found = scores.each([[0.2, 0.5, 0.3]] * 2, [[0.4, 0.4, 0.2], [0.4, 0.3, 0.3]])
    assert found["dominant_label_percent"].tolist() == [100, 0]


def test_the_truth_itself_has_no_distance():
    truth = np.random.default_rng(0).dirichlet(np.ones(10), 5)
    found = scores.each(truth, truth)
    assert found["total_variation"].max() == 0
    assert np.abs(found["kl_divergence"]).max() < 1e-3


def test_a_guess_that_is_not_finite_is_uniform():
    found = scores.each([[np.nan, np.nan]], [[1.0, 0.0]])
    assert found["total_variation"].tolist() == [0.5]
