"""Rounds of somebody else's training, recorded one by one."""

import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from fljax import transcript
from fljax.types import Transcript
from tests.transcript.rounds import ROUNDS, model, record


def test_recorded_rounds_are_the_transcript_that_was_seen(tmp_path):
    with transcript.Recorder(tmp_path / "seen", {"batch_size": 8}) as recorder:
        record(recorder, ROUNDS)
        assert recorder.last_round == 5
    found, about = transcript.load(tmp_path / "seen")
    assert about == {"batch_size": 8}
    np.testing.assert_array_equal(found.round, [0, 2, 5])
    np.testing.assert_array_equal(found.client, [[4, 7], [7, -1], [1, 4]])
    hers = transcript.exchange(found, 7)
    np.testing.assert_array_equal(
        hers.params["dense"]["kernel"],
        [model(0)["dense"]["kernel"], model(2)["dense"]["kernel"]],
    )
    returned = _returned_biases(hers)
    np.testing.assert_allclose(returned[0], model(11)["dense"]["bias"])
    np.testing.assert_allclose(returned[1], model(12)["dense"]["bias"])
    assert {path.name for path in tmp_path.iterdir()} == {"seen.npz", "seen.json"}


def _returned_biases(exchange):
    return exchange.params["dense"]["bias"] - exchange.delta["dense"]["bias"]


