"""What attacks of every program import, and what they are handed: never the truth."""

import importlib

import numpy as np
import pytest

from experiments.gradient_leakage import attack as inversion
from experiments.gradient_leakage import blocks, messages, targets, views
from experiments.gradient_leakage import program as gradient_leakage
from experiments.gradient_leakage import settings as inversion_settings
from experiments.gradient_leakage import truth as images
from experiments.label_distribution import attacking, training
from experiments.label_distribution import clients as labelled
from experiments.label_distribution import program as label_distribution
from experiments.label_distribution import settings as label_settings
from experiments.label_distribution import task as label_task
from experiments.lmra import attack as decoding
from experiments.lmra import clients, federation, optimum
from experiments.lmra import settings as lmra_settings
from fljax.defenses import specs
from tests import truth

# Program -> modules of its attack, and those that hold the truth or compare with it.
_WALLS = {
    "gradient_leakage": (("attack", "adversary"), ("truth", "messages", "scores")),
    "label_distribution": (("attacking", "training"), ("clients", "scores")),
    "lmra": (("attack",), ("clients", "optimum", "scores", "search")),
    "membership": (("attacking",), ("coins", "trainings", "scores")),
    "rows": (("attacking",), ("batches", "scores")),
    "theory": (("estimates",), ("mitm_server", "theorem1", "slopes")),
}


@pytest.mark.parametrize(
    ("program", "module"),
    [(program, module) for program, (ours, _) in _WALLS.items() for module in ours],
)
def test_attacks_import_neither_truth_nor_scores(program, module):
    package = f"experiments.{program}"
    attack = importlib.import_module(f"{package}.{module}")
    imported = truth.imports(attack, package)
    some = {f"{package}.settings", f"{package}.views"}
    assert imported & some or module == "estimates"  # it sees some
    assert not imported & {f"{package}.{name}" for name in _WALLS[program][1]}
    tabular = truth.imports(attack, "experiments.tabular")
    assert not tabular & {"experiments.tabular.clients", "experiments.tabular.targets"}


def test_what_inverts_gradients_cannot_reach_an_image_or_a_label(parsed):
    told = inversion_settings.Settings(
        *parsed(gradient_leakage.PROGRAM, "--clients=4", "--images=2", "--types=1")
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


def test_what_decodes_messages_cannot_reach_a_row_or_an_optimum():
    data, run = lmra_settings.complete(
        lmra_settings.Settings(
            lmra_settings.DataConfig(sizes=(30, 20)),
            lmra_settings.Config(num_rounds=3, seeds=(0,)),
        )
    )
    loaded = clients.load(data, run)
    trained = federation.train(run, loaded)
    methods = [build(run, loaded.task) for build in decoding._METHODS.values()]
    received = decoding.decode, methods, run, loaded.task, trained.messages
    wanted = {"rows": loaded.rows.x.numeric, "labels": loaded.rows.y}
    wanted["optima"] = optimum.local_optima(loaded, run.ridge)
    assert not truth.leaks(received, wanted)
    assert truth.leaks(loaded, wanted)


def test_what_predicts_labels_cannot_reach_a_clients_rows_or_labels(parsed):
    told = label_settings.complete(
        label_settings.Settings(
            *parsed(
                label_distribution.PROGRAM, "--test_clients=4", "--alphas=1", "--rows_per_client=8",
                "--batch_size=8", "--hidden=4", "--chunk=4",
            )
        )
    )  # fmt: skip
    task, rows = label_task.load(told)
    sent = task.init(0)
    programs = training.Programs(told.run, task)
    attacked = labelled.Clients(told.run, rows, programs)
    ((messages, known),) = attacked.messages(specs.NONE, 0, sent)
    preparation = attacking.Preparation(told.run, task, programs, print)
    received = preparation, preparation._readers(sent), sent, messages
    wanted = {"images": rows.x, "labels": rows.y, "shares": known.labels}
    assert not truth.leaks(received, wanted)
    assert truth.leaks((attacked, known), wanted)
