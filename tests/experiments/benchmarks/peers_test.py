"""The leaderboard of shipped defenses: people, training, recording and rows."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from experiments.benchmarks import recording
from experiments.benchmarks.peers import (
    __main__ as board,
)
from experiments.benchmarks.peers import (
    auditing,
    catalogue,
    epochs,
    rows,
    scoring,
    training,
)
from fljax import transcript, verdicts
from fljax.driver.config import ConfigError

_SIZES = training.Sizes(message=0.5, gradient=2.0, changes={90: 0.1, 99: 0.2})
_MISSING = {
    "nvflare": "the extra `nvflare` is not installed",
    "flwr": "the extra `flower` is not installed",
    "opacus": "the extra `bench` is not installed",
}


@pytest.fixture(scope="module")
def setting():
    """Two clients of four rows with two inputs, and a model of two hidden units."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 2)).astype(np.float32)
    x[:, 1] = x[:, 1] > 0
    y = x.sum(axis=1)
    clients = rows.Rows(x[:4], y[:4]), rows.Rows(x[4:], y[4:])
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1].astype(int), "y": y})
    people = rows.People(clients, clients[0], frame, "y", "b", "regression")
    return training.Setting(people, training.Plan(2, 2, 2, 0.1, 0), _SIZES)


def _made(defense, setting):
    (entry,) = (each for each in catalogue.ENTRIES if each.defense == defense)
    if entry.package in _MISSING:
        pytest.importorskip(entry.package, reason=_MISSING[entry.package])
    return entry.make(setting)


def _never(client, sent, rng):
    raise AssertionError("the defense trains itself")


def _message(defense, setting, by):
    """What leaves a client whose every number changed by so much."""
    sent = training.start(setting.people, setting.plan)
    returned = {name: array + np.float32(by) for name, array in sent.items()}
    left = _made(defense, setting).message(sent, returned)
    assert {name: array.dtype for name, array in left.items()} == dict.fromkeys(
        sent, np.float32
    )
    return training.flat(left) - training.flat(sent)


def test_clients_have_equal_parts_of_the_training_rows_and_nobody_of_the_others():
    people = rows.deal(rows.load("diabetes"), 4, seed=0)
    sizes = {len(each.y) for each in people.clients}
    assert sizes == {99} and len(people.held_out.y) == 45
    assert (people.target, people.task) == ("progression", "regression")
    assert people.frame.client.value_counts().to_dict() == dict.fromkeys(range(4), 99)
    shown = people.frame.drop(columns=["progression", "client"]).to_numpy(np.float32)
    np.testing.assert_array_equal(shown, np.concatenate([c.x for c in people.clients]))
    assert set(people.frame[people.sensitive]) == {0, 1}


def test_a_table_of_ones_own_is_named_in_full(tmp_path):
    with pytest.raises(ConfigError, match="--data_target: expected it"):
        rows.load("csv", path="x.csv", target=None, sensitive="b")
    path = tmp_path / "x.csv"
    n = np.arange(40)
    pd.DataFrame({"a": n * 1.5, "b": n % 3, "y": n * 0.1}).to_csv(path, index=False)
    table = rows.load("csv", path=str(path), target="y", sensitive="a")
    with pytest.raises(ConfigError, match="column of two values, got 'a'"):
        rows.deal(table, 2, seed=0)


def test_what_is_recorded_is_what_left_the_client(setting, tmp_path):
    ended = []
    shipped = training.Shipped(
        epoch=lambda client, sent, rng: {k: v - client - 1 for k, v in sent.items()},
        message=lambda sent, own: {k: (sent[k] + own[k]) / 2 for k in sent},
        after=lambda: ended.append(True),
    )
    people, plan, _ = setting
    found = training.train(people, plan, _never, shipped, str(tmp_path / "seen"))
    seen, about = transcript.load(str(tmp_path / "seen"))
    np.testing.assert_allclose(seen.delta["w1"][:, 0], 0.5, atol=1e-6)
    np.testing.assert_allclose(seen.delta["b2"][:, 1], 1.0, atol=1e-6)
    np.testing.assert_allclose(found.params["b1"], -1.5)  # two rounds of the mean
    np.testing.assert_allclose(found.messages[0], -0.5, atol=1e-6)
    assert len(ended) == 2 and about["batch_size"] == 2 and "defense" not in about


def test_batches_of_an_epoch_are_disjoint(setting):
    masks = [*epochs.shuffled(setting.plan, np.random.default_rng(0), 5)]
    assert [mask.sum() for mask in masks] == [2, 2, 1]
    assert np.all(np.sum(masks, axis=0) == 1)


def test_the_percentile_filter_cuts_off_a_step_at_gamma(setting):
    change = _message("PercentilePrivacy(10, 90th percentile)", setting, 1.0)
    np.testing.assert_allclose(change, 0.2, rtol=1e-5)  # two steps
    change = _message("PercentilePrivacy(10, 0.01)", setting, 1e-3)
    np.testing.assert_allclose(change, 1e-3, atol=1e-6)


def test_an_excluded_layer_does_not_move(setting):
    change = _message("ExcludeVars(first layer)", setting, 1.0)
    assert sorted(set(np.round(change, 5))) == [0, 1]
    assert np.sum(change > 0.5) == 3  # w2 and b2


