"""Files appear whole or not at all."""

import errno
import hashlib
import os
import stat

import pytest

from fljax import files


def test_a_new_file_appears_with_its_folders(tmp_path):
    path = tmp_path / "a" / "b" / "file.bin"
    with files.replacing(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file.bin"]


def test_an_earlier_file_is_replaced_only_at_the_end(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with files.replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_who_reads_the_earlier_file_reads_it_to_its_end(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with open(path, "rb") as reader:
        with files.replacing(path) as file:
            file.write(b"new")
        assert (reader.read(), path.read_bytes()) == (b"old", b"new")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with pytest.raises(error), files.replacing(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_a_full_disk_is_told_with_the_file(tmp_path):
    path = tmp_path / "file.bin"
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # as of a write
    told = pytest.raises(OSError, match="No space left on device: .*file.bin")
    with told as caught, files.replacing(path):
        raise full
    assert caught.value.errno == errno.ENOSPC and not os.listdir(tmp_path)


def test_what_a_killed_process_left_is_cleared_and_nothing_else(tmp_path):
    for name in ("rows.jsonl", ".hidden", "notes.part"):
        (tmp_path / name).touch()
    with files.replacing(tmp_path / "rows.jsonl") as file:
        (left,) = set(os.listdir(tmp_path)) - {"rows.jsonl", ".hidden", "notes.part"}
        file.write(b"new")
    (tmp_path / left).touch()  # as if the process had died within the block
    files.clear(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hidden", "notes.part", "rows.jsonl"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_umask_says_who_may_read_the_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        files.write_text(tmp_path / "file.txt", "text")
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / "file.txt").stat().st_mode)
    assert mode == 0o666 & ~mask


def test_text_is_written_as_utf_8(tmp_path):
    files.write_text(str(tmp_path / "file.txt"), "ε = 1\n")
    assert (tmp_path / "file.txt").read_bytes() == "ε = 1\n".encode()


def test_sha256_is_that_of_the_content(tmp_path):
    (tmp_path / "file.bin").write_bytes(b"abc" * 100_000)
    expected = hashlib.sha256(b"abc" * 100_000).hexdigest()
    assert files.sha256(tmp_path / "file.bin") == expected
