"""Archives made to harm: no code is run, and no memory is asked for in vain."""

import contextlib
import io
import os
import struct
import zipfile

import numpy as np
import pytest

from fljax import transcript
from fljax.transcript import archive


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
def test_arrays_other_than_numbers_are_refused(saved, value):
    saved.forge(saved.arrays() | {"round": value})
    # A record type has no one-word description at all.
    with pytest.raises(transcript.TranscriptError):
        saved.load()


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_pipe_is_refused_and_not_waited_for(saved, suffix):
    path = saved.archive.with_suffix(suffix)
    path.unlink()
    os.mkfifo(path)
    saved.refused(suffix)


def test_an_object_array_behind_a_plain_description_is_not_unpickled(saved):
    arrays = saved.arrays()
    saved.forge(
        arrays | {"round": np.array([None, print], object)}, saved.specs(arrays)
    )
    saved.refused(".npz")


def _rewrite_zip(saved, edit, **how):
    """Writes the archive anew, each member through `edit(name, content)`."""
    path = saved.archive
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", **how) as archive:
        for name, content in members.items():
            archive.writestr(name, edit(name, content))
    saved.describe()


def _npy_header(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<i4", "fortran_order": False, "shape": shape}
    )
    return file.getvalue()


@pytest.mark.parametrize("shape", [(10**13,), (10**8,), (0, 10**30), (-2, -1)])
@pytest.mark.parametrize("described", [False, True])
def test_a_header_that_claims_a_huge_array_is_refused(saved, shape, described):
    specs = saved.specs(saved.arrays())
    content = _npy_header(shape) + bytes(8)
    _rewrite_zip(saved, lambda n, c: content if n == "round.npy" else c)
    if described:
        spec = {"shape": list(shape), "dtype": "<i4"}
        saved.describe(arrays=specs | {"round": spec})
    saved.refused(".json" if described and min(shape) < 0 else ".npz")


def test_an_archive_that_claims_more_bytes_than_it_has_is_refused(saved):
    # Description, .npy header and zip directory tell the same lie.
    size, specs = 10**8, saved.specs(saved.arrays())
    content = _npy_header((size,)) + bytes(8)
    _rewrite_zip(saved, lambda n, c: content if n == "round.npy" else c)
    path = saved.archive
    real, claimed = len(content), len(content) - 8 + 4 * size
    path.write_bytes(
        path.read_bytes().replace(
            struct.pack("<LL", real, real), struct.pack("<LL", real, claimed)
        )
    )
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("round.npy").file_size == claimed
    saved.describe(arrays=specs | {"round": {"shape": [size], "dtype": "<i4"}})
    saved.refused(".npz")


def test_a_member_longer_than_its_array_is_refused(saved):
    _rewrite_zip(saved, lambda n, c: c + bytes(100) if n == "round.npy" else c)
    saved.refused(".npz")


def test_two_members_of_one_name_are_refused(saved):
    path = saved.archive
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning):
        archive.writestr("round.npy", archive.read("round.npy"))
    saved.describe()
    saved.refused(".npz")


def test_a_compressed_archive_is_refused(saved):
    # A few compressed bytes may unpack to more than the memory holds.
    _rewrite_zip(saved, lambda _, c: c, compression=zipfile.ZIP_DEFLATED)
    saved.refused(".npz")


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_damaged_member_with_a_new_sha256_is_found(saved, how):
    _rewrite_zip(saved, lambda _, c: c, compression=how)
    path = saved.archive
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("delta/dense/kernel.npy")
    start = info.header_offset + 30 + len(info.filename)
    content[start : start + 8] = b"\xff" * 8
    path.write_bytes(content)
    saved.describe()
    saved.refused(".npz")


def test_any_flipped_byte_is_refused_or_harmless(saved):
    # With a new sha256, so that zip, header and array readers see the damage.
    path = saved.archive
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(content), 300, replace=False):
        damaged = bytearray(content)
        damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        saved.describe()
        with contextlib.suppress(transcript.TranscriptError):
            saved.load()


def test_names_that_steer_a_terminal_are_refused(saved):
    arrays = saved.arrays()
    name = "params/dense/\x1b]0;yours\x07"
    saved.forge({name if k == "params/dense/bias" else k: v for k, v in arrays.items()})
    saved.refused(".json")
    with pytest.raises(transcript.TranscriptError) as caught:
        saved.load()
    assert "control characters" in str(caught.value) and str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["a" * 1001, "/".join("a" * 60)])
def test_overlong_names_of_arrays_are_refused(saved, name):
    arrays = saved.arrays()
    _kind, leaf = next(n for n in arrays if n.startswith("params/")).split("/", 1)
    both = {f"{k}/{name}": arrays[f"{k}/{leaf}"] for k in ("params", "delta")}
    saved.forge(arrays | both)
    assert "overlong name" in saved.refused(".json")


def test_floats_that_no_accelerator_has_are_refused(saved):
    arrays = saved.arrays()
    saved.forge(
        {n: a.astype(np.longdouble) if "/" in n else a for n, a in arrays.items()}
    )
    assert "unsupported type" in saved.refused(".json")


def test_a_round_that_grows_when_it_is_read_is_refused(tmp_path):
    folder = tmp_path / "seen.rounds"
    recorder = transcript.Recorder(tmp_path / "seen")
    recorder.record(0, {"w": np.zeros(3)}, {0: {"w": np.ones(3)}})
    (path,) = folder.glob("*.npz")
    with np.load(path) as arrays:
        np.savez_compressed(path, **dict(arrays))
    with pytest.raises(transcript.TranscriptError, match="compressed"):
        transcript.Recorder(tmp_path / "seen").finish()


def test_what_a_reader_would_refuse_is_not_written(saved):
    _, about = saved.load()
    wide = {n: a.astype(np.longdouble) for n, a in saved.arrays().items()}
    long = {f"params/{'a' * 1001}": np.zeros(1), f"delta/{'a' * 1001}": np.zeros(1)}
    for arrays, said in ((wide, "unsupported type"), (long, "overlong name")):
        with pytest.raises(ValueError, match=said):
            archive.write(saved.stem.with_name("other"), arrays, about)
    assert not list(saved.stem.parent.glob("other*"))
