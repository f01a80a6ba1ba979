"""What attacks of every program import, and what they are handed: never the truth."""

import importlib

import numpy as np
import pytest

from experiments.gradient_leakage import attack as inversion
from experiments.gradient_leakage import blocks, messages, targets, views
from experiments.gradient_leakage import program as gradient_leakage
from experiments.gradient_leakage import settings as inversion_settings
from experiments.gradient_leakage import truth as images
from tests import truth

# Program -> modules of its attack, and those that hold the truth or compare with it.
_WALLS = {
    "gradient_leakage": (("attack", "adversary"), ("truth", "messages", "scores")),
}


@pytest.mark.parametrize(
    ("program", "module"),
    [(program, module) for program, (ours, _) in _WALLS.items() for module in ours],
)
def test_attacks_import_neither_truth_nor_scores(program, module):
    package = f"experiments.{program}"
    imported = truth.imports(importlib.import_module(f"{package}.{module}"), package)
    assert f"{package}.settings" in imported or module == "estimates"  # it sees some
    assert not imported & {f"{package}.{name}" for name in _WALLS[program][1]}


def test_what_inverts_gradients_cannot_reach_an_image_or_a_label(parsed):
    told = inversion_settings.Told(
        *parsed(gradient_leakage.define, "--clients=4", "--images=2", "--types=1")
    )
    data, run = inversion_settings.complete(told)
    attacked, owned = images.load(data, run)
    network = targets.network("lenet", attacked, run.seed)
    together = blocks.Blocks(attacked.num_clients, run.at_once)
    senders = messages.Senders(run, owned, network, together)
    attack = inversion.Attack(run, attacked, network, together)
    clients = np.arange(4, dtype=np.int32)
    view = views.views(run)[0]
    seen = senders.observed(view, 0.0, clients)
    programs = [attack._program(example) for example in (False, True)]
    received = attack, programs, view, clients, seen
    wanted = {"images": owned.x, "labels": owned.y}
    assert not truth.leaks(received, wanted)
    assert truth.leaks(senders, wanted)
