"""What the program is told, from flags."""

import pytest

from experiments.gradient_leakage import program, settings


@pytest.fixture(scope="session")
def told(parsed):
    """Reads flags as the program does."""

    def read(*arguments):
        return settings.Told(*parsed(program.define, *arguments))

    return read


@pytest.fixture(scope="session")
def completed(told):
    """The configuration of a run on two images, from further flags."""

    def complete(*arguments):
        return settings.complete(told("--images=2", *arguments)).run

    return complete
