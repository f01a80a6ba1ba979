"""The wall between what attacks are given and what scores compare with."""

import importlib
import pkgutil

import numpy as np
import pytest

from experiments import aia, tabular
from experiments.aia import (
    active,
    adversary,
    attacks,
    controls,
    gradients,
    kinds,
    pipeline,
    strangers,
)
from tests.truth import imports, leaks

_KINDS = "model,grad,active,linear_inversion,trajectory"
_TOY = ("--data_name=toy", "--model_name=linear", "--learning_rate=1e-3")


@pytest.fixture
def given(monkeypatch):
    """What every attack is given, and the setup of the run; no attack is run."""
    received, setups = [], []
    for module, name in (
        (attacks, "run"), (gradients, "run"), (gradients, "run_active"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, lambda *args: received.append(args) or [])
    monkeypatch.setattr(active, "run", lambda *args: [])
    prepare = pipeline.prepare

    def prepared(*args):
        setups.append(prepare(*args))
        return setups[-1]

    monkeypatch.setattr(pipeline, "prepare", prepared)
    return received, setups


@pytest.mark.parametrize(
    "more, attacked",
    [
        ([f"--attack_kinds={_KINDS}"], 4),
        (["--attack_kinds=model", "--data_sensitive=bmi", "--attack_score=pooled"], 1),
        pytest.param(
            ["--attack_kinds=model,reconstruct", "--num_rounds=30", *_TOY],
            2,
            marks=pytest.mark.slow,
        ),
    ],
    ids=["all", "pooled and continuous", "linear"],
)
def test_nothing_that_an_attack_is_given_leads_to_the_truth(
    run, given, monkeypatch, more, attacked
):
    monkeypatch.setattr(kinds.oracle, "reconstruction_rows", lambda *args: [])
    code, _, errors = run(*more)
    assert code == 0, errors
    received, (setup,) = given
    truth = {
        "column": setup.targets.value,
        "encoded": np.asarray(setup.clients.rows.x.numeric)[..., -1],
    }
    assert leaks(setup, truth)
    assert len(received) == attacked
    for arguments in received:
        assert not leaks(arguments, truth)


def test_an_attack_on_strangers_cannot_reach_their_truth_or_the_clients(
    run, monkeypatch
):
    received, drawn = [], []
    draw, repeated = strangers.draw, controls.repeated
    monkeypatch.setattr(strangers, "draw", lambda s: drawn.append(draw(s)) or drawn[-1])

    def watched(name, found, again, adversary):
        received.append((again, adversary))
        return repeated(name, found, again, adversary)

    monkeypatch.setattr(controls, "repeated", watched)
    assert run("--attack_kinds=model,grad", "--attack_controls=strangers")[0] == 0
    (truth,) = drawn
    assert leaks(truth, {"column": truth.targets.value})
    assert len(received) == 2
    assert not leaks(received, {"column": truth.targets.value})


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def test_only_what_scores_imports_the_truth():
    modules = [
        importlib.import_module(f"{package.__name__}.{each.name}")
        for package in (aia, tabular)
        for each in pkgutil.iter_modules(package.__path__)
        if each.name != "__main__"
    ]
    named = {
        _last(module.__name__)
        for module in modules
        if "experiments.tabular.targets" in imports(module, "experiments", direct=True)
    }
    # Those that split it from the data, and those that hand it to the scores.
    scoring = {
        "baselines", "ceilings", "errors", "population", "posteriors", "result_rows",
        "scoring", "true_rows",
    }  # fmt: skip
    assert named == {"clients", "setup", "pipeline", "strangers"} | scoring


@pytest.mark.parametrize("module", [adversary, attacks, controls, gradients])
def test_attacks_import_neither_the_truth_nor_what_has_it(module):
    found = {_last(name) for name in imports(module, "experiments")}
    truth = {"targets", "clients", "setup", "population", "strangers"}
    assert not found & (truth | {"baselines", "scoring", "true_rows", "oracle", "wall"})
    assert "targets" in {_last(name) for name in imports(kinds, "experiments")}
