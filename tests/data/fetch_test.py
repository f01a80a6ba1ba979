import dataclasses
import gzip
import hashlib

import pytest

from fljax import memory
from fljax.data.download import Policy
from fljax.data.fetch import fetch, locate, read_local
from fljax.data.source import Source
from fljax.data.table import DataError, FileRecord

FAST = Policy(timeout=0.5, attempts=2, pause=0.0)
BODY = b"a,b\n1,2\n"
PINNED = hashlib.sha256(BODY).hexdigest()


def source(url="http://127.0.0.1:9/pub/file.csv", **changes):
    base = Source(
        dataset="some",
        filename="file.csv",
        url=url,
        sha256=PINNED,
        licence="",
        citation="",
        folders=("some",),
    )
    return dataclasses.replace(base, **changes)


@pytest.mark.parametrize("place", ["file.csv", "some/file.csv", "file.csv.gz"])
def test_a_local_copy_is_used_without_a_network(tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(BODY) if place.endswith(".gz") else BODY)
    file = fetch(source(), str(tmp_path))
    assert file.content == BODY
    assert file.record == FileRecord(name=path.name, sha256=PINNED, origin="local")


def test_the_environment_names_a_data_folder(tmp_path, monkeypatch):
    (tmp_path / "file.csv").write_bytes(BODY)
    monkeypatch.setenv("FLJAX_DATA", str(tmp_path))
    assert fetch(source()).record.origin == "local"


def test_a_folder_that_is_not_there_is_no_reason_to_download(
    server, reply, cache, tmp_path
):
    url = server.serve("/pub/file.csv", reply(BODY))
    with pytest.raises(DataError, match="absent: expected a folder of data files"):
        locate(source(url), str(tmp_path / "absent"), policy=FAST)
    assert server.num_requests == 0


def test_a_local_copy_with_another_hash_is_refused(tmp_path):
    (tmp_path / "file.csv").write_bytes(BODY + b"3,4\n")
    with pytest.raises(DataError, match=f"expected sha256 {PINNED}") as error:
        fetch(source(), str(tmp_path))
    assert "\n" not in str(error.value)


def test_a_download_is_kept_and_not_repeated(server, reply, cache):
    url = server.serve("/pub/file.csv", reply(BODY))
    for _ in range(2):
        file = fetch(source(url), policy=FAST)
        assert file.content == BODY
        assert file.record.origin == url
    assert server.num_requests == 1
    assert not list(cache.rglob("*.part"))


def test_an_unpinned_file_must_stay_as_it_first_came(server, reply):
    url = server.serve("/pub/file.csv", reply(BODY))
    unpinned = source(url, sha256=None)
    path, _ = locate(unpinned, policy=FAST)
    assert fetch(unpinned, policy=FAST).record.sha256 == PINNED
    path.write_bytes(b"changed")
    with pytest.raises(DataError, match="not known to be what was downloaded"):
        fetch(unpinned, policy=FAST)


def test_an_unpinned_file_that_nothing_vouches_for_is_refused(server, reply):
    unpinned = source(server.serve("/pub/file.csv", reply(BODY)), sha256=None)
    path, _ = locate(unpinned, policy=FAST)
    path.with_name(f"{path.name}.sha256").unlink()
    with pytest.raises(DataError, match="file.csv: not known .* delete it"):
        fetch(unpinned, policy=FAST)


def test_files_of_one_name_and_two_addresses_do_not_meet(server, reply):
    for year, body in (("2017", b"old\n"), ("2018", b"new\n")):
        url = server.serve(f"/{year}/file.csv", reply(body))
        assert fetch(source(url, sha256=None), policy=FAST).content == body


def test_offline_the_error_says_what_to_get_and_where_to_put_it(tmp_path, cache):
    with pytest.raises(DataError) as error:
        fetch(source(), str(tmp_path), policy=FAST)
    message = str(error.value)
    assert "get file.csv from http://127.0.0.1:9/pub/file.csv" in message
    assert f"put it into {tmp_path}" in message
    assert "\n" not in message
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_file_that_has_no_address_is_never_downloaded(server, reply):
    url = server.serve("/page", reply(BODY))
    with pytest.raises(DataError, match="get file.csv") as error:
        fetch(source(url, download=False, note="as CSV"), policy=FAST)
    assert "(as CSV)" in str(error.value)
    assert server.num_requests == 0


def test_a_users_file_may_be_relative_to_the_data_folder(tmp_path):
    (tmp_path / "mine.csv").write_bytes(BODY)
    assert read_local("mine.csv", str(tmp_path)).content == BODY
    with pytest.raises(DataError, match="no such file"):
        read_local("other.csv", str(tmp_path))
    with pytest.raises(DataError, match="expected a file, this is a folder"):
        read_local(str(tmp_path), None)


def test_a_path_that_cannot_be_looked_at_is_named(tmp_path):
    long = "x" * 300
    for path in (long, "~nobody of this name/own.csv"):
        with pytest.raises(DataError, match=f"^{path[:80]}: "):
            read_local(path)
    for ask in (lambda: read_local("own.csv", long), lambda: locate(source(), long)):
        with pytest.raises(DataError, match=f"^{long[:80]}: File name too long$"):
            ask()


def test_a_small_archive_of_more_than_the_memory_holds_is_refused(
    tmp_path, monkeypatch
):
    (tmp_path / "own.csv.gz").write_bytes(gzip.compress(b"1\n" * 500_000))
    monkeypatch.setattr(memory, "available", lambda: 1.2e6)
    with pytest.raises(
        DataError, match="own.csv.gz: larger than the limit of 400000 b"
    ):
        read_local("own.csv.gz", str(tmp_path))
    monkeypatch.setattr(memory, "available", lambda: float("inf"))
    assert len(read_local("own.csv.gz", str(tmp_path)).content) == 1_000_000


def test_a_file_that_the_publisher_compressed_is_named_by_its_own_hash(tmp_path):
    packed = gzip.compress(BODY, mtime=0)
    (tmp_path / "file.csv.gz").write_bytes(packed)
    pinned = hashlib.sha256(packed).hexdigest()
    file = fetch(source(filename="file.csv.gz", sha256=pinned), str(tmp_path))
    assert (file.content, file.record.sha256) == (BODY, pinned)
    with pytest.raises(DataError, match=f"expected sha256 {PINNED} of the file"):
        fetch(source(filename="file.csv.gz"), str(tmp_path))


def test_a_local_copy_may_have_another_known_name(tmp_path):
    (tmp_path / "part.csv").write_bytes(BODY)
    file = fetch(source(also=("part.csv",)), str(tmp_path))
    assert (file.content, file.record.name) == (BODY, "part.csv")
