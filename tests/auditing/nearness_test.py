"""Of label distributions: few unlike clients whose labels are read leak, blind guesses do not."""

import itertools

import numpy as np
import pytest

from fljax import verdicts
from fljax.auditing import measuring, nearness
from fljax.verdicts import OTHERS, STRANGERS, Reference

_AUDITS = 400
_ALLOWED = 0.05 + 3 * np.sqrt(0.05 * 0.95 / _AUDITS)
_QUICK = [(3, 2, 0.3), (12, 10, 0.02), (5, 2, 3.0)]
_FEDERATIONS = [
    pytest.param(*each, marks=() if each in _QUICK else pytest.mark.slow)
    for each in itertools.product([2, 3, 5, 12, 40], [2, 10], [0.02, 0.3, 3.0])
]


def _apart(one, other):
    return 0.5 * np.abs(one - other).sum(axis=-1)


def _judged(guess, truth, attacks=1):
    """Beside the mean distribution, others' truths and what the others' mean message says."""
    count = len(truth)
    every = _apart(guess[:, None], truth[None])
    near, others = np.diag(every), every[~np.eye(count, dtype=bool)]
    told = (guess.sum(axis=0) - guess) / (count - 1)
    references = [
        Reference("mean_distribution", _apart(truth.mean(axis=0), truth)),
        Reference(OTHERS, _apart(told, truth)),
        Reference(STRANGERS, nearness.typical(others.reshape(count, -1))),
    ]
    return nearness.judge(near, references, attacks)


@pytest.mark.parametrize(("clients", "classes", "spread"), _FEDERATIONS)
def test_blind_guesses_leak_in_at_most_one_audit_in_twenty(clients, classes, spread):
    rng = np.random.default_rng(clients)
    leaks = {"alike": 0, "noise": 0, "mean": 0, "coin": 0}
    for _ in range(_AUDITS):
        prior = spread * classes * rng.dirichlet(np.full(classes, 5.0))
        truth, alike = rng.dirichlet(prior, (2, clients))
        rows = rng.choice(
            [10, 40, 200], (clients, 1)
        )  # the fewer, the more extreme both
        noise = prior / prior.sum() + rng.normal(size=truth.shape) * 3 / np.sqrt(rows)
        noise = np.maximum(noise, 0) + 1e-9
        guesses = {
            "alike": alike,
            "noise": noise / noise.sum(axis=1, keepdims=True),
            "coin": np.eye(classes)[rng.integers(0, classes, clients)],
            "mean": rng.dirichlet(100 * prior / prior.sum() + 0.1, clients),
        }
        for name, guess in guesses.items():
            leaks[name] += _judged(guess, truth).kind == verdicts.LEAKS
    assert max(leaks.values()) / _AUDITS <= _ALLOWED


def test_shares_of_a_few_unlike_clients_that_are_read_are_a_leak():
    truth = np.array([0.941, 0.45, 0.15, 0.325, 0.383, 0.07])
    read = np.array([0.962, 0.449, 0.163, 0.322, 0.389, 0.09])
    truth, read = (np.stack([1 - each, each], axis=1) for each in (truth, read))
    found = _judged(read, truth, attacks=3)
    assert found.kind == verdicts.LEAKS
    (gain,) = found.to_report
    assert gain.low > 0
    said = nearness.said(gain, has_interval=True)
    assert " times as near as " in said and float(said.split()[0]) > 2
    turned = _judged(truth[:, ::-1], truth)
    assert turned.kind == verdicts.NOT_SHOWN
    assert " times as far as " in nearness.said(turned.gains[0], has_interval=False)


def test_who_is_nearer_of_many_and_far_off_of_one_is_no_leak():
    references = [Reference("mean_distribution", [0.02] * 8 + [0.3] * 2)]
    near = nearness.judge([0.0] * 8 + [0.3] * 2, references)
    assert near.kind == verdicts.LEAKS
    off = nearness.judge([0.0] * 8 + [0.3, 0.5], references)
    assert off.kind == verdicts.NOT_SHOWN


def test_one_client_and_equal_ratios_of_two_tell_nothing():
    base = [Reference(measuring.BASELINES["total_variation"], [0.3])]
    one = nearness.judge([0.0], base)
    assert not one.has_interval
    assert one.beyond.mean == pytest.approx(np.log(0.31 / 0.01))
    two = [base[0]._replace(values=[0.05, 0.05])]
    for distance in (0.04, 0.0400001):
        assert nearness.judge([0.04, distance], two).kind == verdicts.NOT_SHOWN
