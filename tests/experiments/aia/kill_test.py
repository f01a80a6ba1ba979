"""A run that is killed at any moment ends as if it had not been, to the bit."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

_KILLS = 10
_SECONDS = 240  # no process takes longer
_COMMAND = (
    sys.executable, "-m", "experiments.aia", "--data_name=diabetes",
    "--data_sensitive=sex", "--model_name=mlp", "--model_hidden=8",
    "--partition_clients=2", "--num_rounds=60", "--learning_rate=0.05", "--seeds=0,1",
    "--attack_kinds=model,grad", "--attack_grad_rounds=1,3",
    "--attack_grad_learning_rates=100", "--attack_grad_iterations=20",
)  # fmt: skip


def _start(folder, minutes):
    # Programs are compiled by the first process only.
    cache = {"JAX_COMPILATION_CACHE_DIR": str(folder.parent / "compiled")}
    always = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    told = f"--run_dir={folder}", f"--checkpoint_minutes={minutes}"
    return subprocess.Popen(
        (*_COMMAND, *told),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | cache | always,
        start_new_session=True,  # a terminal's signals are the test's own
    )


def _results(folder):
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name != "manifest.json"
    }


def _finish(folder, minutes=0):
    process = _start(folder, minutes)
    said = process.communicate(timeout=_SECONDS)[1]
    assert process.returncode == 0, said


def _stop(folder, after, how):
    """Whether there was still something to stop after so many seconds."""
    process = _start(folder, 0)
    try:
        said = process.communicate(timeout=after)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        said = process.communicate(timeout=_SECONDS)[1]
        if process.returncode == 0:
            return False  # it had just ended
        assert process.returncode == (130 if how == signal.SIGINT else -how), said
        return True
    assert process.returncode == 0, said
    return False


@pytest.mark.slow
def test_a_stopped_run_goes_on_and_ends_the_same(tmp_path):
    _finish(tmp_path / "first", "none")
    begin = time.monotonic()
    _finish(tmp_path / "whole", "none")
    took = time.monotonic() - begin
    wanted = _results(tmp_path / "whole")

    rng, kills, runs = random.Random(0), 0, 0
    while kills < _KILLS:
        folder, runs, before = tmp_path / f"killed{runs}", runs + 1, kills
        while kills < _KILLS and _stop(
            folder, rng.uniform(0.3, 1) * took, signal.SIGKILL
        ):
            kills += 1
        if kills == before:
            took *= 0.8  # was a slow one, on a busy machine
        _finish(folder)
        assert _results(folder) == wanted

    # `took` may have been a slow one, so that there is nothing left to interrupt.
    folders = {share: tmp_path / f"interrupted{share}" for share in (0.7, 0.6, 0.5)}
    stopped = next(
        folder
        for share, folder in folders.items()
        if _stop(folder, share * took, signal.SIGINT)
    )
    _finish(stopped)
    assert _results(stopped) == wanted