@pytest.mark.parametrize("by, norm", [(1.0, 0.5), (0.01, 0.03)])
def test_flowers_clip_binds_at_the_median_norm(setting, by, norm):
    change = _message("fixedclipping_mod, median", setting, by)
    assert np.linalg.norm(change) == pytest.approx(norm, rel=1e-4)


def test_flowers_adaptive_norm_grows_where_most_are_clipped(setting):
    shipped = _made("adaptiveclipping_mod", setting)
    sent = training.start(setting.people, setting.plan)
    returned = {name: array + 1 for name, array in sent.items()}
    norms = []
    for _ in range(2):
        change = training.flat(shipped.message(sent, returned)) - training.flat(sent)
        norms.append(np.linalg.norm(change))
        shipped.after()
    assert norms == pytest.approx([0.1, 0.1 * np.exp(0.1)], rel=1e-4)


def test_a_stated_epsilon_of_each_message_is_another_one_of_the_training(setting):
    shipped = _made("LocalDpMod, epsilon 1", setting)
    people, plan, _ = setting
    assert shipped.stated() == 1
    of_one = auditing.accounted(people, plan._replace(rounds=1), shipped)
    assert of_one == pytest.approx(0.751, abs=1e-3)
    hundred = auditing.accounted(people, plan._replace(rounds=100), shipped)
    assert hundred == pytest.approx(10.39, abs=0.01)


def test_what_is_not_installed_is_named_and_left_out(monkeypatch):
    versions = {"nvflare": None, "opacus": None}
    told = property(lambda entry: versions.get(entry.package, "1"))
    monkeypatch.setattr(catalogue.Entry, "version", told)
    with pytest.warns(UserWarning) as said:
        found = catalogue.installed(("nvflare", "optax"))
    assert [each.package for each in found] == ["optax"]
    (text,) = (str(each.message) for each in said)
    assert "nvflare is not installed" in text and "SVTPrivacy()" in text


def test_a_row_has_means_over_seeds_and_counts_leaks():
    def seed(value, verdict):
        total = SimpleNamespace(
            value=value, baseline=50.0, references={"imputation": 60.0, "strangers": 55}
        )
        line = SimpleNamespace(total=total, verdict=verdict, ceiling=90.0)
        absent = SimpleNamespace(total=None, verdict="not applicable", ceiling=None)
        lines = {
            "trajectory": line,
            "model": line,
            "grad": absent,
            auditing.KNOWS: line,
        }
        return scoring.Seed(40.0, 1.0, None, lines, 2.0)

    entry = catalogue.Entry("numpy", "a defense", "", {})
    seeds = [seed(99.0, "leaks"), seed(99.0, "leaks"), seed(96.0, "not shown")]
    row = scoring.row(entry, seeds, auditing.OneRelease(3.0, 1.5))
    assert row["trajectory"] == "98.0 [93.7, 100.0]" and row["grad"] is None
    assert (row["leaks"], row["num_attacks"], row["ceiling"]) == ("2 of 3", 3, 90)
    assert (row["imputation"], row["strangers"], row["majority"]) == (60, 55, 50)
    assert (row["stated"], row["accounted"], row["audited_of_one"]) == (1, None, 1.5)
    assert row["attacks"]["model"]["values"] == [99, 99, 96]


def test_its_command_is_that_of_the_package():
    told = recording.command(board.Flags(rounds=3))
    assert told == "python -m experiments.benchmarks.peers --rounds=3"


@pytest.mark.slow
@pytest.mark.parametrize("package", ["opacus", "optax", "jax-privacy", "fljax"])
def test_a_step_of_a_shipped_dp_sgd_gives_no_more_than_its_noise_promises(package):
    entries = [e for e in catalogue.ENTRIES if e.package == package]
    (defense,) = (e.defense for e in entries if "8" in e.defense)
    setting = board.prepared(board.Flags(rounds=2), rows.load("diabetes"), 0)
    small = setting._replace(plan=setting.plan._replace(hidden=2))
    found = auditing.one_release(_made(defense, small), 1000)
    assert found is not None and found.audited < found.accounted


@pytest.mark.slow
def test_a_layer_that_never_moves_is_noticed_by_who_does_not_know_it_too(tmp_path):
    setting = board.prepared(board.Flags(rounds=20), rows.load("diabetes"), 0)
    people, plan, _ = setting
    epoch = epochs.sgd(people, plan)

    def message(sent, returned):
        return {**returned, **{name: sent[name] for name in ("w1", "b1")}}

    shipped = training.Shipped(message=message, fixed=("w1", "b1"))
    stem = str(tmp_path / "seen")
    training.train(people, plan, epoch, shipped, stem)
    effort = auditing.Effort(grad_rounds=(1,))
    found = auditing.attack(stem, people, plan, shipped, effort)
    for attack in ("trajectory", auditing.KNOWS):
        assert found[attack].verdict == verdicts.LEAKS


@pytest.mark.slow
def test_the_whole_board_in_small():
    found, targets = board.benchmark(board.Flags(smoke=True, packages=("optax",)))
    (row,) = found
    assert row["num_attacks"] == 6 and row["leaks"] == "0 of 1"
    assert 8 < row["accounted"] < 10 and 0 < row["ceiling"] < 100
    assert [target.value for target in targets][1:] == [1]
