"""How a program ends: its exit code, and one line for whoever started it."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from fljax.driver import config

_ROOT = pathlib.Path(config.__file__).parents[2]

_SCRIPT = """
    import dataclasses
    from fljax.driver import config, launch

    ENDS = {"data": LookupError("no such file:\\n  income.csv"),
            "memory": MemoryError("8 GB are needed"),
            "device": RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes."),
            "full": OSError(28, "No space left on device", "out"),
            "interrupt": KeyboardInterrupt(), "defect": RuntimeError("a defect")}

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Federation:
        batch_size: int = dataclasses.field(
            default=32, metadata={"help": "rows in a batch", "min": 1})
        end: str = dataclasses.field(default="", metadata={"help": "how to end"})

    config.define(Federation, "f")

    def main():
        given = config.read(Federation, "f")
        if given.end in ENDS:
            raise ENDS[given.end]
        print(given.batch_size)
        return 3 if given.end == "three" else None

    launch.app_main(main, (LookupError,))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("script")
    (folder / "script.py").write_text(textwrap.dedent(_SCRIPT))
    (folder / "given.flags").write_text("# a comment\n--f_batch_size=5\n")
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True}

    def call(*arguments):
        command = [sys.executable, "script.py", *arguments]
        return subprocess.run(command, check=False, **options)

    return call


ENDINGS = {
    "defaults": ([], 0, "32"),
    "a flagfile": (["--flagfile=given.flags"], 0, "5"),
    "its own code": (["--f_end=three"], 3, "32"),
    "out of bounds": (
        ["--f_batch_size=0"],
        2,
        "--f_batch_size: expected an integer >= 1, got 0",
    ),
    "no number": (
        ["--f_batch_size=x"],
        2,
        "--f_batch_size: expected an integer >= 1, got 'x'",
    ),
    "unknown": (["--nothing=1"], 2, "Unknown command line flag 'nothing'"),
    "no flag": (["extra"], 2, "arguments: expected flags only, got 'extra'"),
    "no data": (["--f_end=data"], 2, "no such file: income.csv"),
    "no memory": (["--f_end=memory"], 2, "not enough memory: 8 GB are needed"),
    "no memory of a device": (
        ["--f_end=device"],
        2,
        "not enough memory: Out of memory allocating 9 bytes.",
    ),
    "full": (["--f_end=full"], 2, "cannot be written: No space left on device: out"),
    "interrupt": (["--f_end=interrupt"], 130, "interrupted"),
}


@pytest.mark.parametrize("arguments, code, line", ENDINGS.values(), ids=ENDINGS)
def test_a_program_ends_with_its_exit_code_and_one_line(run, arguments, code, line):
    done = run(*arguments)
    assert done.returncode == code
    assert (done.stdout + done.stderr).splitlines() == [line]
    assert bool(done.stderr) == (code in (2, 130))


def test_a_missing_flagfile_is_one_line(run):
    done = run("--flagfile=absent.flags")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and "absent.flags" in done.stderr


def test_a_defect_keeps_its_traceback(run):
    done = run("--f_end=defect")
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "RuntimeError: a defect" in done.stderr


def test_help_shows_the_flags_of_the_script_with_their_bounds(run):
    assert "--f_batch_size: rows in a batch (an integer >= 1)" in run("--help").stdout
