"""Arrays of a transcript: what does not fit together is refused."""

import numpy as np
import pytest

from fljax import transcript
from fljax.transcript import TranscriptError, arrays
from fljax.types import Transcript


@pytest.mark.parametrize("described", [False, True])
def test_an_extra_array_is_refused(saved, described):
    arrays = saved.arrays()
    extra = arrays | {"delta/other": np.zeros((2, 2), np.float32)}
    saved.forge(extra, None if described else saved.specs(arrays))
    saved.refused(".json" if described else ".npz")


def test_a_missing_array_is_refused(saved):
    arrays = saved.arrays()
    specs = saved.specs(arrays)
    del arrays["delta/dense/bias"]
    saved.forge(arrays, specs)
    saved.refused(".npz")


@pytest.mark.parametrize(
    "changes",
    [
        {"delta/dense/kernel": np.zeros((2, 2, 4, 1), np.float32)},
        {"params/dense/kernel": np.zeros((2, 4, 1), np.float32)},
        {"delta/dense/bias": np.zeros((3, 2, 1), np.float32)},
        {"delta/dense/bias": np.zeros((2, 3, 1), np.float32)},
        {"params/dense/bias": np.zeros((1, 1), np.float32)},
        {"client": np.zeros((3, 2), np.int32)},
        {"client": np.zeros(2, np.int32)},
        {"client": np.zeros((2, 2), np.float32)},
        {"round": np.zeros((2, 1), np.int32)},
        {"round": np.int32(2)},
        {"round": np.array([0.0, 5.0], np.float32)},
        {"round": np.array([5, 5], np.int32)},
        {"round": np.array([5, 0], np.uint32)},
        {"client": np.full((2, 2), -2, np.int32)},
        {"params/dense/bias": np.zeros((2, 1), np.int32)},
        {"params/dense/bias": np.float32(0)},
        {"params/other": np.zeros((2, 3), np.float32)},
        {"params": np.zeros((2, 3), np.float32), "delta": np.zeros((2, 2, 3))},
        {
            "params/dense": np.zeros((2, 3), np.float32),
            "delta/dense": np.zeros((2, 2, 3), np.float32),
        },
    ],
    ids=[
        "delta of another shape",
        "params of another shape",
        "delta of more rounds",
        "delta of more clients",
        "params of fewer rounds",
        "clients of more rounds",
        "clients without slots",
        "clients that are no integers",
        "rounds in a table",
        "rounds as a number",
        "rounds that are no integers",
        "a round twice",
        "rounds that go back",
        "clients below -1",
        "parameter of integers",
        "parameter as a number",
        "params without delta",
        "parameters without a name",
        "layer that is also an array",
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(saved, changes):
    saved.forge(saved.arrays() | changes)
    saved.refused(".json")


@pytest.mark.parametrize("name", ["round", "client"])
def test_rounds_and_clients_are_required(saved, name):
    arrays = saved.arrays()
    del arrays[name]
    saved.forge(arrays)
    saved.refused(".json")


def test_a_transcript_without_rounds_is_refused(saved):
    saved.forge({name: array[:0] for name, array in saved.arrays().items()})
    saved.refused(".json")


def test_a_transcript_without_parameters_is_refused(saved):
    arrays = saved.arrays()
    saved.forge({name: arrays[name] for name in ("round", "client")})
    saved.refused(".json")


def test_a_delta_without_its_parameter_is_refused(saved):
    arrays = saved.arrays()
    del arrays["params/dense/bias"]
    saved.forge(arrays)
    saved.refused(".json")


def test_a_parameter_may_be_one_number(tmp_path):
    with transcript.Recorder(tmp_path / "seen", {}) as recorder:
        for round_, clients in ((0, (3,)), (1, (3, 4))):
            sent = {"w": np.ones(3), "b": np.float32(round_)}
            back = {id_: {"w": np.ones(3), "b": np.float32(id_)} for id_ in clients}
            recorder.record(round_, sent, back)
    found, _ = transcript.load(tmp_path / "seen")
    np.testing.assert_array_equal(found.params["b"], [0, 1])
    np.testing.assert_array_equal(found.delta["b"], [[-3, 0], [-2, -3]])


def test_layers_in_a_list_have_their_place_for_a_name():
    one, two = np.zeros((2, 3)), np.ones(3)
    found = arrays.named({"dense": [{"w": one}, {"w": two}], "out": (two, one)}, "sent")
    assert {name: array.shape for name, array in found.items()} == {
        "dense/0/w": (2, 3), "dense/1/w": (3,), "out/0": (3,), "out/1": (2, 3),
    }  # fmt: skip
    (whole,) = arrays.named({"w": [[0.0, 1.0], [2.0, 3.0]]}, "sent").values()
    assert whole.shape == (2, 2)  # an array all the same


def test_a_truth_value_is_no_client(tmp_path):
    recorder, model = transcript.Recorder(tmp_path / "seen"), {"w": np.ones(2)}
    with pytest.raises(TranscriptError, match="expected client ids .* got .True"):
        recorder.record(0, model, {True: model})


def test_a_module_in_place_of_its_state_is_named():
    class Net:
        pass

    with pytest.raises(transcript.TranscriptError, match="got Net; a module has one"):
        transcript.from_torch(Net())


def test_two_tensors_of_one_name_are_refused():
    state = {"a.kernel": np.zeros((3, 2)), "a.weight": np.zeros((2, 3))}
    with pytest.raises(
        TranscriptError, match="'a.weight' would be a second 'a/kernel'"
    ):
        transcript.from_torch(state)


def test_ids_are_signed_whatever_they_were(tmp_path):
    largest = 2**63 - 1
    params = {"w": np.zeros((1, 2))}
    client = np.array([[largest, largest - 1]], np.uint64)
    delta = {"w": np.zeros((1, 2, 2))}
    seen = Transcript(np.zeros(1, np.uint64), client, params, delta)
    transcript.save(tmp_path / "run", seen)
    found, _ = transcript.load(tmp_path / "run")
    assert found.client.dtype == found.round.dtype == np.int64
    assert found.client.tolist() == [[largest, largest - 1]]
    one = np.intersect1d(found.client, np.array([largest - 1]))
    assert one.tolist() == [largest - 1]


def test_what_is_wider_than_any_accelerator_has_is_recorded_in_64_bits(tmp_path):
    sent = {"w": np.full(3, 0.5, np.longdouble)}
    with transcript.Recorder(tmp_path / "run") as recorder:
        recorder.record(0, sent, {0: {"w": sent["w"] + 1}})
    found, _ = transcript.load(tmp_path / "run")
    assert found.params["w"].dtype == found.delta["w"].dtype == np.float64
    np.testing.assert_array_equal(found.delta["w"][0, 0], [-1.0] * 3)