def test_save_writes_what_was_recorded(tmp_path):
    with transcript.Recorder(tmp_path / "one") as recorder:
        record(recorder, ROUNDS)
    found, about = transcript.load(tmp_path / "one")
    transcript.save(tmp_path / "two", Transcript(*found), about)
    again, _ = transcript.load(tmp_path / "two")
    for name in ("round", "client"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    np.testing.assert_array_equal(
        found.delta["dense"]["kernel"], again.delta["dense"]["kernel"]
    )


def test_it_goes_on_after_a_crash_between_rounds(tmp_path):
    with pytest.raises(RuntimeError), transcript.Recorder(tmp_path / "run") as crashed:
        record(crashed, [0, 2])
        raise RuntimeError("power cut")
    assert not (tmp_path / "run.npz").exists()
    (tmp_path / "run.rounds" / ".000000005.npz.tmp").write_bytes(b"half a round")
    with transcript.Recorder(tmp_path / "run") as recorder:
        assert recorder.last_round == 2
        record(recorder, [5])
    with transcript.Recorder(tmp_path / "whole") as recorder:
        record(recorder, ROUNDS)
    assert (tmp_path / "run.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_what_is_added_to_about_survives_a_crash(tmp_path):
    crashed = transcript.Recorder(tmp_path / "run", {"batch_size": 8, "run": 1})
    crashed.describe(nodes={"7": 0})
    record(crashed, [0])
    with pytest.warns(UserWarning, match="batch_size was 8 .*, is not said now"):
        again = transcript.Recorder(tmp_path / "run", {"run": 2})
    assert again.about == {"batch_size": 8, "run": 2, "nodes": {"7": 0}}
    with pytest.raises(transcript.TranscriptError, match="nothing that JSON can hold"):
        again.describe(nodes=object())
    again.finish()
    _, about = transcript.load(tmp_path / "run")
    assert about == {"batch_size": 8, "run": 2, "nodes": {"7": 0}}
    assert {path.name for path in tmp_path.iterdir()} == {"run.npz", "run.json"}


@pytest.mark.parametrize("text", ["{", "[]", "\xff"])
def test_a_description_that_is_none_is_named(text, tmp_path):
    (tmp_path / "run.rounds").mkdir()
    (tmp_path / "run.rounds" / "about.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(transcript.TranscriptError, match="about.json"):
        transcript.Recorder(tmp_path / "run")


def test_a_description_is_on_disk_before_the_first_round(tmp_path):
    about = {"learning_rate": np.float32(0.5), "sizes": np.array([3, 4])}
    transcript.Recorder(tmp_path / "run", about)  # and the training crashes
    with transcript.Recorder(tmp_path / "run") as recorder:
        record(recorder, ROUNDS)
    _, found = transcript.load(tmp_path / "run")
    assert found == {"learning_rate": 0.5, "sizes": [3, 4]}


def test_what_was_said_of_a_training_without_a_round_is_forgotten(tmp_path):
    crashed = transcript.Recorder(tmp_path / "run", {"momentum": 0.9, "batch_size": 8})
    crashed.describe(flower_nodes={"17": 0})
    again = transcript.Recorder(tmp_path / "run", {"batch_size": 8})
    assert again.about == {"batch_size": 8}


def test_bfloat16_is_kept_as_float32(tmp_path):
    half = {"w": jnp.ones(3, jnp.bfloat16)}
    with transcript.Recorder(tmp_path / "run") as recorder:
        recorder.record(0, half, {0: half})
    found, _ = transcript.load(tmp_path / "run")
    assert found.params["w"].dtype == np.float32


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(transcript.TranscriptError, match="file/run.rounds: Not a dir"):
        transcript.Recorder(tmp_path / "file" / "run")


def test_flat_names_and_nested_dicts_are_the_same(tmp_path):
    flat = {"dense/kernel": np.zeros((2, 3)), "dense/bias": np.zeros(3)}
    recorder = transcript.Recorder(tmp_path / "run")
    recorder.record(0, flat, {3: model(1)})
    recorder.finish()
    found, _ = transcript.load(tmp_path / "run")
    np.testing.assert_array_equal(
        found.delta["dense"]["kernel"][0, 0], -model(1)["dense"]["kernel"]
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ((2, model(0), {1: model(1)}), "round: expected more than 2, got 2"),
        ((3, model(0), {}), "round 3: expected at least one client"),
        ((3, {}, {1: model(1)}), "round 3, sent: expected arrays by name"),
        ((3, model(0, 4), {1: model(1)}), r"round 3, sent: 'dense/\w+' has the shape"),
        ((3, model(0), {9: model(1, 5)}), "round 3, client 9: 'dense/"),
        ((3, model(0), {-1: model(1)}), "round 3: expected client ids that are"),
        ((3, model(0), {"alice": model(1)}), "integers from 0 .*, got .'alice'"),
        ((3, model(0), {2**63: model(1)}), "integers from 0 to 2.63"),
        ((3, [np.zeros(3)], {1: model(1)}), "expected arrays by name, got list"),
        ((3, model(0), {1: {"dense": {"kernel": np.zeros((2, 3))}}}), "'dense/bias'"),
        ((3, {"a": np.arange(3)}, {1: model(1)}), "floating point by name, got none"),
        ((3, {"a": np.array(["b"])}, {1: model(1)}), "sent: 'a' is of type <U1"),
    ],
    ids=[
        "old round", "nobody", "no model", "another model", "another answer",
        "negative id", "text id", "large id", "no names", "half an answer", "integers", "texts",
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_and_not_written(call, said, tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    record(recorder, [0, 2])
    before = sorted(path.name for path in (tmp_path / "run.rounds").iterdir())
    with pytest.raises(transcript.TranscriptError, match=said):
        recorder.record(*call)
    after = sorted(path.name for path in (tmp_path / "run.rounds").iterdir())
    assert after == before
    assert recorder.last_round == 2


def test_no_round_is_no_transcript(tmp_path):
    with pytest.raises(transcript.TranscriptError, match="no round was recorded"):
        transcript.Recorder(tmp_path / "run").finish()


def test_a_pickled_round_is_refused(tmp_path):
    (tmp_path / "run.rounds").mkdir()
    path = tmp_path / "run.rounds" / "000000001.npz"
    np.savez(path, client=np.array([{}], object), allow_pickle=True)
    with pytest.raises(transcript.TranscriptError, match="000000001.npz"):
        transcript.Recorder(tmp_path / "run")


def test_recording_touches_no_device(tmp_path):
    code = (
        "import sys, numpy as np\n"
        "from fljax import transcript\n"
        "with transcript.Recorder(sys.argv[1]) as r:\n"
        "    r.record(0, {'a': np.zeros(2)}, {0: {'a': np.ones(2)}})\n"
        "import jax._src.xla_bridge as bridge\n"
        "assert not bridge._backends\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)
    assert (tmp_path / "run.json").exists()


def test_a_negative_round_is_refused(tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    with pytest.raises(
        transcript.TranscriptError, match=r"a whole number below 2\^31, got -3"
    ):
        recorder.record(-3, {"w": np.zeros(2)}, {0: {"w": np.zeros(2)}})


def test_counters_are_left_out_with_one_word(tmp_path):
    def with_counter(number, kind):
        return model(number) | {"norm": {"seen": np.array(number, kind)}}

    recorder = transcript.Recorder(tmp_path / "run")
    with pytest.warns(UserWarning, match="run: arrays of integers .*: norm/seen"):
        recorder.record(0, with_counter(0, int), {4: with_counter(10, int)})
    recorder.record(
        1, with_counter(1, float), {4: with_counter(11, bool)}
    )  # an average
    again = transcript.Recorder(tmp_path / "run")
    again.record(2, with_counter(2, float), {4: with_counter(12, float)})
    again.finish()
    found, about = transcript.load(tmp_path / "run")
    assert about["left_out"] == ["norm/seen"]
    assert found.params.keys() == {"dense"}
    assert len(found.round) == 3


def test_who_sends_integers_where_there_were_none_is_named(tmp_path):
    recorder = transcript.Recorder(tmp_path / "run")
    record(recorder, [0])
    name = min(recorder._shapes)
    wrong = {
        k: np.zeros(v, int if k == name else float) for k, v in recorder._shapes.items()
    }
    with pytest.raises(
        transcript.TranscriptError,
        match=f"round 1, client 4: '{name}' is of integers, of floating point in the",
    ):
        recorder.record(1, model(1), {4: wrong})


def test_a_recorder_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorder = transcript.Recorder("run")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    record(recorder, [0])
    recorder.finish()
    assert (tmp_path / "run.npz").exists()
