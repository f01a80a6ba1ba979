"""The page in a real browser: Chromium without a window, driven through its pipe."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time

import pytest

from experiments.report import page as pages
from experiments.report import rendering, tables
from experiments.report.cards import card
from experiments.report.rendering import Picture
from experiments.report.tables import Mark
from fljax.results import Row

pytestmark = pytest.mark.slow
_SECONDS = 60
_NAMES = ("chromium", "chromium-browser", "google-chrome")
# Chromium reads commands from file 3 and writes to file 4.
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_HIDDEN = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-background-networking",
    "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One page at a time, by the DevTools protocol."""

    def __init__(self, program, folder):
        (there, self._write), (self._read, back) = os.pipe(), os.pipe()
        self._process = subprocess.Popen(
            (sys.executable, "-c", _START, str(there), str(back), program, *_HIDDEN,
             f"--user-data-dir={folder / 'profile'}"),
            pass_fds=(there, back), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(there)
        os.close(back)
        self._folder, self._numbers, self._rest = folder, itertools.count(1), b""
        self._session, self.events = None, []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        found = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, page, width=1280, dark=False, height=900):
        """Shows a page at this width; forgets the events of the one before."""
        path = self._folder / "page.html"
        path.write_text(page, encoding="utf-8")
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self.events = []
        self._call("Page.navigate", url=path.as_uri())
        while "Page.loadEventFired" not in [each["method"] for each in self.events]:
            self.events.append(self._receive())

    def evaluate(self, script):
        """The value of an expression on the page, as JSON has it."""
        said = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def press(self, key):
        """Presses and releases a key on the element that has the focus."""
        for kind in ("keyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, text="\r",
                windowsVirtualKeyCode=13,
            )  # fmt: skip

    def requests(self):
        """Addresses that the page asked for."""
        return [
            each["params"]["request"]["url"]
            for each in self.events
            if each["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """Errors on the page, and what its policy refused."""
        found = []
        for each in self.events:
            if each["method"] == "Log.entryAdded":
                found.append(each["params"]["entry"]["text"])
            elif each["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(each["params"]))
        return found

    def screenshot(self, path):
        """Writes a PNG of what is shown."""
        data = self._call("Page.captureScreenshot")["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _call(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            said = self._receive()
            if said.get("id") == number:
                assert "error" not in said, said
                return said["result"]
            self.events.append(said)

    def _receive(self):
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._rest:
            left = max(end - time.monotonic(), 0)
            assert select.select([self._read], [], [], left)[0], "no answer"
            said = os.read(self._read, 2**20)
            assert said, "the browser ended"
            self._rest += said
        said, _, self._rest = self._rest.partition(b"\0")
        return json.loads(said)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.skip("needs Chromium on the PATH")
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


_TABLE = tables.table(
    "t",
    ["name", "mean", "note"],
    [
        ["b10", "95.80 [95.70, 95.90]", Mark("x", "good")],
        ["b9", "", ""],
        ["a", "100.0", "10"],
        ["c", "-3.5", "9"],
        ["d", "not finite", "1e-3"],
    ],
    ["mean"],
)


def _page(*shown, title="x", pictures=(), **more):
    """A report on one row with nothing but these tables and pictures."""
    row = Row("aia", "d", "m", "none", "model", "passive", "", 0, "all", "m", 1.0, 1)
    content = pages.content([card("run", [row], {}, None)])
    section = content["cards"][0]
    section |= {"tables": shown, "pictures": pictures, "folded": [], **more}
    return rendering.to_html(content | {"title": title})


_FIRST = "Array.from(document.querySelectorAll('tbody th'), (cell) => cell.textContent)"
_STATES = (
    "Array.from(document.querySelectorAll('thead th'), "
    "(cell) => cell.getAttribute('aria-sort'))"
)


def _click(index):
    return f"document.querySelectorAll('thead button')[{index}].click()"


@pytest.mark.parametrize(
    ("column", "ascending", "descending"),
    [
        (0, ["a", "b9", "b10", "c", "d"], ["d", "c", "b10", "b9", "a"]),
        (1, ["c", "b10", "a", "d", "b9"], ["a", "b10", "c", "d", "b9"]),
        (2, ["d", "c", "a", "b10", "b9"], ["a", "c", "d", "b10", "b9"]),
    ],
    ids=["texts", "intervals", "both"],
)
def test_a_click_on_a_header_sorts_and_another_one_reverses(
    browser, column, ascending, descending
):
    browser.open(_page(_TABLE))
    assert browser.evaluate(_STATES) == [None] * 3
    for order, name in ((ascending, "ascending"), (descending, "descending")):
        browser.evaluate(_click(column))
        assert browser.evaluate(_FIRST) == order
        states = browser.evaluate(_STATES)
        assert states.pop(column) == name
        assert states == [None, None]
    assert browser.complaints() == []


def test_a_header_sorts_by_the_keyboard_and_keeps_the_focus(browser):
    browser.open(_page(_TABLE))
    browser.evaluate("document.querySelector('thead button').focus()")
    browser.press("Enter")
    assert browser.evaluate(_FIRST)[0] == "a"
    assert browser.evaluate("document.activeElement.textContent") == "name"


def test_a_table_of_one_line_has_nothing_to_sort(browser):
    browser.open(_page(tables.table("t", ["a"], [["1"]])))
    assert browser.evaluate("document.querySelectorAll('button').length") == 0


@pytest.fixture
def page(rows):
    """A report with everything that is wide: names, tables, figures."""
    long = "a_name_without_any_place_to_break_it_" * 3
    made = []
    for defense, gain in (("none", 20.0), ("dp_sgd", 0.1), (long, 10.0)):
        for attack in ("model", "grad", "trajectory", long):
            made += rows(60.0 + gain, 60.5 + gain, attack=attack, defense=defense)
        made += rows(60.0, 60.1, attack="majority", defense=defense)
        for round_ in range(3):
            about = {"setting": f"round_{round_}", "metric": "test_loss"}
            made += rows(3.0 - round_, 2.9, attack="none", defense=defense, **about)
    manifest = {"flags": {long: long}, "data": [{"name": long}], "device": long}
    return rendering.to_html(pages.content([card(long, made, manifest, None)]))


# Elements that reach beyond the screen, those inside of what scrolls by itself aside.
_WIDE = """
Array.from(document.querySelectorAll("body *"))
  .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
  .filter((each) => !each.parentElement.closest(".scroll"))
  .map((each) => `${each.tagName} ${each.textContent.slice(0, 40)}`)
"""


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(browser, page, width):
    browser.open(page, width)
    browser.evaluate("document.querySelectorAll('details').forEach((d) => d.open = 1)")
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(_WIDE) == []


def test_figures_are_shown_and_no_request_leaves_the_page(browser, page):
    browser.open(page)
    widths = "Array.from(document.images, (image) => image.naturalWidth)"
    found = browser.evaluate(widths)
    assert len(found) > 2
    assert min(found) > 100
    assert browser.complaints() == []
    assert browser.requests()[0].startswith("file:")
    assert all(url.startswith("data:image/svg+xml;") for url in browser.requests()[1:])


_HOSTILE = b"""<svg xmlns="http://www.w3.org/2000/svg" width="200" height="200"
 onload="parent.document.title = 'ran'"><script>parent.document.title = 'ran'</script>
 <image href="http://fljax.invalid/a.png" width="9" height="9"/>
 <style>@import url("http://fljax.invalid/a.css");</style></svg>"""


def test_nothing_runs_and_nothing_is_fetched_in_a_picture_of_others(browser):
    evil = "<img src=x onerror=\"document.title='ran'\"><script>x()</script>"
    picture = Picture("p.svg", _HOSTILE, evil, f'"><script>{evil}')
    browser.open(_page(title="title", missing=evil, pictures=[picture]))
    browser.evaluate("new Promise((done) => setTimeout(done, 300))")
    assert browser.evaluate("document.title") == "title"
    assert browser.evaluate("document.scripts.length") == 1
    assert browser.evaluate("document.images[0].naturalWidth") == 200
    assert not [url for url in browser.requests() if "invalid" in url]


def test_no_other_script_may_run_on_a_page(browser):
    more = "<script>document.title = 'ran'</script></body>"
    browser.open(_page(title="title").replace("</body>", more))
    assert browser.evaluate("document.title") == "title"
    assert any("Content Security Policy" in said for said in browser.complaints())
