"""The most that any adversary can have: from the noise of a run and its baselines."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiments.aia import baselines, ceilings, pipeline, program
from experiments.tabular import budgets
from fljax import privacy, verdicts
from fljax.data import load
from fljax.results import Labels


@pytest.fixture
def setup(parsed):
    def make(*arguments):
        told = (
            "--attack_kinds=model", "--attack_controls=imputation", "--num_rounds=3",
            "--model_hidden=4", "--partition_clients=3", "--seeds=0,1",
        )  # fmt: skip
        parts = parsed(program.PROGRAM, *told, *arguments)
        return pipeline.prepare(load("diabetes"), program.Settings(*parts), "")

    return make


def _rows(made):
    labels = Labels("aia", "diabetes", "mlp")
    told = baselines.majority(labels, made.targets)
    found = ceilings.rows(made, labels, made.targets, told, baselines.Shared())
    values = {
        metric: np.array(
            [[row.value for row in found if (row.seed, row.metric) == (seed, metric)]
             for seed in (0, 1)]
        )
        for metric in (verdicts.CEILING, verdicts.ACCURACY.metric)
    }  # fmt: skip
    base = np.array(
        [[row.value for row in told if row.seed == seed] for seed in (0, 1)]
    )
    return values[verdicts.CEILING], np.maximum(base, values[verdicts.ACCURACY.metric])


def test_each_client_has_what_its_noise_and_the_best_guess_without_it_allow(
    setup, monkeypatch
):
    monkeypatch.setattr("fljax.imputation.choose", lambda *_: "linear")
    text = "dp_sgd(clip=1, epsilon=1) + fed_sdp(clip=1, sigma=0.1)"
    made = setup(f"--defense={text}", "--batch_size=none")
    most, without = _rows(made)
    assert most.shape == (2, 4)
    assert (without < most).all() and (most < 100).all()
    bound = made.problem.bound_defense
    noise, _ = bound.build(bound.of_seed(0)).noise  # that of clients allows more
    steps, rounds = bound.releases(0).of("record"), bound.rounds
    expected = privacy.accuracy_without(
        noise, steps, without[0, :3] / 100, rounds=rounds
    )
    np.testing.assert_allclose(most[0, :3], 100 * expected)
    weights = made.clients.sizes[0]
    assert most[0, 3] == pytest.approx(np.average(most[0, :3], weights=weights))


def test_who_is_scored_has_come(setup, monkeypatch):
    monkeypatch.setattr("fljax.imputation.choose", lambda *_: "linear")
    made = setup(
        "--defense=fed_sdp(clip=1, sigma=1)", "--participation=uniform",
        "--fraction=0.4", "--num_rounds=4",
    )  # fmt: skip
    most, without = _rows(made)
    bound = made.problem.bound_defense
    (noise,) = bound.build(bound.of_seed(0)).noise
    assert (noise.unit, noise.sampling) == ("client", "fixed")
    came = budgets.rounds_of_each(made.problem.schedule)[0]
    assert came.sum() == 4 and (came < 4).all()
    known = noise._replace(sampling="all", sampling_rate=1.0)
    expected = [
        privacy.accuracy_without(known, max(n, 1), share / 100)[0]
        for n, share in zip(came, without[0, :3], strict=True)
    ]
    np.testing.assert_allclose(most[0, :3], 100 * np.array(expected))


def test_a_row_is_in_the_steps_of_every_round_that_its_client_came_to(
    setup, monkeypatch
):
    monkeypatch.setattr("fljax.imputation.choose", lambda *_: "linear")
    made = setup(
        "--defense=dp_sgd(clip=1, sigma=2)", "--participation=uniform",
        "--fraction=0.4", "--num_rounds=4", "--local_epochs=2", "--batch_size=32",
    )  # fmt: skip
    most, without = _rows(made)
    bound = made.problem.bound_defense
    (noise,) = bound.build(bound.of_seed(0)).noise
    came = np.maximum(budgets.rounds_of_each(made.problem.schedule)[0], 1)
    steps = 2 * -(-made.clients.sizes[0] // 32)
    expected = privacy.accuracy_without(noise, steps * came, without[0, :3] / 100)
    np.testing.assert_allclose(most[0, :3], 100 * expected)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--defense=pruning(ratio=0.5)"], "nothing is promised against"),
        (["--defense=fed_sdp(clip=1, sigma=1, where=server)"], "whoever sees the messag"),
        (["--defense=dp_sgd(clip=1, sigma=0)"], "nothing is promised against"),
        (["--attack_controls="], "--attack_controls: without imputation"),
        (["--attack_score=pooled"], "--attack_score=pooled: rows are"),
        (["--attack_kinds="], "nothing is inferred"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)  # fmt: skip
def test_where_nothing_is_said_there_is_a_reason(setup, arguments, why):
    made = setup("--defense=dp_sgd(clip=1, sigma=1)", *arguments)
    assert why in ceilings.why_not(made)
    assert ceilings.rows(made, None, made.targets, [], None) == []


def test_nothing_is_said_of_a_number(setup):
    made = setup("--defense=dp_sgd(clip=1, sigma=1)", "--batch_size=none")
    assert not ceilings.why_not(made)
    number = made._replace(targets=made.targets._replace(continuous=True))
    assert "the sensitive column is a number" in ceilings.why_not(number)


def test_the_best_guess_without_a_message_counts_in_whatever_order():
    row = Labels("aia", "people", "mlp").row
    told = [
        row(*each[:2], 7, verdicts.ACCURACY.metric, each[2], 3, each[3])
        for each in (
            ("majority", "baseline", 80.0, 0), ("imputation", "baseline", 60.0, 0),
            ("imputation", "baseline", 99.0, "all"),
        )
    ]  # fmt: skip
    truth = SimpleNamespace(
        candidates=np.zeros((1, 2, 1)), mask=np.ones((1, 2, 3), bool), seeds=(7,)
    )
    np.testing.assert_allclose(ceilings._best(told, truth), [[0.8, 0.5]])


def test_the_owner_of_a_row_tells_of_it_too(monkeypatch):
    owner = np.array([-1, 0, 0, 1])
    known = SimpleNamespace(x=np.zeros((4, 2)), codes=np.zeros(2, bool))
    asked = []

    def crossed(people, seed, method):
        asked.append(people)
        return np.zeros(4)

    known._replace = lambda **more: SimpleNamespace(**more)
    everyone = SimpleNamespace(owner=owner)
    shared = SimpleNamespace(of=lambda rows, what, compute: compute())
    monkeypatch.setattr(ceilings.population, "of_seed", lambda setup, at: everyone)
    monkeypatch.setattr(ceilings.baselines, "learned", lambda setup, rows: known)
    monkeypatch.setattr(ceilings.baselines.imputation, "crossed", crossed)
    targets = SimpleNamespace(
        value=np.zeros((1, 2, 2)), mask=np.array([[[1, 1], [1, 0]]], bool)
    )
    setup = SimpleNamespace(
        targets=targets, config=SimpleNamespace(run=SimpleNamespace(seeds=(0,)))
    )
    ceilings._imputed(setup, 0, shared)
    assert asked[0].x[:, -1].tolist() == [0, 1, 1, 2] and asked[0].codes[-1]
