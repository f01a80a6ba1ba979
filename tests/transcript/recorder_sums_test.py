"""Rounds of which only sums or global models are seen, and what a ledger is charged."""

import numpy as np
import pytest

from fljax import privacy, transcript
from fljax.types import NoiseSpec
from tests.transcript.rounds import model, record


def test_sums_are_recorded_with_who_is_in_them(tmp_path):
    with transcript.Recorder(tmp_path / "sums") as recorder:
        recorder.record_sums(0, model(0), [({4: 30, 7: 10}, model(20))])
        recorder.record_sums(1, model(1), [({1: 5}, model(21)), ({9: 8}, model(22))])
    found, _ = transcript.load(tmp_path / "sums")
    np.testing.assert_array_equal(found.client, [[0, -1], [0, 1]])
    np.testing.assert_array_equal(
        found.member, [[[4, 7], [-1, -1]], [[1, -1], [9, -1]]]
    )
    np.testing.assert_allclose(found.share[0, 0], [0.75, 0.25])
    mean = found.params["dense"]["bias"] - found.delta["dense"]["bias"][:, 0]
    np.testing.assert_allclose(mean, [model(n)["dense"]["bias"] for n in (20, 21)])


def test_global_models_are_recorded_alone(tmp_path):
    transcript.Recorder(tmp_path / "models").record_model(0, model(0))
    with transcript.Recorder(tmp_path / "models") as recorder:
        recorder.record_model(3, model(3))
    found, _ = transcript.load(tmp_path / "models")
    assert found.client.shape == (2, 0) and found.member is None
    np.testing.assert_array_equal(
        found.params["dense"]["bias"], [model(n)["dense"]["bias"] for n in (0, 3)]
    )


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (lambda r: r.record_model(1, model(1)), "what the rounds before have"),
        (lambda r: r.record(1, model(1), {1: model(2)}), "what the rounds before"),
        (lambda r: r.record_sums(1, model(1), []), "at least one sum"),
        (lambda r: r.record_sums(1, model(1), [({1: 0}, model(2))]), "above 0"),
        (
            lambda r: r.record_sums(1, model(1), [({-1: 2}, model(2))]),
            "integers from 0",
        ),
        (lambda r: r.record_sums(1, model(1), [([5, 6], model(2))]), "a pair"),
        (lambda r: r.record_sums(1, model(1), ({0: 5}, model(2))), "a list of sums"),
    ],
)
def test_what_is_no_round_of_sums_is_refused(tmp_path, record, why):
    recorder = transcript.Recorder(tmp_path / "sums")
    recorder.record_sums(0, model(0), [({4: 30, 7: 10}, model(20))])
    with pytest.raises(transcript.TranscriptError, match=why):
        record(recorder)
    assert recorder.last_round == 0


def _ledger():
    return privacy.Ledger(NoiseSpec(4.0, 1.0, 0.5, "leave a row out"), delta=1e-5)


def test_a_ledger_is_charged_with_every_round_also_after_a_crash(tmp_path):
    crashed = transcript.Recorder(tmp_path / "seen", ledger=_ledger())
    record(crashed, [0, 2])
    ledger = _ledger()
    with transcript.Recorder(tmp_path / "seen", ledger=ledger) as recorder:
        record(recorder, [5])
    _, about = transcript.load(tmp_path / "seen")
    assert about["privacy"]["rounds"] == {"1": 1, "4": 2, "7": 2}
    assert about["privacy"]["epsilon"]["7"] == privacy.epsilon(4.0, 0.5, 2, 1e-5)
    assert about["privacy"] == ledger.statement()


def test_a_ledger_is_charged_with_the_members_of_sums_and_asks_for_them(tmp_path):
    ledger = _ledger()
    recorder = transcript.Recorder(tmp_path / "seen", ledger=ledger)
    with pytest.raises(transcript.TranscriptError, match="does not say to whom"):
        recorder.record_model(0, model(0))
    recorder.record_sums(0, model(0), [({4: 2.0, 7: 1.0}, model(1))])
    assert [ledger.rounds(client) for client in (1, 4, 7)] == [0, 1, 1]
