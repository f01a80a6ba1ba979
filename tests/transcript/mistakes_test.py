"""What a recorder refuses of whoever uses it for the first time."""

import numpy as np
import pytest

from fljax import transcript


def _model(number):
    return {"w": np.full(3, float(number), np.float32)}


def test_a_finished_recording_is_not_overwritten(tmp_path):
    with transcript.Recorder(tmp_path / "run") as recorder:
        recorder.record(0, _model(0), {0: _model(1)})
    before = (tmp_path / "run.npz").read_bytes()
    with pytest.raises(transcript.TranscriptError, match="run.npz is a finished rec"):
        transcript.Recorder(tmp_path / "run")
    assert (tmp_path / "run.npz").read_bytes() == before


def test_what_clients_returned_comes_by_their_ids(tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    with pytest.raises(transcript.TranscriptError) as stopped:
        recorder.record(0, _model(0), [_model(1)])
    assert str(stopped.value) == "round 0: expected {client id: model}, got list"
