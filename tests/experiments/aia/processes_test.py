"""Two processes that meet over the loopback compute what one does."""

import socket
import subprocess
import sys

import pytest

_SECONDS = 240
_COMMAND = (
    sys.executable, "-m", "experiments.aia", "--data_name=diabetes",
    "--data_sensitive=sex", "--model_name=mlp", "--model_hidden=8",
    "--partition_clients=2", "--num_rounds=20", "--learning_rate=0.05", "--seeds=0,1",
    "--attack_kinds=model,grad", "--attack_grad_rounds=1,3",
    "--attack_grad_learning_rates=100", "--attack_grad_iterations=20",
)  # fmt: skip


def _start(folder, devices, *arguments):
    return subprocess.Popen(
        (*_COMMAND, f"--run_dir={folder}", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"JAX_NUM_CPU_DEVICES": str(devices), "PATH": ""},
    )


@pytest.mark.slow
def test_two_processes_write_what_one_writes(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
    processes = [_start(tmp_path / "one", 2)]
    processes += [
        _start(
            tmp_path / "two", 1, address, "--num_processes=2", f"--process_id={number}"
        )
        for number in range(2)
    ]
    said = [process.communicate(timeout=_SECONDS) for process in processes]
    assert [p.returncode for p in processes] == [0, 0, 0], said
    assert "results, figures and manifest are in" in said[1][0]
    assert "results" not in said[2][0]
    for name in ("rows.jsonl", "accuracy_by_attack.svg", "loss_by_round.svg"):
        assert (tmp_path / "two" / name).read_bytes() == (
            tmp_path / "one" / name
        ).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num_processes=2"], "need --coordinator=HOST:PORT"),
        (["--coordinator=auto", "--process_id=0"], "need --coordinator=HOST:PORT"),
        (["--coordinator=127.0.0.1:1"], "needs --num_processes"),
        (
            ["--coordinator=127.0.0.1:1", "--num_processes=2", "--process_id=2"],
            "a smaller --process_id, got 2 and 2",
        ),
    ],
)
def test_flags_that_do_not_fit_are_refused_in_one_line(run, arguments, message):
    code, _, said = run(*arguments)
    assert code == 2
    assert message in said
    assert said.count("\n") == 1
