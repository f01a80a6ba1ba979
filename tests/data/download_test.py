import hashlib
import sys

import pytest

from fljax.data.download import Policy, download
from fljax.data.table import DataError

FAST = Policy(timeout=0.5, attempts=3, pause=0.0)
BODY = b"a,b\n1,2\n"


def get(url, folder, *, name="file.csv", sha256=None, max_bytes=1 << 20, policy=FAST):
    return download(
        url, folder / name, sha256=sha256, max_bytes=max_bytes, policy=policy
    )


def assert_one_line_and_nothing_left(error, folder):
    assert "\n" not in str(error.value)
    assert not [path for path in folder.rglob("*") if path.is_file()]


def test_a_good_file_arrives_whole_with_its_hash(server, reply, tmp_path):
    url = server.serve("/file.csv", reply(BODY))
    digest = hashlib.sha256(BODY).hexdigest()
    assert get(url, tmp_path / "new" / "folder", sha256=digest) == digest
    folder = tmp_path / "new" / "folder"
    assert [path.name for path in folder.iterdir()] == ["file.csv"]
    assert (folder / "file.csv").read_bytes() == BODY


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(server, reply, tmp_path, status):
    url = server.serve("/file.csv", reply(b"", status), reply(BODY))
    get(url, tmp_path)
    assert server.num_requests == 2


def test_a_server_that_stays_busy_is_given_up(server, reply, tmp_path):
    url = server.serve("/file.csv", reply(b"", 503))
    with pytest.raises(DataError, match="answered 503") as error:
        get(url, tmp_path)
    assert server.num_requests == FAST.attempts
    assert_one_line_and_nothing_left(error, tmp_path)


def test_an_absent_file_is_not_asked_for_again(server, tmp_path):
    with pytest.raises(DataError, match="answered 404") as error:
        get(server.url("/absent.csv"), tmp_path)
    assert server.num_requests == 1
    assert_one_line_and_nothing_left(error, tmp_path)


@pytest.mark.parametrize("name", ["file.zip", "file.csv"])
def test_a_page_instead_of_the_file_is_refused(server, reply, tmp_path, name):
    url = server.serve("/file", reply(b"\n<!DOCTYPE html><html>Sign in</html>"))
    with pytest.raises(DataError, match="a page instead") as error:
        get(url, tmp_path, name=name)
    assert_one_line_and_nothing_left(error, tmp_path)


@pytest.mark.parametrize("name", ["file.zip", "file.gz"])
def test_text_instead_of_an_archive_is_refused(server, reply, tmp_path, name):
    url = server.serve("/file", reply(BODY))
    with pytest.raises(DataError, match="is not a .* file") as error:
        get(url, tmp_path, name=name)
    assert_one_line_and_nothing_left(error, tmp_path)


def test_a_truncated_file_is_tried_again_and_refused(server, reply, tmp_path):
    url = server.serve("/file.csv", reply(BODY, declared=1000))
    with pytest.raises(DataError) as error:
        get(url, tmp_path)
    assert server.num_requests == FAST.attempts
    assert_one_line_and_nothing_left(error, tmp_path)


def test_a_wrong_hash_names_both_hashes(server, reply, tmp_path):
    url = server.serve("/file.csv", reply(BODY))
    with pytest.raises(DataError, match="expected sha256:0000") as error:
        get(url, tmp_path, sha256="0000")
    assert hashlib.sha256(BODY).hexdigest() in str(error.value)
    assert_one_line_and_nothing_left(error, tmp_path)


def test_an_earlier_file_survives_a_failed_download(server, reply, tmp_path):
    (tmp_path / "file.csv").write_bytes(b"old")
    url = server.serve("/file.csv", reply(BODY))
    with pytest.raises(DataError):
        get(url, tmp_path, sha256="0000")
    assert (tmp_path / "file.csv").read_bytes() == b"old"


def test_a_silent_server_times_out(server, reply, tmp_path):
    url = server.serve("/file.csv", reply(BODY, delay=5.0))
    policy = Policy(timeout=0.1, attempts=2, pause=0.0)
    with pytest.raises(DataError) as error:
        get(url, tmp_path, policy=policy)
    assert "Timeout" in str(error.value)
    assert_one_line_and_nothing_left(error, tmp_path)


def test_nobody_listening_is_one_line(tmp_path):
    with pytest.raises(DataError, match="no connection") as error:
        get("http://127.0.0.1:9/file.csv", tmp_path)
    assert_one_line_and_nothing_left(error, tmp_path)


def test_a_file_beyond_the_limit_is_refused(server, reply, tmp_path):
    url = server.serve("/file.csv", reply(b"x" * 1001))
    with pytest.raises(DataError, match="limit of 1000 bytes") as error:
        get(url, tmp_path, max_bytes=1000)
    assert_one_line_and_nothing_left(error, tmp_path)


def test_an_empty_answer_is_refused(server, reply, tmp_path):
    url = server.serve("/file.csv", reply(b""))
    with pytest.raises(DataError, match="empty") as error:
        get(url, tmp_path)
    assert_one_line_and_nothing_left(error, tmp_path)


def test_without_the_extra_one_line_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=r"'\.\[data\]'") as error:
        get("http://127.0.0.1:9/file.csv", tmp_path)
    assert_one_line_and_nothing_left(error, tmp_path)


def test_only_http_addresses_are_opened(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with pytest.raises(DataError, match="not an http address"):
        get(secret.as_uri(), tmp_path / "out")


def test_a_folder_that_cannot_be_made_is_one_line(server, reply, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    url = server.serve("/file.csv", reply(BODY))
    with pytest.raises(DataError, match="cannot be written"):
        get(url, tmp_path / "taken")
