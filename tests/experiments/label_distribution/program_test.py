"""Label-distribution inference on something small: what it writes and refuses."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from experiments import defense_options
from experiments.label_distribution import (
    clusters,
    defended,
    program,
    reporting,
    training,
)
from experiments.label_distribution import task as task_lib
from experiments.label_distribution.attacking import SETTINGS
from experiments.label_distribution.settings import (
    Config,
    DataConfig,
    Settings,
    complete,
)
from fljax import results
from fljax.driver.config import ConfigError
from fljax.privacy import exact

_FLAGS = sorted(pathlib.Path("experiments/flags").glob("label_distribution.*.flags"))
_SMALL = {
    "train_clients": 32, "basis_clients": 16, "test_clients": 10, "hidden": (8,),
    "rows_per_client": 20, "batch_size": 10, "predictor_hidden": (8,), "lanes": 1,
    "predictor_epochs": 2, "chunk": 16, "kept": 16, "num_rounds": 2, "eval_every": 1,
    "clients": 4, "percent": 50.0, "trials": 2, "eval_rows": 20, "alphas": (0.1, 10.0),
}  # fmt: skip

_RUN = set(SETTINGS) - {"simulated_path"}


def _told(**changes) -> Settings:
    return Settings(DataConfig(), Config(**_SMALL | changes))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a run with all there is, and its rows."""
    return _write(
        tmp_path_factory.mktemp("runs") / "run",
        defense="none; fed_sdp(clip=4, sigma=2)", attackers=("aware", "unaware"),
    )  # fmt: skip


def _write(folder, **told):
    program.PROGRAM.run(_told(**told, run_dir=str(folder)))
    return folder, results.read_rows(folder / "rows.jsonl")


@pytest.mark.slow
@pytest.mark.long("a whole program, run once for the tests of this file")
def test_a_run_writes_rows_figures_and_a_manifest(written):
    folder, rows = written
    assert {path.name for path in folder.iterdir()} == {
        "rows.jsonl", "manifest.json", "leakage_by_defense.svg",
        "leakage_by_utility.svg", "accuracy_by_round.svg", "example_clients.svg",
    }  # fmt: skip
    manifest = json.loads((folder / "manifest.json").read_text())
    (promised,) = manifest["defense"].values()
    assert promised["epsilon"] > 0
    assert "one client" in promised["assumption"]
    leaks = {
        (r.defense, r.point, r.attack) for r in rows if r.metric == "total_variation"
    }
    parts = ("", "alpha=0.1", "alpha=10")
    both = ("none", "fed_sdp(clip=4, sigma=2)")
    assert leaks == {(d, p, a) for d in both for p in parts for a in _RUN}
    trials = {r.seed for r in rows if r.metric == "accuracy_percent"}
    assert trials == {0, 1}


@pytest.mark.slow
def test_one_client_of_each_concentration_is_an_example(written):
    shares: dict[tuple[str, str], list[float]] = {}
    for row in written[1]:
        if row.metric == "share_percent":
            alpha = row.point.partition(";")[0]
            shares.setdefault((alpha, row.attack), []).append(row.value)
    attacks = {"true", *_RUN}
    assert shares.keys() == {(a, w) for a in ("alpha=0.1", "alpha=10") for w in attacks}
    for (_, attack), values in shares.items():
        assert len(values) == 10
        if attack == "true":
            assert sum(values) == pytest.approx(100, abs=1e-3)


@pytest.mark.slow
def test_clips_without_noise_promise_no_number(tmp_path):
    told = {"attackers": ("aware",), "defense": "fed_sdp(clip=4, sigma=0)"}
    folder, _ = _write(tmp_path / "run", **told)
    manifest = json.loads((folder / "manifest.json").read_text())
    (promised,) = manifest["defense"].values()
    assert promised["epsilon"] == "infinite"


@pytest.mark.slow
def test_a_simulated_path_is_an_attack_more(tmp_path):
    told = {"attackers": ("aware",), "num_rounds": 0, "defense": "none"}
    _, rows = _write(tmp_path / "run", path_steps=2, **told)
    expected = {*SETTINGS, "true"} - {"predictor_unaware"}
    assert {r.attack for r in rows} == expected


@pytest.mark.slow
def test_a_training_that_diverges_is_refused(tmp_path):
    told = {"attackers": ("aware",), "num_rounds": 0, "learning_rate": 1e30}
    with pytest.raises(ConfigError, match="^--learning_rate: clients' training div"):
        _write(tmp_path / "run", **told)


def test_a_path_of_adam_is_refused():
    with pytest.raises(ConfigError, match="--path_steps: expected 0 .* sgd, got 4"):
        complete(_told(path_steps=4, optimiser="adam"))


@pytest.mark.slow
def test_numbers_are_the_same_to_the_bit_whatever_else_is_run(written, tmp_path):
    _, first = written
    _, second = _write(tmp_path / "run", defense="none", attackers=("aware",))
    shared = [
        row
        for row in first
        if row.defense == "none" and row.attack != "predictor_unaware"
    ]
    assert list(map(repr, shared)) == list(map(repr, second))


@pytest.mark.slow
def test_the_mean_over_concentrations_is_that_over_clients(written):
    _, rows = written
    chosen = [
        r
        for r in rows
        if (r.metric, r.attack, r.defense) == ("total_variation", "predictor", "none")
    ]
    whole, *parts = chosen
    assert [r.n for r in chosen] == [10, 5, 5]
    assert whole.value == pytest.approx(np.mean([r.value for r in parts]))


