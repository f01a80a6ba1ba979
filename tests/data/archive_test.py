import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from fljax.data import archive
from fljax.data.table import DataError


def zip_of(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


def read(tmp_path, name, content, *, member=None, max_bytes=1 << 20):
    path = tmp_path / name
    path.write_bytes(content)
    return archive.read(path, member=member, max_bytes=max_bytes)


def test_plain_gzipped_and_zipped_content_is_the_same(tmp_path):
    text = b"a,b\n1,2\n"
    assert read(tmp_path, "f.csv", text) == text
    assert read(tmp_path, "f.csv.gz", gzip.compress(text)) == text
    assert read(tmp_path, "f.tgz", gzip.compress(text)) == text
    assert read(tmp_path, "f.csv.xz", lzma.compress(text)) == text
    zipped = zip_of(f=b"other", g=text)
    assert read(tmp_path, "f.zip", zipped, member="g") == text


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "C:\\evil"])
def test_an_unsafe_entry_spoils_the_whole_archive(tmp_path, name):
    zipped = zip_of(**{name: b"x", "good": b"y"})
    with pytest.raises(DataError, match="unsafe entry"):
        read(tmp_path, "f.zip", zipped, member="good")


def test_an_absent_member_lists_what_is_there(tmp_path):
    with pytest.raises(DataError, match=r"no wanted in the archive, it holds a, b"):
        read(tmp_path, "f.zip", zip_of(a=b"", b=b""), member="wanted")


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.gz", "bomb.xz", "bomb.csv"])
def test_content_beyond_the_limit_is_refused(tmp_path, name):
    text = b"0" * 100_001
    content = {
        "bomb.zip": zip_of(m=text),
        "bomb.gz": gzip.compress(text),
        "bomb.xz": lzma.compress(text),
    }
    with pytest.raises(DataError, match="larger than the limit"):
        read(tmp_path, name, content.get(name, text), member="m", max_bytes=100_000)


@pytest.mark.parametrize("name", ["f.zip", "f.gz", "f.xz"])
@pytest.mark.parametrize("damage", ["cut", "garbage", "flipped"])
def test_a_damaged_archive_is_one_line(tmp_path, name, damage):
    text = b"".join(b"%d," % (i * i) for i in range(2000))
    pack = {
        "f.zip": lambda m: zip_of(m=m),
        "f.gz": gzip.compress,
        "f.xz": lzma.compress,
    }
    good = pack[name](text)
    middle = len(good) // 2
    bad = {
        "cut": good[:middle],
        "garbage": b"no archive at all",
        "flipped": good[:middle] + bytes([good[middle] ^ 255]) + good[middle + 1 :],
    }[damage]
    with pytest.raises(DataError) as error:
        read(tmp_path, name, bad, member="m")
    assert "\n" not in str(error.value)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        archive.read(tmp_path, max_bytes=10)


def entry(name, content=b"text", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar_of(*entries):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_the_files_of_a_tar_come_in_their_order_without_its_folders():
    folder = entry("a", b"", type=tarfile.DIRTYPE)
    content = tar_of(folder, entry("a/2", b"two"), entry("a/1", b""))
    found = list(archive.tar_members(content, "f.tar"))
    assert found == [("a/2", b"two"), ("a/1", b"")]


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "C:\\evil"])
def test_an_unsafe_entry_of_a_tar_is_refused(name):
    content = tar_of(entry("good"), entry(name))
    with pytest.raises(DataError, match="f.tar: unsafe entry"):
        list(archive.tar_members(content, "f.tar"))


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE],
    ids=["symlink", "link", "fifo", "device"],
)
def test_what_is_no_plain_file_is_refused(kind):
    content = tar_of(entry("good"), entry("odd", b"", type=kind, linkname="good"))
    with pytest.raises(DataError, match="f.tar: entry 'odd' is no plain file"):
        list(archive.tar_members(content, "f.tar"))


def test_a_sparse_file_is_refused_whatever_its_size():
    # A map of one empty segment: a terabyte of zeros from nothing.
    headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.realsize": str(1 << 40),
        "GNU.sparse.name": "sparse",
    }
    content = tar_of(entry("s", b"0\n".ljust(512, b"\0"), pax_headers=headers))
    with pytest.raises(DataError, match="is no plain file"):
        list(archive.tar_members(content, "f.tar"))


def damaged_tars():
    good = tar_of(entry("a", bytes(range(250)) * 5), entry("b"))
    return {
        "garbage": b"no archive at all",
        "empty": b"",
        "cut in a file": good[:1000],
        "cut between files": good[: 4 * 512],
        "a broken header": good[: 4 * 512] + b"x" * 512 + good[5 * 512 :],
        "a size beyond the end": good[:124] + b"77777777777" + good[135:],
    }


@pytest.mark.parametrize("content", damaged_tars().values(), ids=damaged_tars())
def test_a_damaged_tar_is_one_line(content):
    with pytest.raises(DataError, match="f.tar: damaged archive") as error:
        list(archive.tar_members(content, "f.tar"))
    assert "\n" not in str(error.value)


def test_of_an_archive_with_one_file_no_member_need_be_named(tmp_path):
    assert read(tmp_path, "f.zip", zip_of(a=b"x"), member=None) == b"x"
    with pytest.raises(DataError, match="expected one file .* it holds a, b"):
        read(tmp_path, "f.zip", zip_of(a=b"x", b=b"y"), member=None)
