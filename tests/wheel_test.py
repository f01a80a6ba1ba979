"""The wheel, installed alone: it holds every file, imports, and audits a recording."""

import os
import pathlib
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_SECONDS = 900
# Modules that say which package they need, and need it.
_OPTIONAL = {
    "fljax.audit": "is a function",  # for `python -m` only
    "fljax.data.acs_income": "folktables",
    "fljax.data.lfw": "PIL",
}
_IMPORT = """
import importlib, pathlib, pkgutil, sys
import fljax
assert pathlib.Path(fljax.__file__).is_relative_to(sys.prefix), fljax.__file__
assert all(hasattr(fljax, name) for name in fljax.__all__)
for module in pkgutil.walk_packages(fljax.__path__, "fljax."):
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        print(module.name, error, sep=": ")
"""
# Two clients' linear regression by full-batch steps.
_RECORD = """
import numpy as np, pandas as pd
from fljax import transcript

rng = np.random.default_rng(0)
frame = pd.DataFrame({
    "age": rng.normal(size=60), "married": rng.integers(0, 2, 60),
    "client": np.repeat([4, 7], 30),
})
frame["y"] = frame.age + 2 * frame.married + 0.2 * rng.normal(size=60)
frame.to_csv("rows.csv", index=False)
about = {"batch_size": None, "learning_rate": 0.05, "local_epochs": 1}
with transcript.Recorder("seen", about) as recorder:
    for number in range(12):
        sent = {"out/kernel": rng.normal(size=(2, 1)), "out/bias": rng.normal(size=1)}
        returned = {}
        for client, rows in frame.groupby("client"):
            x = rows[["age", "married"]].to_numpy()
            left = x @ sent["out/kernel"] + sent["out/bias"] - rows[["y"]].to_numpy()
            returned[client] = {
                "out/kernel": sent["out/kernel"] - 0.1 * x.T @ left / len(rows),
                "out/bias": sent["out/bias"] - 0.1 * left.mean(axis=0),
            }
        recorder.record(number, sent, returned)
"""


def _run(folder, *command):
    """Runs it away from the repository, without what the tests set."""
    kept = ("PATH", "HOME", "PIP_", "SSL_", "HTTP", "NO_PROXY", "http", "https")
    env = {k: v for k, v in os.environ.items() if k.startswith(kept)}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False,
        timeout=_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    try:
        _run(folder, *pip, "download", "--no-deps", "setuptools")
    except AssertionError:
        pytest.skip("needs the package index")
    source = folder / "source"  # building leaves files beside the sources
    shutil.copytree(
        _ROOT / "fljax", source / "fljax", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(_ROOT / name, source)
    _run(folder, *pip, "wheel", "--no-deps", "-w", "wheels", source)
    (path,) = (folder / "wheels").iterdir()
    return path


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment that has the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    _run(folder, python, "-m", "pip", "install", "-q", wheel)
    return python


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel):
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = (path for path in (_ROOT / "fljax").rglob("*") if path.is_file())
    names = {
        path.relative_to(_ROOT).as_posix()
        for path in files
        if "__pycache__" not in path.parts
    }
    assert names <= packed
    assert {name.split("/")[0] for name in packed} == {"fljax", "fljax-0.1.0.dist-info"}


@pytest.mark.slow
def test_it_imports_without_the_extras(python, tmp_path):
    said = dict(
        line.split(": ", 1)
        for line in _run(tmp_path, python, "-c", _IMPORT).splitlines()
    )
    assert set(said) == set(_OPTIONAL), said
    assert all(named in said[name] for name, named in _OPTIONAL.items()), said


@pytest.mark.slow
@pytest.mark.parametrize("program", ["fljax-audit", "python -m fljax.audit"])
def test_it_audits_a_recording_in_an_empty_folder(python, tmp_path, program):
    _run(tmp_path, python, "-c", _RECORD)
    first, *rest = program.split()
    told = (
        "--transcript=seen", "--known=rows.csv", "--target=y", "--sensitive=married",
        "--client_column=client", "--model=linear",
        "--attacks=model,linear_inversion,reconstruct", "--run_dir=out",
    )  # fmt: skip
    said = _run(tmp_path, python.parent / first, *rest, *told)
    assert "imputation" in said and "strangers" in said and "reconstruct" in said
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"manifest.json", "report.html", "rows.jsonl"} <= names
