"""Rounds of somebody's training, of three clients."""

import numpy as np


def model(number, size=3):
    """Other arrays for each number."""
    rng = np.random.default_rng(number)
    return {
        "dense": {"kernel": rng.normal(size=(2, size)), "bias": rng.normal(size=size)}
    }


ROUNDS = {
    0: {4: model(10), 7: model(11)},
    2: {7: model(12)},
    5: {1: model(13), 4: model(14)},
}


def record(recorder, rounds):
    """Records some of them."""
    for number in rounds:
        recorder.record(number, model(number), ROUNDS[number])
