"""Runs the program on something small."""

import pytest
from absl import flags
from absl.testing import flagsaver

from experiments import config
from experiments.aia import program

program.define()

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
)


@pytest.fixture
def run(tmp_path, capsys):
    """Runs the program in a folder of its own; returns exit code, output, errors."""

    def call(*arguments, folder="out"):
        with flagsaver.flagsaver():
            try:
                argv = ["aia", *_SMALL, f"--run_dir={tmp_path / folder}", *arguments]
                with pytest.raises(SystemExit) as stopped:
                    config.app_main(program.main, program.ERRORS, argv=argv)
            finally:
                flags.FLAGS.unparse_flags()
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return call
