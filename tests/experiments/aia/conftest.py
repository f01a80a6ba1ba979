"""Runs the program on something small."""

import pytest

from experiments.aia.program import PROGRAM

PROGRAM.define()

_SMALL = (
    "--num_rounds=6",
    "--model_hidden=8",
    "--learning_rate=0.05",
    "--attack_grad_rounds=1,3",
    "--attack_grad_learning_rates=1e2,1e4",
    "--attack_grad_iterations=5",
    "--active_rounds=4",
    "--active_report=2,4",
    "--active_trials=3",
    "--active_grad_rounds=1,3",
    "--oracle_trials=3",
    "--oracle_epochs=5",
    "--attack_kinds=model,grad",
    "--attack_controls=",
)


@pytest.fixture
def run(tmp_path, command):
    """Runs the program in a folder of its own; returns exit code, output, errors."""

    def call(*arguments, folder="out"):
        told = (*_SMALL, f"--run_dir={tmp_path / folder}", *arguments)
        return command(PROGRAM.main, *told, errors=PROGRAM.mistakes)

    return call
