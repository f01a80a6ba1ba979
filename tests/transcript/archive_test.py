"""The file format of a transcript: exact, plain, and wary of strangers."""

import contextlib
import hashlib
import io
import json
import math
import struct
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest

from fljax import transcript
from fljax.types import Transcript

_ABOUT = {"learning_rate": 0.1, "note": "two rounds"}


def _transcript():
    rng = np.random.default_rng(0)
    params = {"dense": {"kernel": rng.normal(size=(2, 3, 1)), "bias": np.zeros((2, 1))}}
    delta = {
        "dense": {"kernel": rng.normal(size=(2, 2, 3, 1)), "bias": np.ones((2, 2, 1))}
    }
    delta["dense"]["kernel"][0, 0, 0, 0] = np.nan
    delta["dense"]["bias"][1, 1, 0] = -0.0
    return Transcript(
        round=np.array([0, 5], np.int32),
        client=np.array([[3, 4], [4, -1]], np.int32),
        params={"dense": {k: v.astype(np.float32) for k, v in params["dense"].items()}},
        delta={"dense": {k: v.astype(np.float32) for k, v in delta["dense"].items()}},
    )


@pytest.fixture
def stem(tmp_path):
    """A saved transcript `victim.npz` and `victim.json`."""
    transcript.save(tmp_path / "victim", _transcript(), _ABOUT)
    return tmp_path / "victim"


# ---- one client's messages


def test_exchange_takes_the_rounds_in_which_she_took_part():
    found = transcript.exchange(_transcript(), 4)
    whole = _transcript()
    np.testing.assert_array_equal(
        found.params["dense"]["kernel"], whole.params["dense"]["kernel"][[0, 1]]
    )
    np.testing.assert_array_equal(
        found.delta["dense"]["kernel"], whole.delta["dense"]["kernel"][[0, 1], [1, 0]]
    )
    once = transcript.exchange(whole, 3)
    assert once.params["dense"]["bias"].shape == (1, 1)
    np.testing.assert_array_equal(
        once.delta["dense"]["kernel"], whole.delta["dense"]["kernel"][[0], [0]]
    )


def test_exchange_with_a_client_who_sent_nothing_is_an_error():
    with pytest.raises(transcript.TranscriptError, match="client 7"):
        transcript.exchange(_transcript(), 7)


# ---- save and load


def _bits(tree):
    dense = tree["dense"]
    return {name: (leaf.dtype, leaf.tobytes()) for name, leaf in dense.items()}


def test_what_is_loaded_is_bit_for_bit_what_was_saved(stem):
    found, about = transcript.load(stem)
    expected = _transcript()
    assert about == _ABOUT
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


def test_a_dot_in_the_name_is_kept(tmp_path):
    transcript.save(tmp_path / "lr0.1", _transcript())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lr0.1.json", "lr0.1.npz"]
    transcript.load(tmp_path / "lr0.1")


def test_tuples_come_back_as_dicts_keyed_by_position(tmp_path):
    one = Transcript(
        np.arange(1), np.zeros((1, 1), int), (np.ones((1, 2)),), (np.ones((1, 1, 2)),)
    )
    transcript.save(tmp_path / "run", one)
    found, _ = transcript.load(tmp_path / "run")
    np.testing.assert_array_equal(found.params["0"], [[1, 1]])


def test_numpy_and_json_alone_can_read_a_transcript(stem):
    description = json.loads(stem.with_suffix(".json").read_text())
    arrays = np.load(stem.with_suffix(".npz"), allow_pickle=False)
    assert (description["format"], description["version"]) == ("fljax-transcript", 1)
    assert description["about"] == _ABOUT
    content = stem.with_suffix(".npz").read_bytes()
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


def test_saving_again_replaces_the_earlier_transcript(stem):
    other = _transcript()._replace(round=np.array([1, 2], np.int32))
    transcript.save(stem, other)
    np.testing.assert_array_equal(transcript.load(stem)[0].round, [1, 2])


# ---- damage


def _refused(stem, suffix):
    """Loading fails with one line that names the file."""
    with pytest.raises(transcript.TranscriptError) as caught:
        transcript.load(stem)
    message = str(caught.value)
    assert str(stem.with_suffix(suffix)) in message
    assert "\n" not in message


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_missing_file_is_named(stem, suffix):
    stem.with_suffix(suffix).unlink()
    _refused(stem, suffix)


def test_a_flipped_bit_is_found(stem):
    path = stem.with_suffix(".npz")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    _refused(stem, ".npz")


