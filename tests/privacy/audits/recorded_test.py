"""Canaries in a training that another framework did, here NumPy, and that was recorded."""

import numpy as np
import pytest

from fljax import privacy, transcript

_CANARIES, _WIDTH, _ROUNDS, _CLIP, _DELTA = 120, 150, 5, 1.0, 1e-5


def _gradients(params):
    """Of canaries that each have an input of their own."""
    slopes = params["kernel"][:_CANARIES] - 1
    return {"kernel": np.sign(slopes)[:, None] * np.eye(_CANARIES, _WIDTH)}


def _record(stem, sigma):
    rng, kernel = np.random.default_rng(1), np.zeros(_WIDTH)
    with transcript.Recorder(stem) as recorder:
        there = privacy.plant_canaries(recorder, _CANARIES, seed=3)
        for number in range(_ROUNDS):
            sent = {"kernel": kernel}
            total = _gradients(sent)["kernel"][there].sum(axis=0)
            noise = sigma * _CLIP * rng.normal(size=_WIDTH)
            kernel = kernel - 0.01 * (total + noise)
            recorder.record(number, sent, {0: {"kernel": kernel}})
    return there


def test_canaries_of_a_recording_are_found_and_the_bound_holds(tmp_path):
    there = _record(tmp_path / "seen", sigma=0.6)
    seen, about = transcript.load(tmp_path / "seen")
    coins = privacy.planted(about)
    np.testing.assert_array_equal(coins, there)
    found = privacy.audit_transcript(seen, 0, _gradients, coins, delta=_DELTA)
    assert found.auc > 0.9
    assert 1 < found.epsilon <= privacy.epsilon(0.6, 1.0, _ROUNDS, _DELTA, "pld")


def test_nothing_is_found_where_the_coins_were_others(tmp_path):
    _record(tmp_path / "seen", sigma=0.6)
    seen, _ = transcript.load(tmp_path / "seen")
    coins = np.random.default_rng(9).random(_CANARIES) < 0.5
    found = privacy.audit_transcript(seen, 0, _gradients, coins, delta=_DELTA)
    assert found.epsilon == 0
    with pytest.raises(ValueError, match="expected those of 3 canaries, got 120"):
        privacy.audit_transcript(seen, 0, _gradients, coins[:3], delta=_DELTA)


def test_a_recording_without_canaries():
    with pytest.raises(ValueError, match="planted with plant_canaries"):
        privacy.planted({"learning_rate": 0.1})


@pytest.mark.parametrize(
    "told", [{"count": 4}, [1, 2], {"count": -1, "seed": 0}, {"count": 2.5, "seed": 0}],
    ids=str,
)  # fmt: skip
def test_a_damaged_description_of_canaries(told):
    with pytest.raises(
        ValueError, match=r"about: expected count|count: expected a whole"
    ):
        privacy.planted({"canaries": told})


def test_gradients_and_messages_that_do_not_fit_are_named(tmp_path):
    coins = _record(tmp_path / "seen", sigma=0.6)
    seen, _ = transcript.load(tmp_path / "seen")

    def audited(gradients=_gradients, seen=seen, delta=_DELTA):
        return privacy.audit_transcript(seen, 0, gradients, coins, delta=delta)

    with pytest.raises(
        ValueError, match=rf"expected arrays \[M, {_WIDTH}\], got shapes"
    ):
        audited(lambda params: {"kernel": np.ones(_WIDTH)})
    with pytest.raises(
        ValueError, match="gradients of client 0, its number 0: expected f"
    ):
        audited(lambda params: {"kernel": np.full((_CANARIES, _WIDTH), np.inf)})
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\)"):
        audited(delta=0.0)
    damaged = {"kernel": np.array(seen.delta["kernel"])}
    damaged["kernel"][2, ..., 0] = np.inf
    with pytest.raises(ValueError, match="message of client 0, its number 2"):
        audited(seen=seen._replace(delta=damaged))
