"""Two processes that meet over the loopback compute what one does, also when killed."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from fljax import results

_SECONDS = 240
_PROGRAMS = {
    "aia": (
        "--data_name=diabetes", "--data_sensitive=sex", "--model_name=mlp",
        "--model_hidden=8", "--partition_clients=2", "--num_rounds=20",
        "--learning_rate=0.05", "--seeds=0,1", "--attack_kinds=model,grad",
        "--attack_grad_rounds=1,3", "--attack_grad_learning_rates=100",
        "--attack_grad_iterations=20",
    ),
    "fed_cdp": (
        "--data_name=breast_cancer", "--clients=20", "--num_rounds=4",
        "--local_steps=5", "--rows_per_client=20", "--learning_rates=0.01,0.03",
        "--tuning_rounds=2", "--seeds=0,1",
    ),
    "label_distribution": (
        "--data_name=digits", "--clients=6", "--num_rounds=3", "--seeds=0,1",
        "--defense=none", "--train_clients=120", "--basis_clients=40",
        "--test_clients=40", "--predictor_hidden=32", "--predictor_epochs=5",
    ),
}  # fmt: skip

# Two trainings on two devices are other arithmetic than one on each.
_TOLERANCE = {"aia": 0.0, "fed_cdp": 1e-5, "label_distribution": 5e-3}

# Attacks whose training makes more than last digits of last digits.
_LEARNT = ("predictor",)


def _start(program, folder, devices, *arguments):
    return subprocess.Popen(
        (sys.executable, "-m", f"experiments.{program}", *_PROGRAMS[program],
         f"--run_dir={folder}", "--checkpoint_minutes=0", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JAX_NUM_CPU_DEVICES": str(devices)},
    )  # fmt: skip


def _start_two(program, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
    return [
        _start(program, folder, 1, address, "--num_processes=2", f"--process_id={at}")
        for at in range(2)
    ]


def _end(*processes):
    said = [process.communicate(timeout=_SECONDS) for process in processes]
    assert not any(process.returncode for process in processes), said
    return [out for out, _ in said]


def _kill_once_something_is_kept(processes, folder):
    end = time.monotonic() + _SECONDS
    while not any(path.name != "identity.json" for path in _kept(folder)):
        assert time.monotonic() < end
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def _kept(folder):
    """Files that are complete."""
    found = (folder / "unfinished").rglob("*")
    return [p for p in found if p.suffix == ".json" or p.name.isdecimal()]


@pytest.mark.slow
@pytest.mark.parametrize("program", _PROGRAMS)
def test_two_processes_write_what_one_writes_also_if_both_were_killed(
    tmp_path, program
):
    _end(_start(program, tmp_path / "one", 2))
    _kill_once_something_is_kept(
        _start_two(program, tmp_path / "two"), tmp_path / "two"
    )
    first, second = _end(*_start_two(program, tmp_path / "two"))
    assert "results, figures and manifest are in" in first
    assert "results" not in second
    names = {path.name for path in (tmp_path / "one").iterdir()}
    assert {path.name for path in (tmp_path / "two").iterdir()} == names
    one, two = (
        results.read_rows(tmp_path / each / "rows.jsonl") for each in ("one", "two")
    )
    values, again = (
        [row.value for row in rows if row.attack not in _LEARNT] for rows in (one, two)
    )
    assert again == pytest.approx(values, rel=_TOLERANCE[program], abs=0)
    assert [row._replace(value=0) for row in two] == [r._replace(value=0) for r in one]
