"""What the paper says of its table, from numbers that can be checked by hand."""

import numpy as np

from experiments.lmra import claims


def test_gains_are_means_over_clients_and_one_client_is_least_like_the_others():
    own = np.array([[80.0, 60.0, 70.0]])
    last, majority = np.array([[70.0, 60.0, 20.0]]), np.array([[90.0, 80.0, 70.0]])
    gaps = np.array([[[0, 1, 5], [1, 0, 4], [5, 4, 0]]])
    found = claims.of_draws(own, last, majority, gaps)
    assert found == {
        claims.OVER_LAST: [20.0],  # 10, 0 and 50
        claims.OVER_MAJORITY: [-10.0],
        claims.OVER_OTHERS: [45.0],  # 50 over 5
    }


def test_a_client_alone_has_no_others_to_gain_more_than():
    found = claims.of_draws(
        np.array([[80.0]]), np.array([[60.0]]), np.array([[50.0]]), np.zeros((1, 1, 1))
    )
    assert found == {claims.OVER_LAST: [20.0], claims.OVER_MAJORITY: [30.0]}


def test_local_steps_are_compared_whatever_else_is_swept():
    own = np.arange(6.0)[:, None, None] * np.ones((6, 2, 3))  # steps 1, 5, 10, twice
    np.testing.assert_array_equal(claims.by_steps((1, 5, 10), own), [2.0, 2.0])
    np.testing.assert_array_equal(claims.by_steps((10, 5, 1), own), [-2.0, -2.0])
