"""The file format of a transcript: exact, plain, and complete or refused."""

import hashlib
import json

import jax.numpy as jnp
import numpy as np
import pytest

from fljax import transcript
from fljax.types import Transcript


def _bits(tree):
    dense = tree["dense"]
    return {name: (leaf.dtype, leaf.tobytes()) for name, leaf in dense.items()}


def test_what_is_loaded_is_bit_for_bit_what_was_saved(original, saved):
    found, about = saved.load()
    expected = original()
    assert about == saved.about
    assert _bits(found.params) == _bits(expected.params)
    assert _bits(found.delta) == _bits(expected.delta)
    for name in ("round", "client"):
        a, b = getattr(found, name), getattr(expected, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_arrays_on_a_device_save_like_numpy_ones(tmp_path):
    one = Transcript(
        jnp.arange(1),
        jnp.zeros((1, 1), int),
        {"w": jnp.ones((1, 2))},
        {"w": jnp.ones((1, 1, 2))},
    )
    transcript.save(tmp_path / "run", one)
    found, about = transcript.load(tmp_path / "run")
    assert about == {}
    np.testing.assert_array_equal(found.delta["w"], [[[1, 1]]])


def test_messages_of_half_precision_are_saved_as_what_numpy_has(tmp_path):
    half = jnp.full((1, 1, 2), 1 / 3, jnp.bfloat16)
    one = Transcript(np.arange(1), np.zeros((1, 1), int), {"w": half[0]}, {"w": half})
    transcript.save(tmp_path / "run", one)
    found, _ = transcript.load(tmp_path / "run")
    np.testing.assert_array_equal(found.delta["w"], np.asarray(half, np.float32))


def test_a_dot_in_the_name_is_kept(original, tmp_path):
    transcript.save(tmp_path / "lr0.1", original())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lr0.1.json", "lr0.1.npz"]
    transcript.load(tmp_path / "lr0.1")


def test_tuples_come_back_as_dicts_keyed_by_position(tmp_path):
    one = Transcript(
        np.arange(1), np.zeros((1, 1), int), (np.ones((1, 2)),), (np.ones((1, 1, 2)),)
    )
    transcript.save(tmp_path / "run", one)
    found, _ = transcript.load(tmp_path / "run")
    np.testing.assert_array_equal(found.params["0"], [[1, 1]])


def test_numpy_and_json_alone_can_read_a_transcript(saved):
    description = json.loads(saved.description.read_text())
    arrays = np.load(saved.archive, allow_pickle=False)
    assert (description["format"], description["version"]) == ("fljax-transcript", 1)
    assert description["about"] == saved.about
    content = saved.archive.read_bytes()
    assert description["sha256"] == hashlib.sha256(content).hexdigest()
    assert (
        set(arrays)
        == set(description["arrays"])
        == {
            "round",
            "client",
            "params/dense/kernel",
            "params/dense/bias",
            "delta/dense/kernel",
            "delta/dense/bias",
        }
    )
    for name, spec in description["arrays"].items():
        assert list(arrays[name].shape) == spec["shape"]
        assert arrays[name].dtype == np.dtype(spec["dtype"])


def test_saving_again_replaces_the_earlier_transcript(original, saved):
    other = original()._replace(round=np.array([1, 2], np.int32))
    transcript.save(saved.stem, other)
    np.testing.assert_array_equal(saved.load()[0].round, [1, 2])


def test_numbers_of_numpy_describe_a_transcript(original, saved):
    transcript.save(saved.stem, original(), {"learning_rate": np.float32(0.5)})
    assert saved.load()[1] == {"learning_rate": 0.5}


def test_a_description_that_json_cannot_hold_leaves_the_earlier_one(original, saved):
    other = original()._replace(round=np.array([1, 2], np.int32))
    with pytest.raises(ValueError, match="about: .* is nothing that JSON can hold"):
        transcript.save(saved.stem, other, {"optimiser": object()})
    np.testing.assert_array_equal(saved.load()[0].round, original().round)


def test_two_arrays_of_one_name_are_refused(original, tmp_path):
    kernel = np.ones((2, 1), np.float32)
    params = {"a/b": kernel, "a": {"b": 2 * kernel}}
    with pytest.raises(ValueError, match="params: a/b is the name of two arrays"):
        transcript.save(tmp_path / "seen", original()._replace(params=params))
    assert not list(tmp_path.iterdir())


def test_the_home_folder_is_meant_by_its_sign(original, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    transcript.save("~/seen", original())
    assert {path.name for path in tmp_path.iterdir()} == {"seen.npz", "seen.json"}
    assert transcript.load("~/seen")[0].round.shape == (2,)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_missing_file_is_named(saved, suffix):
    saved.stem.with_suffix(suffix).unlink()
    saved.refused(suffix)


def test_a_flipped_bit_is_found(saved):
    path = saved.archive
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    saved.refused(".npz")


@pytest.mark.parametrize("honest", [False, True], ids=["old sha256", "new sha256"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_archive_is_found(saved, share, honest):
    path = saved.archive
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    if honest:
        saved.describe()
    saved.refused(".npz")


def test_arrays_in_column_order_and_of_any_integer_type_pass(saved):
    arrays = saved.arrays()
    kernel = np.asfortranarray(arrays["delta/dense/kernel"])
    changes = {"delta/dense/kernel": kernel, "round": np.array([1, 2], np.uint8)}
    saved.forge(arrays | changes | {"client": np.array([[1, 2], [2, 1]], np.uint64)})
    found = saved.load()[0].delta["dense"]["kernel"]
    np.testing.assert_array_equal(found, kernel)


def test_values_that_are_not_finite_are_left_to_the_reader(saved):
    bias = np.array([[np.nan], [np.inf]], np.float32)
    saved.forge(saved.arrays() | {"params/dense/bias": bias})
    found = saved.load()[0].params["dense"]["bias"]
    np.testing.assert_array_equal(found, bias)


def test_one_client_twice_in_a_round_is_refused(saved):
    clients = np.array([[1, -1], [2, 2]])
    saved.forge(saved.arrays() | {"client": clients})
    with pytest.raises(transcript.TranscriptError, match="client 2 twice in round 5"):
        saved.load()


def test_ids_that_no_signed_integer_holds_are_refused(saved):
    clients = np.array([[1, 2], [2, 2**63]], np.uint64)
    saved.forge(saved.arrays() | {"client": clients})
    said = "'client' has entries that are neither an id < 2.63 nor -1"
    with pytest.raises(transcript.TranscriptError, match=said):
        saved.load()
    saved.forge(saved.arrays() | {"client": clients - np.uint64(1)})
    assert saved.load()[0].client.max() == 2**63 - 1


def test_negative_rounds_are_refused(saved):
    saved.forge(saved.arrays() | {"round": np.array([-1, 2])})
    with pytest.raises(transcript.TranscriptError, match="is negative"):
        saved.load()