@pytest.mark.parametrize("honest", [False, True], ids=["old sha256", "new sha256"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_archive_is_found(stem, share, honest):
    path = stem.with_suffix(".npz")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    if honest:
        _describe(stem)
    _refused(stem, ".npz")


def _describe(stem, **changes):
    """Rewrites fields of the description; the sha256 is that of the archive."""
    path = stem.with_suffix(".json")
    description = json.loads(path.read_text())
    content = stem.with_suffix(".npz").read_bytes()
    description["sha256"] = hashlib.sha256(content).hexdigest()
    description.update(changes)
    path.write_text(json.dumps(description))


def _specs(arrays):
    return {
        name: {"shape": list(array.shape), "dtype": array.dtype.str}
        for name, array in arrays.items()
    }


def _arrays(stem):
    with np.load(stem.with_suffix(".npz")) as archive:
        return dict(archive)


def _forge(stem, arrays, specs=None):
    """Saves other arrays with a matching sha256 and, by default, description."""
    np.savez(stem.with_suffix(".npz"), **arrays)
    _describe(stem, arrays=_specs(arrays) if specs is None else specs)


def test_a_forgery_that_is_consistent_passes(stem):
    # Without this the tests below could pass for a reason of their own.
    _forge(stem, _arrays(stem) | {"round": np.array([7, 9], np.int32)})
    np.testing.assert_array_equal(transcript.load(stem)[0].round, [7, 9])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"fljax-transcript"',
        "{}",
        "\ufeff{}",
        "[" * 100_000,
    ],
    ids=["empty", "cut", "list", "null", "string", "no fields", "marked", "deep"],
)
def test_a_description_that_is_none_is_refused(stem, text):
    stem.with_suffix(".json").write_text(text, encoding="utf-8")
    _refused(stem, ".json")


def test_a_description_that_is_not_text_is_refused(stem):
    stem.with_suffix(".json").write_bytes(b"\xff\xfe\x00{}")
    _refused(stem, ".json")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "other"},
        {"version": 2},
        {"version": "1"},
        {"about": []},
        {"arrays": []},
        {"arrays": {"round": 3}},
        {"arrays": {"round": {"shape": 2, "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": ["x"], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [math.inf], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [-2], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [2.0], "dtype": "<i4"}}},
        {"arrays": {"round": {"shape": [2], "dtype": "no such type"}}},
        {"arrays": {"round": {"shape": [2], "dtype": "|O"}}},
        {"arrays": {"round": {"shape": [2], "dtype": ">i4"}}},
    ],
    ids=[
        "format",
        "version",
        "version as text",
        "about as list",
        "arrays as list",
        "array as number",
        "shape as number",
        "shape of text",
        "infinite shape",
        "negative shape",
        "fractional shape",
        "unknown dtype",
        "object dtype",
        "foreign dtype",
    ],
)
def test_a_description_of_another_kind_is_refused(stem, changes):
    _describe(stem, **changes)
    _refused(stem, ".json")


@pytest.mark.parametrize("field", ["format", "version", "sha256", "arrays", "about"])
def test_a_description_needs_every_field(stem, field):
    path = stem.with_suffix(".json")
    description = json.loads(path.read_text())
    del description[field]
    path.write_text(json.dumps(description))
    _refused(stem, ".json")


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("round", {"shape": [3], "dtype": "<i4"}),
        ("round", {"shape": [2, 1], "dtype": "<i4"}),
        ("round", {"shape": [10**6], "dtype": "<i4"}),
        ("round", {"shape": [2], "dtype": "<i8"}),
        ("round", {"shape": [2], "dtype": "<f4"}),
        ("params/dense/kernel", {"shape": [2, 1, 3], "dtype": "<f4"}),
    ],
    ids=["longer", "column", "huge", "wider", "float", "transposed"],
)
def test_a_lie_about_an_array_is_found(stem, name, spec):
    _describe(stem, arrays=_specs(_arrays(stem)) | {name: spec})
    _refused(stem, ".npz")


@pytest.mark.parametrize("described", [False, True])
def test_an_extra_array_is_refused(stem, described):
    arrays = _arrays(stem)
    extra = arrays | {"delta/other": np.zeros((2, 2), np.float32)}
    _forge(stem, extra, None if described else _specs(arrays))
    _refused(stem, ".json" if described else ".npz")


def test_a_missing_array_is_refused(stem):
    arrays = _arrays(stem)
    specs = _specs(arrays)
    del arrays["delta/dense/bias"]
    _forge(stem, arrays, specs)
    _refused(stem, ".npz")


@pytest.mark.parametrize(
    "value",
    [
        np.array([None, "code"], object),
        np.array(["a", "b"]),
        np.array([0, 1], "datetime64[s]"),
        np.array([(0, 1.0), (1, 2.0)], "i4,f4"),
    ],
    ids=["object", "text", "time", "record"],
)
def test_arrays_other_than_numbers_are_refused(stem, value):
    _forge(stem, _arrays(stem) | {"round": value})
    # A record type has no one-word description at all.
    with pytest.raises(transcript.TranscriptError):
        transcript.load(stem)


def test_an_object_array_behind_a_plain_description_is_not_unpickled(stem):
    arrays = _arrays(stem)
    _forge(stem, arrays | {"round": np.array([None, print], object)}, _specs(arrays))
    _refused(stem, ".npz")


