"""experiments.lmra: its clients, optima, scores, and what it writes and refuses."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from experiments.lmra import (
    clients,
    federation,
    members,
    optimum,
    program,
    published,
    scores,
    search,
)
from experiments.lmra.settings import Config, DataConfig, Settings, complete
from fljax import results
from fljax.driver import config

_SIZES = (30, 20)
_TINY = {
    "num_rounds": 14,
    "local_steps": (1, 3),
    "batch_sizes": (16,),
    "percent": 60.0,
    "units": 8,
    "fit_iterations": 20,
    "decode_iterations": 20,
    "rows": 3,
    "iterations": 3,
    "ensemble_size": 2,
    "seeds": (0, 1),
}


def _told(data=None, **changed):
    own = {"sizes": _SIZES} if data is None else data
    return Settings(DataConfig(**own), Config(**_TINY | changed))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lmra") / "run"
    program.PROGRAM.run(_told(run_dir=str(folder)))
    return folder


@pytest.mark.slow
def test_a_training_that_was_stopped_goes_on(finished, tmp_path, interrupted):
    told = _told(run_dir=str(tmp_path / "run"))
    assert interrupted(program.PROGRAM, told, after=5) == 5
    rows = [(each / "rows.jsonl").read_text() for each in (finished, tmp_path / "run")]
    assert rows[0] == rows[1]


def _value(rows, attack, metric, client="all", seed=0, setting="local_steps=1"):
    (found,) = (
        row.value
        for row in rows
        if (row.attack, row.metric, row.client, row.seed, row.setting)
        == (attack, metric, client, seed, setting)
    )
    return found


@pytest.mark.long("a whole program, run once for the tests of this file")
def test_a_run_has_every_model_beside_the_last_returned(finished):
    rows = results.read_rows(finished / "rows.jsonl")
    kinds = {"last_returned", "global", "decoded", "decoded_affine",
             "decoded_simulated", "local_optimum"}  # fmt: skip
    metric = "train_accuracy_percent"
    for attack in kinds:
        for setting in ("local_steps=1", "local_steps=3"):
            each = [_value(rows, attack, metric, c, setting=setting) for c in (0, 1)]
            mean = _value(rows, attack, metric, setting=setting)
            assert mean == pytest.approx(np.mean(each))
            assert 0 <= mean <= 100
    best = _value(rows, "local_optimum", metric)
    assert best >= 95
    assert best >= max(_value(rows, kind, metric) for kind in kinds) - 5
    assert _value(rows, "local_optimum", "optimum_distance") < 1e-6


def test_a_run_says_how_sure_the_adversary_may_be(finished):
    told = [
        row
        for row in results.read_rows(finished / "rows.jsonl")
        if row.metric == members.EXPLAINING
    ]
    assert {row.attack for row in told} == {"decoded_simulated"}
    # Two clients, and two members.
    assert {row.n for row in told} == {4} and len(told) == 4


def test_a_run_says_what_the_messages_determine(finished):
    rows = results.read_rows(finished / "rows.jsonl")
    # One of the two clients takes part in each of 14 rounds: 7 each on average.
    ranks = [row.value for row in rows if row.metric == "rank" and row.client != "all"]
    assert max(ranks) <= 11
    assert min(ranks) < 11
    determined = {row.value for row in rows if row.metric == "determined"}
    assert 0.0 in determined
    manifest = json.loads((finished / "manifest.json").read_text())
    gain = manifest["gains"]["local_steps=1 decoded_affine"]
    metric = "train_accuracy_percent"
    expected = np.mean(
        [
            _value(rows, "decoded_affine", metric, seed=seed)
            - _value(rows, "last_returned", metric, seed=seed)
            for seed in (0, 1)
        ]
    )
    assert gain["gain_points"] == pytest.approx(expected)
    over = "gain_over_last_returned_points"
    claimed = [_value(rows, "decoded_affine", over, seed=seed) for seed in (0, 1)]
    assert np.mean(claimed) == pytest.approx(expected)
    assert {"optima_distances.svg", f"{metric}.svg"} <= {
        path.name for path in finished.iterdir()
    }


def test_held_out_rows_come_on_top_of_the_training_rows():
    told = complete(_told({"sizes": _SIZES, "held_out": 0.25}))
    loaded = clients.load(told.data, told.run)
    assert loaded.sizes.tolist() == list(_SIZES)
    assert loaded.held.mask[0].sum(axis=1).tolist() == [10, 7]
    assert loaded.rows.y.shape == (2, 50)
    np.testing.assert_array_equal(
        loaded.rows.x.numeric[0, 30:], loaded.own.rows.x.numeric[0, 1, :20]
    )


def test_local_optima_leave_no_gradient():
    told = complete(_told())
    loaded = clients.load(told.data, told.run)
    found = optimum.local_optima(loaded, 1e-2)
    for client in (0, 1):
        mask = loaded.own.mask[0, client]
        x = loaded.own.rows.x.numeric[0, client][mask]
        x = np.column_stack([np.ones(len(x)), x])  # the bias comes first
        y = loaded.own.rows.y[0, client][mask]
        theta = found[0, client]
        gradient = (1 / (1 + np.exp(-x @ theta)) - y) @ x / len(y) + 1e-2 * theta
        assert np.abs(gradient).max() < 1e-7


@pytest.mark.slow
def test_the_adversary_keeps_every_few_rounds_and_the_last_one():
    told = complete(_told(record_every=4, local_steps=(1,), percent=100.0, seeds=(0,)))
    loaded = clients.load(told.data, told.run)
    assert list(federation.kept_rounds(told.run)) == [1, 5, 9, 13]
    some = federation.train(told.run, loaded)
    whole = federation.train(dataclasses.replace(told.run, record_every=1), loaded)
    for kept, every in zip(some.messages[:2], whole.messages[:2], strict=True):
        np.testing.assert_allclose(kept, every[..., 1::4, :], atol=1e-6)
    np.testing.assert_allclose(some.last, whole.last, atol=1e-6)


def test_the_area_under_the_curve_counts_pairs():
    members, others = np.array([0.1, 0.5, 0.5, 9.0]), np.array([0.5, 1.0, 7.0])
    masks = np.array([True, True, True, False]), np.array([True, True, False])
    found = scores._auc(members, masks[0], others, masks[1])
    # Pairs won: 2 of the first, 1.5 of each of the others.
    assert float(found) == pytest.approx((2 + 1.5 + 1.5) / 6)


@pytest.mark.slow
def test_the_search_puts_the_nearest_first():
    told = complete(
        _told(
            {"sizes": DataConfig().sizes},
            local_steps=(1, 5, 10),
            percent=100.0,
            search=True,
            search_rounds=(2, 6),
            start_scales=(0.0, 1.0),
        )
    )
    loaded = clients.load(told.data, told.run)
    found = search.search(told.run, loaded, federation.train(told.run, loaded))
    assert len(found) == 4
    assert [each.gap for each in found] == sorted(each.gap for each in found)
    printed = [58.6, 63.0, 69.3]
    means = [found[0].accuracy[e].mean() for e in (1, 5, 10)]
    gap = np.sqrt(np.mean(np.square(np.subtract(means, printed))))
    assert found[0].gap == pytest.approx(gap, rel=1e-6)


def test_the_paper_is_read_from_the_stored_numbers():
    reference = published.reference({"paper_table": "table1"}, "leaf_synthetic")
    key = "local_steps=5", "decoded", "train_accuracy_percent"
    assert reference.numbers[key].mean == 74.8
    gained = reference.numbers["local_steps=5", "decoded", published.OVER_LAST]
    assert gained.mean == 11.8 and not gained.is_printed
    assert published.reference({"paper_table": "table1"}, "adult_bachelors") is None


@pytest.mark.parametrize(
    ("data", "changed", "message"),
    [
        (None, {"local_steps": (1, 1)}, "--local_steps: expected each at most once"),
        (None, {"attacked": 9}, "--attacked: expected at most 2"),
        ({"name": "adult"}, {"search": True}, "--search: Table 1 is on"),
        (
            {"sizes": DataConfig().sizes},
            {"search": True, "record_every": 2},
            "--record_every: --search looks at every round",
        ),
        (
            None,
            {"record_every": 5, "average": 4},
            "--average: expected at most the 3 messages, got 4",
        ),
        (
            None,
            {"record_every": 5, "percent": 50.0, "average": 1},
            "--record_every: expected 1 with --percent=50",
        ),
        (
            {"sizes": DataConfig().sizes},
            {"search": True, "batch_sizes": (8, 16)},
            "--batch_sizes: --search is of one",
        ),
        (None, {"search": True}, "--search: Table 1 is of --data_sizes=280,184"),
        (None, {"paper_table": "table1"}, "--paper_table: Table 1 is of --data_sizes"),
        (
            {"sizes": DataConfig().sizes},
            {"paper_table": "table1", "attacked": 1},
            "--paper_table: Table 1 is of all 5 clients",
        ),
        (
            None,
            {"proximal": 1.0, "mappings": ("simulated",)},
            "--proximal: the mapping simulated",
        ),
        (None, {"batch_sizes": (8, 8)}, "--batch_sizes: expected each at most once"),
        (None, {"num_rounds": 10**9}, "--num_rounds: .* <= 1000000"),
        (None, {"search_rounds": (10**9,)}, "--search_rounds: .* <= 1000000"),
    ],
    ids=[
        "twice",
        "attacked",
        "search",
        "search_record",
        "average",
        "record_percent",
        "search_batches",
        "search_sizes",
        "paper_sizes",
        "paper_attacked",
        "proximal",
        "batch_sizes",
        "rounds",
        "search_rounds",
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(data, changed, message):
    with pytest.raises(config.ConfigError, match=message):
        program.PROGRAM.run(_told(data, **changed))


def test_every_flagfile_is_understood(request, parsed):
    folder = request.config.rootpath / "experiments" / "flags"
    paths = sorted(folder.glob("lmra.*.flags"))
    assert len(paths) == 4
    for path in paths:
        assert complete(parsed(program.PROGRAM, f"--flagfile={path}")).run.attacked


def test_doctorates_are_dealt_by_age(shared_data):
    told = complete(
        _told({"name": "adult", "dir": shared_data}, attacked=3, seeds=(0,))
    )
    loaded = clients.load(told.data, told.run)
    held = loaded.held.mask[0].sum(axis=1)
    assert (loaded.sizes + held)[:3].tolist() == [127, 281, 186]
    assert len(loaded.sizes) == 10
    assert (loaded.sizes + held).sum() == 12110
    assert np.ptp(loaded.sizes[3:]) <= 1
    assert loaded.task.attribute == "sex"
    shapes = jax.tree.map(np.shape, loaded.rows)
    assert shapes.y == (1, int(loaded.sizes.sum()))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"learning_rate": 1e38}, "--learning_rate: training diverged"),
        ({"fit_rate": 1e30}, "--mappings: mlp decodes a model that is not finite"),
    ],
)
def test_what_diverges_is_refused(tmp_path, changed, said):
    told = _told(run_dir=str(tmp_path / "run"), **changed)
    with pytest.raises(config.ConfigError, match=said):
        program.PROGRAM.run(told)
    assert not (tmp_path / "run" / "rows.jsonl").exists()
