"""What a recorder refuses of whoever uses it for the first time."""

import numpy as np
import pytest

from fljax import privacy, transcript
from fljax.types import NoiseSpec


def _model(number):
    return {"w": np.full(3, float(number), np.float32)}


def test_a_finished_recording_is_not_overwritten(tmp_path):
    with transcript.Recorder(tmp_path / "run") as recorder:
        recorder.record(0, _model(0), {0: _model(1)})
    before = (tmp_path / "run.npz").read_bytes()
    with pytest.raises(transcript.TranscriptError, match="run.npz is a finished rec"):
        transcript.Recorder(tmp_path / "run")
    assert (tmp_path / "run.npz").read_bytes() == before


@pytest.mark.parametrize("suffix", ["", ".npz", ".json"])
def test_the_suffix_of_a_file_names_the_same_recording(tmp_path, suffix):
    with transcript.Recorder(f"{tmp_path}/run.v2{suffix}") as recorder:
        recorder.record(0, _model(0), {0: _model(1)})
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["run.v2.json", "run.v2.npz"]
    seen, _ = transcript.load(f"{tmp_path}/run.v2{suffix}")
    transcript.save(f"{tmp_path}/again{suffix}", seen)
    assert (tmp_path / "again.npz").exists()


def test_what_clients_returned_comes_by_their_ids(tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    with pytest.raises(transcript.TranscriptError) as stopped:
        recorder.record(0, _model(0), [_model(1)])
    assert str(stopped.value) == "round 0: expected {client id: model}, got list"


def test_names_that_no_file_can_hold_are_refused_with_the_first_round(tmp_path):
    one = np.ones(2, np.float32)
    for model, why in (
        ({"a": one, "a/b": one}, "both array and folder"),
        ({"a\nb": one}, "control characters"),
        ({"a/b": one, "a": {"b": one}}, "'a/b' is the name of two arrays"),
    ):
        recorder = transcript.Recorder(tmp_path / "run")
        with pytest.raises(transcript.TranscriptError, match=f"round 0.*{why}"):
            recorder.record(0, model, {0: model})
        assert not list((tmp_path / "run.rounds").glob("*.npz"))


def test_a_round_that_cannot_be_charged_is_not_written(tmp_path):
    noise = NoiseSpec(np.array([2.0, 2.0]), 1.0, 0.5, "leave the row out")
    ledger = privacy.Ledger(noise, delta=1e-5)
    recorder = transcript.Recorder(tmp_path / "run", ledger=ledger)
    with pytest.raises(ValueError, match="client: expected an id below 2"):
        recorder.record(0, _model(0), {5: _model(1)})
    assert not list((tmp_path / "run.rounds").glob("*.npz"))
    recorder.record(0, _model(0), {1: _model(1)})
    assert ledger.rounds(1) == 1


def test_numbers_of_rounds_are_whole_numbers_of_any_kind(tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    for wrong in (0.0, "0", None, True, 2**31, 2**70):
        with pytest.raises(
            transcript.TranscriptError, match="round: expected 0 or more"
        ):
            recorder.record(wrong, _model(0), {0: _model(1)})
    for number, round_ in enumerate((np.int64(0), np.asarray(1), 2)):
        recorder.record(round_, _model(number), {0: _model(number + 1)})
    assert recorder.last_round == 2


def test_rounds_stand_in_the_order_of_their_numbers(tmp_path):
    with transcript.Recorder(tmp_path / "run") as recorder:
        for number in (999_999_999, 1_000_000_000):
            recorder.record(number, _model(0), {0: _model(number % 7)})
    seen, _ = transcript.load(tmp_path / "run")
    assert seen.round.tolist() == [999_999_999, 1_000_000_000]


@pytest.mark.parametrize(
    ("name", "arrays", "said"),
    [
        ("1", {"client": np.zeros(1, int)}, "each parameter with a delta"),
        ("1", {"params/a": np.zeros(2), "delta/a": np.zeros((1, 2))}, "'client'"),
        ("last", {"client": np.zeros(1, int)}, "the number of a round as its name"),
    ],
    ids=["no model", "nobody", "no number"],
)
def test_a_round_that_is_none_is_named(name, arrays, said, tmp_path):
    (tmp_path / "run.rounds").mkdir()
    np.savez(tmp_path / "run.rounds" / f"{name}.npz", **arrays)
    with pytest.raises(transcript.TranscriptError, match=f"{name}.npz: .*{said}"):
        transcript.Recorder(tmp_path / "run")


def test_rounds_of_other_kinds_are_not_joined(tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    for number in (0, 2):
        recorder.record(number, _model(number), {7: _model(1)})
    path = tmp_path / "run.rounds" / "000000002.npz"
    with np.load(path) as stored:
        sums = {**stored, "member": stored["client"][:, None]}
    np.savez(path, **sums, share=np.ones(sums["member"].shape))
    with pytest.raises(transcript.TranscriptError, match="2.npz: .*the rounds before"):
        recorder.finish()


def test_two_recorders_do_not_mix_two_trainings(tmp_path):
    one, other = (transcript.Recorder(tmp_path / "run") for _ in range(2))
    one.record(0, _model(0), {0: _model(1)})
    with pytest.raises(transcript.TranscriptError, match="from another recorder"):
        other.record(0, _model(5), {0: _model(6)})
    assert other.last_round == -1
