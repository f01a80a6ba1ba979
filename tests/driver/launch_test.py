"""The first seconds of a program: help, a closed pipe, Ctrl-C while it is imported."""

import os
import pathlib
import subprocess
import sys

import pytest

from fljax.driver import launch

_ROOT = pathlib.Path(launch.__file__).parents[2]
_PROGRAM = '''"""Counts leaks.

As a program."""
from absl import flags

class PROGRAM:
    mistakes = ()

    def define():
        for number in range(5000):  # more than a pipe holds
            flags.DEFINE_integer(f"rows{number}", number, "how many")

    def sections():
        every = [f"rows{number}" for number in range(5000)]
        return {"first of all": ["rows7"], "run": every}

    def main():
        print("done")
'''


@pytest.fixture
def run(tmp_path):
    """Runs a program of this text; the rest goes to the shell behind it."""

    def call(text, rest=""):
        (tmp_path / "counting.py").write_text(text)
        start = "from fljax.driver import launch\nlaunch.run('counting')\n"
        (tmp_path / "start.py").write_text(start)
        return subprocess.run(
            ["bash", "-c", f"set -o pipefail; '{sys.executable}' start.py {rest}"],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(_ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    return call


def test_a_program_is_imported_and_run(run):
    done = run(_PROGRAM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_help_says_what_the_program_does_before_its_flags(run):
    said = run(_PROGRAM, "--help").stdout
    first = "\n\nfirst of all:\n  --rows7: how many (default: 7)\n\nrun:\n  --rows0:"
    assert said.startswith(f"Counts leaks.\n\nAs a program.{first}")
    assert said.count("--rows7: how many") == 1


def test_a_reader_that_has_enough_is_no_error(run):
    done = run(_PROGRAM, "-h | head -n 1")
    assert (done.returncode, done.stdout) == (1, "Counts leaks.\n")
    assert not done.stderr


def test_an_interrupt_while_the_program_is_imported_has_its_exit_code(run):
    done = run("raise KeyboardInterrupt")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_a_flagfile_that_is_no_text_is_one_line(run, tmp_path):
    (tmp_path / "bytes.flags").write_bytes(b"--rows1=\xff\xfe")
    done = run(_PROGRAM, "--flagfile=bytes.flags")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("--flagfile: expected a text file in UTF-8")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_finds_no_room_is_one_line(run):
    done = run(_PROGRAM, "> /dev/full")
    assert done.returncode == 2
    assert done.stderr == "cannot be written: No space left on device\n"


def test_what_strangers_wrote_does_not_steer_the_terminal(run):
    said = "\\x1b[31m" + "\\x1b]0;name\\x07" + "x" * 120_000 + " the end"
    text = _PROGRAM.replace("mistakes = ()", "mistakes = (KeyError,)")
    text = text.replace('print("done")', f'raise KeyError("{said}")')
    done = run(text)
    assert done.returncode == 2 and done.stdout == ""
    assert "\x1b" not in done.stderr and "\\x1b[31m" in done.stderr
    assert len(done.stderr) < 2000 and done.stderr.endswith(" the end'\n")


def test_flagfiles_that_name_themselves_are_refused(run, tmp_path):
    (tmp_path / "one.flags").write_text("--flagfile=two.flags\n--rows1=2\n")
    (tmp_path / "two.flags").write_text("--flagfile=one.flags\n")
    done = run(_PROGRAM, "--flagfile=one.flags")
    said = "--flagfile: expected files that do not name themselves\n"
    assert (done.returncode, done.stderr) == (2, said)
