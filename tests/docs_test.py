"""The site: everything public is described, everything named is there, and it builds."""

import doctest
import importlib.util
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import fljax

_ROOT = pathlib.Path(__file__).parents[1]
_DOCS = _ROOT / "docs"
_PAGES = sorted(
    path
    for path in _DOCS.rglob("*.md")
    if not {"_build", "api"} & set(path.relative_to(_DOCS).parts)
)
_SECONDS = 1800


def _extension(name):
    """A module of `docs/extensions`, which is no package; it needs no Sphinx."""
    path = _DOCS / "extensions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"docs_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def api():
    """The extension that writes the pages of the API."""
    return _extension("api_pages")


def _described(api):
    return {
        module.__name__: module for page in api.PAGES for module in api.modules(page)
    }


def test_every_public_module_is_on_a_page(api):
    described = _described(api)
    for name in fljax.__all__:
        thing = getattr(fljax, name)
        where = thing.__name__ if inspect.ismodule(thing) else thing.__module__
        below = [each for each in described if each.startswith(f"{where}.")]
        assert where in described or below, name


def test_every_public_name_has_a_docstring(api):
    undocumented = [
        f"{module.__name__}.{name}"
        for module in _described(api).values()
        for name in api.public(module)
        if api.is_described(module, name) and not getattr(module, name).__doc__
    ]
    assert undocumented == []


def test_every_module_has_a_docstring(api):
    assert [
        name for name, module in _described(api).items() if not module.__doc__
    ] == []


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A:\n\n    f(1)\n\nB.", "A:\n\n::\n\n    f(1)\n\nB."),
        ("```python\nf(1)\n```", "\n.. code-block:: python\n\n    f(1)\n"),
        ("* a\n  b\n\n  c", "* a\n  b\n\n  c"),
        (
            "| a | b |\n|---|---|\n| 1 | 2 |",
            ".. list-table::\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - 2",
        ),
    ],
    ids=("indented", "fenced", "bullet", "table"),
)
def test_docstrings_become_restructured_text(text, expected):
    found = _extension("docstrings").restructured(text.split("\n"))
    assert "\n".join(found) == expected


def test_every_flagfile_is_named():
    text = "\n".join(path.read_text() for path in _PAGES)
    flagfiles = {path.name for path in (_ROOT / "experiments/flags").iterdir()}
    named = set(re.findall(r"\b([a-z]\w*(?:\.\w+)+\.flags)\b", text))
    assert named == flagfiles


def test_named_paths_are_there():
    text = "\n".join(path.read_text() for path in _PAGES)
    named = re.findall(r"`((?:fljax|experiments|tests|third_party)/[\w./]*)`", text)
    assert named
    assert [path for path in named if not (_ROOT / path).exists()] == []


def test_references_lead_to_pages(api):
    written = "\n".join(map(api.text, api.PAGES))
    text = "\n".join(path.read_text() for path in _PAGES)
    named = re.findall(r"\{py:(\w+)\}`([\w.]+)`", text)
    assert len(named) > 20
    described = _described(api)
    for kind, name in named:
        if kind == "mod":
            assert f"automodule:: {name}\n" in written, name
        else:
            module, _, member = name.rpartition(".")
            assert member in api.public(described[module]), name


def test_links_lead_to_files():
    for page in _PAGES:
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page}: {link}"


def test_python_on_the_pages_can_be_parsed():
    for path in _PAGES:
        for code in re.findall(
            r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL
        ):
            compile(code, str(path), "exec")


_WITH_EXAMPLES = sorted(
    path for path in (_ROOT / "fljax").rglob("*.py") if ">>> " in path.read_text()
)


@pytest.mark.parametrize("path", _WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_in_docstrings_hold(path):
    name = ".".join(path.relative_to(_ROOT).with_suffix("").parts)
    tested = doctest.testmod(importlib.import_module(name))
    assert tested.attempted > 0
    assert tested.failed == 0


def _shown(page: str) -> str:
    """What the one example in Python of a page prints."""
    text = (_DOCS / page).read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        (sys.executable, "-c", example),
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_example_of_the_library_runs():
    shown = re.fullmatch(r"accuracy on client 0: (\S+)\n", _shown("start.md"))
    assert 0.5 < float(shown[1]) <= 1


@pytest.mark.slow
def test_the_example_of_a_defense_keeps_its_budget():
    shown = re.fullmatch(r".*rows: \[(.*)\]\n", _shown("defenses.md"))
    epsilons = [float(each) for each in shown[1].split()]
    assert len(epsilons) == 4 and 0.5 * 8 < min(epsilons) <= max(epsilons) <= 8


@pytest.mark.slow
def test_the_site_builds_without_a_warning_or_a_network(tmp_path):
    pytest.importorskip("myst_nb", reason="needs the extra docs")
    source = tmp_path / "docs"
    (tmp_path / "experiments").symlink_to(_ROOT / "experiments")
    (tmp_path / "fljax").symlink_to(_ROOT / "fljax")
    made = shutil.ignore_patterns("_build", "api", "notebooks", "__pycache__")
    shutil.copytree(_DOCS, source, ignore=made)
    with (source / "conf.py").open("a") as told:  # they are run by `notebooks_test`
        told.write('nb_execution_excludepatterns = ["notebooks/*.ipynb"]\n')
    nowhere = "http://127.0.0.1:9"
    done = subprocess.run(
        (sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(source),
         str(tmp_path / "built/html")),
        env=os.environ | {"http_proxy": nowhere, "https_proxy": nowhere},
        capture_output=True, text=True, check=False, timeout=_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    pages = list((tmp_path / "built/html").rglob("*.html"))
    assert len(pages) >= len(_PAGES)
    remote = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="https?://')
    assert [p.name for p in pages if remote.search(p.read_text())] == []
