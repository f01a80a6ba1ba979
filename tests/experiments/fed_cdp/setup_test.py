"""Which rows and clients a training has, and how they are laid out."""

import pytest

from experiments.fed_cdp import clients, setup
from experiments.fed_cdp.methods import Variant
from experiments.fed_cdp.settings import Config, DataConfig, Settings, complete
from fljax import accelerators
from fljax.defenses import specs


def _prepared(variant: Variant, **changes) -> setup.Setup:
    small = {"num_rounds": 2, "local_steps": 4, "batch_size": 5, "rows_per_client": 7}
    run = Config(partition="random", seeds=(0, 1), **small | changes)
    data = DataConfig(name="breast_cancer")
    run = complete(Settings(data, run)).run
    return setup.prepare(run, clients.load(data, run), variant)


def test_copies_are_those_of_the_row_that_most_clients_hold():
    found = _prepared(Variant((specs.NONE,), 300, 1.0, 7))
    mean = 300 * 7 / len(found.task.train)
    assert found.copies > 1.5 * mean
    assert found.copies <= 300


@pytest.mark.parametrize(
    "accelerator, lanes, side_by_side",
    [(False, None, 10), (True, None, 30), (True, 4, 4)],
)
def test_clients_of_a_round_are_side_by_side_as_suits_the_device(
    monkeypatch, accelerator, lanes, side_by_side
):
    monkeypatch.setattr(accelerators, "used", lambda: accelerator)
    found = _prepared(Variant((specs.NONE,), 300, 10.0, 7), lanes=lanes)
    assert found.tables.schedule.num_lanes == side_by_side
