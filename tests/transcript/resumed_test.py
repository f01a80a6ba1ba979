"""A recorder that goes on: with the training that it recorded, or with another one."""

import warnings

import numpy as np
import pytest

from fljax import transcript


def _model(place):
    return {"w": np.full(3, place, np.float64)}


def _record(stem, places, first=0):
    """Rounds of one client, from models at these places."""
    recorder = transcript.Recorder(stem)
    for number, place in enumerate(places, first):
        recorder.record(number, _model(place), {7: _model(place + 1)})
    return recorder


@pytest.mark.parametrize("place", [4.0, 3.0, 3.5], ids=["next", "last again", "new"])
def test_the_next_model_or_the_last_one_again_goes_on(tmp_path, place):
    _record(tmp_path / "run", [0.0, 1.0, 2.0, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _record(tmp_path / "run", [place, 1.0], first=4)  # looked at once
    assert found.last_round == 5


@pytest.mark.parametrize("place", [0.0, 2.0])
def test_a_model_of_an_earlier_round_is_another_trainings(tmp_path, place):
    _record(tmp_path / "run", [0.0, 1.0, 2.0, 3.0])
    recorder = transcript.Recorder(tmp_path / "run")
    said = rf"round {place:g} again.*: go on from the model after round 3, or remove"
    with pytest.raises(transcript.TranscriptError, match=said):
        recorder.record(4, _model(place), {7: _model(9.0)})
    assert recorder.last_round == 3


def test_global_models_are_looked_at_too(tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    for number in range(3):
        recorder.record_model(number, _model(number))
    again = transcript.Recorder(tmp_path / "run")
    with pytest.raises(transcript.TranscriptError, match="round 0 again"):
        again.record_model(3, _model(0))


def test_a_model_that_stands_still_goes_on(tmp_path):
    _record(tmp_path / "run", [0.0, 0.0, 0.0])
    assert _record(tmp_path / "run", [0.0, 1.0], first=3).last_round == 4


def test_rounds_of_another_recorder_are_named(tmp_path):
    first, second = (transcript.Recorder(tmp_path / "run") for _ in range(2))
    first.record(0, {"v": np.zeros(2)}, {7: {"v": np.ones(2)}})
    second.record(1, _model(0), {7: _model(1)})
    third = transcript.Recorder(tmp_path / "run")
    with pytest.raises(
        transcript.TranscriptError, match="000000000.npz: 'w' is missing"
    ):
        third.record(2, _model(2), {7: _model(1)})


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_of_16_bits_are_far_away_too(tmp_path):
    def model(place):
        return {"w": np.full(100_000, place, np.float16)}

    recorder = transcript.Recorder(tmp_path / "run")
    for number in range(3):
        recorder.record_model(number, model(2 * number))
    with pytest.warns(UserWarning, match="further from the last one"):
        transcript.Recorder(tmp_path / "run").record_model(3, model(500))


def test_a_model_far_away_is_warned_of(tmp_path):
    _record(tmp_path / "run", [0.0, 1.0, 2.0, 3.0])
    with pytest.warns(UserWarning, match="further from the last one than any before"):
        _record(tmp_path / "run", [30.0], first=4)