def _rewrite_zip(stem, edit, **how):
    """Writes the archive anew, each member through `edit(name, content)`."""
    path = stem.with_suffix(".npz")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", **how) as archive:
        for name, content in members.items():
            archive.writestr(name, edit(name, content))
    _describe(stem)


def _npy_header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<i4", "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


@pytest.mark.parametrize("shape", [(10**13,), (10**8,), (0, 10**30), (-2, -1)])
@pytest.mark.parametrize("described", [False, True])
def test_a_header_that_claims_a_huge_array_is_refused(stem, shape, described):
    specs = _specs(_arrays(stem))
    content = _npy_header(shape) + bytes(8)
    _rewrite_zip(stem, lambda n, c: content if n == "round.npy" else c)
    if described:
        spec = {"shape": list(shape), "dtype": "<i4"}
        _describe(stem, arrays=specs | {"round": spec})
    _refused(stem, ".json" if described and min(shape) < 0 else ".npz")


def test_an_archive_that_claims_more_bytes_than_it_has_is_refused(stem):
    # Description, .npy header and zip directory tell the same lie.
    size, specs = 10**8, _specs(_arrays(stem))
    content = _npy_header((size,)) + bytes(8)
    _rewrite_zip(stem, lambda n, c: content if n == "round.npy" else c)
    path = stem.with_suffix(".npz")
    real, claimed = len(content), len(content) - 8 + 4 * size
    path.write_bytes(
        path.read_bytes().replace(
            struct.pack("<LL", real, real), struct.pack("<LL", real, claimed)
        )
    )
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("round.npy").file_size == claimed
    _describe(stem, arrays=specs | {"round": {"shape": [size], "dtype": "<i4"}})
    _refused(stem, ".npz")


def test_a_member_longer_than_its_array_is_refused(stem):
    _rewrite_zip(stem, lambda n, c: c + bytes(100) if n == "round.npy" else c)
    _refused(stem, ".npz")


def test_two_members_of_one_name_are_refused(stem):
    path = stem.with_suffix(".npz")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("round.npy", archive.read("round.npy"))
    _describe(stem)
    _refused(stem, ".npz")


def test_a_compressed_archive_is_refused(stem):
    # A few compressed bytes may unpack to more than the memory holds.
    _rewrite_zip(stem, lambda _, c: c, compression=zipfile.ZIP_DEFLATED)
    _refused(stem, ".npz")


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_damaged_member_with_a_new_sha256_is_found(stem, how):
    _rewrite_zip(stem, lambda _, c: c, compression=how)
    path = stem.with_suffix(".npz")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("delta/dense/kernel.npy")
    start = info.header_offset + 30 + len(info.filename)
    content[start : start + 8] = b"\xff" * 8
    path.write_bytes(content)
    _describe(stem)
    _refused(stem, ".npz")


def test_any_flipped_byte_is_refused_or_harmless(stem):
    # With a new sha256, so that zip, header and array readers see the damage.
    path = stem.with_suffix(".npz")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(content), 300, replace=False):
        damaged = bytearray(content)
        damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        _describe(stem)
        with contextlib.suppress(transcript.TranscriptError):
            transcript.load(stem)


def test_arrays_in_column_order_and_of_any_integer_type_pass(stem):
    arrays = _arrays(stem)
    kernel = np.asfortranarray(arrays["delta/dense/kernel"])
    changes = {"delta/dense/kernel": kernel, "round": np.array([1, 2], np.uint8)}
    _forge(stem, arrays | changes | {"client": np.ones((2, 2), np.uint64)})
    found = transcript.load(stem)[0].delta["dense"]["kernel"]
    np.testing.assert_array_equal(found, kernel)


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
def test_arrays_that_do_not_fit_together_are_refused(stem, changes):
    _forge(stem, _arrays(stem) | changes)
    _refused(stem, ".json")


@pytest.mark.parametrize("name", ["round", "client"])
def test_rounds_and_clients_are_required(stem, name):
    arrays = _arrays(stem)
    del arrays[name]
    _forge(stem, arrays)
    _refused(stem, ".json")


def test_a_transcript_without_rounds_is_refused(stem):
    _forge(stem, {name: array[:0] for name, array in _arrays(stem).items()})
    _refused(stem, ".json")


def test_a_transcript_without_parameters_is_refused(stem):
    arrays = _arrays(stem)
    _forge(stem, {name: arrays[name] for name in ("round", "client")})
    _refused(stem, ".json")


def test_a_delta_without_its_parameter_is_refused(stem):
    arrays = _arrays(stem)
    del arrays["params/dense/bias"]
    _forge(stem, arrays)
    _refused(stem, ".json")


def test_values_that_are_not_finite_are_left_to_the_reader(stem):
    bias = np.array([[np.nan], [np.inf]], np.float32)
    _forge(stem, _arrays(stem) | {"params/dense/bias": bias})
    found = transcript.load(stem)[0].params["dense"]["bias"]
    np.testing.assert_array_equal(found, bias)
