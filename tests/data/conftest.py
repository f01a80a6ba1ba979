"""A web server on the loopback device, isolated folders, and tables of CSV files."""

import contextlib
import http.server
import pathlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from fljax import data


class Reply(NamedTuple):
    """One answer; `declared` is the Content-Length, `delay` is in seconds."""

    body: bytes = b""
    status: int = 200
    declared: int | None = None
    delay: float = 0.0


class Server:
    """Answers each path with its replies in turn, the last one again and again."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.replies: dict[str, list[Reply]] = {}
        self.num_requests = 0
        self.closing = threading.Event()

    def serve(self, path: str, *replies: Reply) -> str:
        self.replies[path] = list(replies)
        return self.url(path)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def next_reply(self, path: str) -> Reply:
        self.num_requests += 1
        queue = self.replies.get(path, [Reply(b"not here", 404)])
        return queue.pop(0) if len(queue) > 1 else queue[0]


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = state.next_reply(self.path)
            state.closing.wait(reply.delay)
            self.send_response(reply.status)
            length = len(reply.body) if reply.declared is None else reply.declared
            self.send_header("Content-Length", str(length))
            self.end_headers()
            # Clients of these tests hang up early.
            with contextlib.suppress(ConnectionError):
                self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        state = Server(httpd.server_address[1])
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield state
        state.closing.set()
        httpd.shutdown()
        thread.join()


@pytest.fixture
def reply() -> type[Reply]:
    return Reply


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """No test sees the user's own folders."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FLJAX_CACHE", str(folder))
    monkeypatch.delenv("FLJAX_DATA", raising=False)
    return folder


@pytest.fixture
def load(tmp_path):
    """`(frame, **options) -> Table` of a CSV file with a target `pay`."""

    def load_frame(frame, **options):
        path = tmp_path / "mine.csv"
        frame.to_csv(path, index=False)
        return data.load("csv", path=str(path), **{"target": "pay", **options})

    return load_frame
