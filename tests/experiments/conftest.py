"""Flags read as a program reads them, and programs run as their users run them."""

import dataclasses

import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver

from fljax import data
from fljax.driver import launch


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