@pytest.mark.slow
def test_without_a_defense_both_adversaries_are_the_same(written):
    _, rows = written
    aware, unaware = (
        [r.value for r in rows if r.attack == name and r.defense == "none"]
        for name in ("predictor", "predictor_unaware")
    )
    assert aware and aware == unaware


@pytest.mark.slow
def test_tables_show_every_attack(written):
    _, rows = written
    first, second = reporting.tables(rows)
    assert first.row_count == second.row_count == 2 * len(_RUN)
    assert len(second.columns) == 2 + 2


@pytest.mark.slow
def test_clusters_have_rows_for_each_layer_and_kind(tmp_path):
    told = _told(study="clusters", run_dir=str(tmp_path / "run"), cluster_clients=20)
    program.PROGRAM.run(told)
    rows = results.read_rows(tmp_path / "run" / "rows.jsonl")
    layers = {clusters.WHOLE, "TabularDense_0", "Dense_0"}
    points = {f"{kind};layer={layer}" for kind in clusters.KINDS for layer in layers}
    assert {r.point for r in rows} == points
    assert {r.metric for r in rows} == {"silhouette", "nearest_centroid_percent"}
    assert (tmp_path / "run" / "clusters.svg").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"components": 16}, "--components: expected at most"),
        ({"chunk": 3, "lanes": 2}, "--chunk: expected a multiple of --lanes=2"),
        ({"model": "autoencoder"}, "--num_rounds: expected 0 for an autoencoder"),
        ({"model": "cnn"}, "--hidden: is of --model=mlp, got cnn"),
        ({"test_clients": 2, "alphas": (1.0, 2.0, 3.0)}, "--test_clients: expected"),
        (
            {"study": "clusters", "defense": "median"},
            "--defense: expected none for --study=clusters, got median",
        ),
    ],
    ids=["components", "chunk", "autoencoder", "widths", "few clients", "clusters"],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        complete(_told(**changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("salt", "--defense: salt: expected none, module:attribute, or"),
        ("median; median", "--defense: median: expected each defense once"),
        ("dp_sgd(clip=1, sigma=1)", "--defense=dp_sgd.* Poisson samples"),
        ("median(deviation=-1)", "--defense: median: deviation: expected a number >="),
    ],
)
def test_a_defense_that_cannot_be_is_refused(text, message):
    told = complete(_told(defense=text))
    with pytest.raises(ConfigError, match=message):
        defended.read(told.run, task_lib.load(told)[0])


def test_a_clip_decays_over_the_rounds_of_fedavg():
    text = "fed_sdp(clip=2, decay_to=1, sigma=1)"
    told = complete(_told(defense=text, num_rounds=0))
    with pytest.raises(ConfigError, match="--defense=fed_sdp.* decay_to"):
        defended.read(told.run, task_lib.load(told)[0])
    told = complete(_told(defense=text, num_rounds=3, attack_round=2))
    task = task_lib.load(told)[0]
    (spec,) = defended.read(told.run, task)
    assert training.recipe_of(told.run, task, spec).round == 2


def test_a_budget_covers_the_rounds_of_fedavg():
    told = complete(_told(defense="fed_sdp(clip=1, epsilon=2, accountant=pld)"))
    task, _ = task_lib.load(told)
    (spec,) = defended.read(told.run, task)
    (promise,) = defended.promises(told.run, task, spec)
    assert 0.99 * 2 < promise.guarantee.epsilon_pld.max() <= 2
    for rounds, attacked in ((0, 0), (2, 2)):
        changed = dataclasses.replace(
            told.run, num_rounds=rounds, attack_round=attacked
        )
        with pytest.raises(ConfigError, match="--num_rounds: expected more than"):
            defended.read(changed, task)


def test_a_record_is_in_a_step_of_each_epoch_of_every_round():
    told = complete(
        _told(defense="fed_cdp(clip=1, sigma=4)", num_rounds=3, local_epochs=2)
    )
    task, _ = task_lib.load(told)
    (spec,) = defended.read(told.run, task)
    (promise,) = defended.promises(told.run, task, spec)
    multiplier = float(promise.noise.noise_multiplier)
    expected = exact.gaussian(multiplier, [3 * 2], [1.0], told.run.delta)
    assert promise.guarantee.epsilon_pld == pytest.approx(expected, rel=1e-3)


def test_an_epsilon_of_a_client_has_another_name_than_that_of_a_record():
    told = complete(_told(defense="fed_sdp(clip=1, sigma=1)", num_rounds=2))
    task, _ = task_lib.load(told)
    (spec,) = defended.read(told.run, task)
    case = reporting.Case(spec, {}, [], defended.promises(told.run, task, spec))
    (row,) = reporting.rows(task, case, 1)
    assert row.metric == "client_epsilon_pld"


def test_noise_of_a_server_promises_nothing_to_whose_messages_are_read():
    told = complete(
        _told(defense="fed_sdp(clip=1, sigma=1, where=server)", num_rounds=2)
    )
    task, _ = task_lib.load(told)
    (spec,) = defended.read(told.run, task)
    assert defended.promises(told.run, task, spec) == []


@pytest.mark.parametrize("path", _FLAGS, ids=lambda path: path.stem)
def test_a_flagfile_parses(parsed, path):
    told = complete(parsed(program.PROGRAM, f"--flagfile={path}"))
    assert told.run.run_dir == f"runs/{path.stem}"
    assert defense_options.parse_all(told.run.defense)
