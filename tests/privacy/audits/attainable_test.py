"""What messages hold of a canary, and what so many trainings could prove of it."""

import numpy as np
import pytest
from scipy import stats

from fljax import privacy
from fljax.privacy.audits import attainable
from fljax.privacy.audits.chances import Inclusions

_SIGMA, _RATE, _STEPS, _DELTA = 1.0, 0.3, 3, 0.1


def _epsilon(often, sigma=_SIGMA):
    return attainable.epsilon_of(attainable.in_messages(sigma, often), _DELTA)


@pytest.mark.slow
def test_sums_of_drawn_steps_hold_less_than_their_steps():
    """Against the density of one message, written out."""
    odds = stats.binom.pmf(np.arange(_STEPS + 1), _STEPS, _RATE)
    spread = _SIGMA * _STEPS**0.5
    found = _epsilon(Inclusions(_STEPS, _RATE, np.ones(1, bool)))
    y, step = np.linspace(-20, 30, 100_001, retstep=True)
    with_ = stats.norm.pdf(y[:, None], np.arange(_STEPS + 1), spread) @ odds
    without = stats.norm.pdf(y, 0, spread)
    delta = np.sum(np.maximum(with_ - np.exp(found) * without, 0)) * step
    assert delta == pytest.approx(_DELTA, rel=1e-2)
    accounted = privacy.epsilon(_SIGMA, _RATE, _STEPS, _DELTA, "pld")
    assert 0 < found < 0.9 * accounted


def test_messages_of_one_step_hold_what_is_accounted():
    often = Inclusions(1, 1.0, np.ones(4, bool))
    accounted = privacy.epsilon(2.0, 1.0, 4, _DELTA, "pld")
    assert _epsilon(often, 2.0) == pytest.approx(accounted, abs=2e-4)
    profile = attainable.in_messages(2.0, often)
    few, many = (attainable.reachable(profile, n, delta=_DELTA) for n in (400, 4000))
    assert 0 < few < many < accounted
