"""An audit beside experiments.aia, on the same federation."""

import numpy as np
import pytest
from rich import progress

from experiments.aia import active_config, attacks, pipeline, scoring, settings, wall
from experiments.aia.setup import Settings
from experiments.tabular import clients, federation
from experiments.tabular import settings as training
from fljax import partition, transcript
from fljax.results import Labels

_ROUNDS, _CLIENTS = 6, 3


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [(), (8,)], ids=["linear", "mlp"])
def test_the_model_based_attack_is_that_of_experiments_aia(tmp_path, audited, hidden):
    """Recorded as arrays and attacked from a CSV file, it has the same accuracy."""
    model = training.ModelConfig(
        name="mlp" if hidden else "linear", hidden=hidden or (1,)
    )
    theirs, mask = _attack(tmp_path, model)
    answers, lines = audited(
        tmp_path, target="progression", sensitive="sex", attacks=("model",),
        model="mlp:8" if hidden else "linear", standardise=True,
        standardise_target=True, drop_first=True, input_order="neural",
    )  # fmt: skip
    assert [line.attack for line in lines] == ["model", "model_global"]
    for line in lines:
        guess, rows = theirs[line.attack]
        found = [number.value for number in line.clients]
        assert found == [row.value for row in rows if row.client != "all"]
        ours = answers[line.attack].value
        np.testing.assert_array_equal(ours[mask], guess[0][mask])
        assert [number.n for number in line.clients] == [
            row.n for row in rows if row.client != "all"
        ]


def _attack(folder, model: training.ModelConfig):
    """Trains, records and attacks: attack -> guesses and rows; and which are real."""
    config = Settings(
        data=training.DataConfig(preset="neural"),
        partition=training.PartitionConfig(clients=_CLIENTS),
        model=model,
        train=training.TrainConfig(num_rounds=_ROUNDS, learning_rate=0.05),
        attack=settings.AttackConfig(kinds=("model",)),
        active=active_config.ActiveConfig(),
        oracle=active_config.OracleConfig(),
        trajectory=settings.TrajectoryConfig(),
        defense=training.DefenseConfig(),
        run=settings.RunConfig(),
    )
    setup = pipeline.prepare(clients.load_table(config.data), config, "")
    seen = federation.train(
        setup.problem, chunk=_ROUNDS, progress=lambda done: None
    ).transcript
    _export(folder, setup.clients)
    _record(folder / "seen", seen)
    adversary = wall.eavesdrop(setup, seen, progress.Progress())
    labels = Labels("aia", "diabetes", model.name)
    scored = scoring.Scoring(
        labels, setup.targets, setup.problem.loss_fn, linear=False, pooled=False
    )
    attacked = attacks.run("model", adversary, config.attack, config.trajectory)
    found = {
        each.name: (each.prediction.value, scoring.rows(scored, each))
        for each in attacked
    }
    return found, setup.known.mask[0]


def _export(folder, clients):
    train = clients.datasets[0].train
    parts = partition.contiguous(len(train.y), _CLIENTS)
    owner = np.concatenate([np.full(len(p), c) for c, p in enumerate(parts)])
    train.frame.assign(client=owner).to_csv(folder / "rows.csv", index=False)


def _record(stem, seen):
    """Plain NumPy arrays, round by round."""
    arrays = {
        f"{layer}/{name}": (np.asarray(sent[0]), np.asarray(seen.delta[layer][name][0]))
        for layer, leaves in seen.params.items()
        for name, sent in leaves.items()
    }
    with transcript.Recorder(stem, {"batch_size": 32}) as recorder:
        for number in range(_ROUNDS):
            sent = {name: sent[number] for name, (sent, _) in arrays.items()}
            returned = {
                client: {
                    name: sent[number] - delta[number, client]
                    for name, (sent, delta) in arrays.items()
                }
                for client in range(_CLIENTS)
            }
            recorder.record(number, sent, returned)
