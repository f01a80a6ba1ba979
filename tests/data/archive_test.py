import gzip
import io
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


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.gz", "bomb.csv"])
def test_content_beyond_the_limit_is_refused(tmp_path, name):
    text = b"0" * 100_001
    content = {"bomb.zip": zip_of(m=text), "bomb.gz": gzip.compress(text)}
    with pytest.raises(DataError, match="larger than the limit"):
        read(tmp_path, name, content.get(name, text), member="m", max_bytes=100_000)


@pytest.mark.parametrize("name", ["f.zip", "f.gz"])
@pytest.mark.parametrize("damage", ["cut", "garbage", "flipped"])
def test_a_damaged_archive_is_one_line(tmp_path, name, damage):
    text = b"".join(b"%d," % (i * i) for i in range(2000))
    good = zip_of(m=text) if name == "f.zip" else gzip.compress(text)
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
