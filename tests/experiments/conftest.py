"""Flags read as a program reads them, and programs run as their users run them."""

import dataclasses

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from fljax import data
from fljax.driver import launch, stage_cache


@pytest.fixture
def images_by_name(monkeypatch):
    """Digits, twice, in the place of any images, named `NAME_SUBSET` as asked for."""
    digits = data.load_images("digits")
    twice = digits.train._replace(
        x=np.tile(digits.train.x, (2, 1, 1, 1)), y=np.tile(digits.train.y, 2)
    )

    def load(name, *, data_dir, subset):
        del data_dir
        return dataclasses.replace(digits, train=twice, name=f"{name}_{subset}")

    monkeypatch.setattr(data, "load_images", load)


@pytest.fixture
def command(capsys):
    """Runs a program's main function; returns exit code, output and errors."""

    def call(main, *arguments, errors=()):
        with flagsaver.flagsaver():
            try:
                with pytest.raises(SystemExit) as stopped:
                    launch.app_main(main, errors, argv=["program", *arguments])
            finally:
                flags.FLAGS.unparse_flags()
        said = capsys.readouterr()
        return stopped.value.code or 0, said.out, said.err

    return call


@pytest.fixture
def interrupted(monkeypatch):
    """Stops a program in a training after so many steps, and lets it go on.

    Returns the step from which it went on.
    """

    def run(program, settings, *, after):
        begun = []
        latest, reached = stage_cache.States.latest, stage_cache.States.reached

        def stop(states, step, state):
            reached(states, step, state)
            if step == after:
                raise KeyboardInterrupt

        def go_on(states, like):
            found = latest(states, like)
            begun.extend([] if found is None else [found[0]])
            return found

        group = dataclasses.replace(settings.run, checkpoint_minutes=9.0)
        settings = settings._replace(run=group)
        with monkeypatch.context() as patch:
            patch.setattr(stage_cache.States, "reached", stop)
            with pytest.raises(KeyboardInterrupt, match="goes on from"):
                program.run(settings)
        with monkeypatch.context() as patch:
            patch.setattr(stage_cache.States, "latest", go_on)
            program.run(settings)
        return begun[0]

    return run
