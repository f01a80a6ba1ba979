"""The membership program: its coins, what its attacks get, and a whole run."""

import importlib
import json

import numpy as np
import pytest

from experiments.membership import coins, scores, wall
from experiments.membership.program import PROGRAM
from experiments.membership.trainings import Trained
from experiments.tabular.clients import Clients
from fljax import results
from fljax.driver.config import ConfigError
from fljax.types import Rows
from tests import truth

_TINY = (
    "--num_rounds=3", "--model_hidden=4", "--learning_rate=0.05", "--trainings=8",
    "--seeds=0,1", "--pool=20", "--rounds_used=2",
)  # fmt: skip


def _dealt(sizes=(20, 31), test=6):
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(1, sum(sizes), 3)), rng.normal(size=(1, sum(sizes))))
    held = Rows(rng.normal(size=(1, test, 3)), rng.normal(size=(1, test)))
    mask = np.arange(test)[None] < test - 2
    return Clients([None], rows, np.array([sizes]), held, mask)


def test_every_candidate_is_in_half_of_the_trainings_and_pairs_are_complements():
    pool = coins.pool(_dealt(), 24, 0)
    np.testing.assert_array_equal(pool.sizes, [20, 24])
    assert len(pool.population.y) == 7 + 4
    assert not set(pool.rows.y) & set(pool.population.y)
    there = coins.draw(pool, 8, 0)
    np.testing.assert_array_equal(there[0::2], ~there[1::2])
    for client, size in enumerate(pool.sizes):
        counts = there[:, pool.of_client(client)].sum(axis=1)
        np.testing.assert_array_equal(counts, size // 2)
    members = coins.members(pool, there)
    np.testing.assert_array_equal(members.y[3], pool.rows.y[there[3]])
    assert (there != coins.draw(pool, 8, 1)).any()


def test_pools_that_are_too_small_are_refused():
    with pytest.raises(ConfigError, match="8 rows of each client"):
        coins.pool(_dealt((20, 7)), None, 0)
    with pytest.raises(ConfigError, match="--pool: expected rows that are in no"):
        coins.pool(_dealt((20, 20), test=2), None, 0)


def test_an_attack_cannot_reach_who_was_there(monkeypatch):
    pool = coins.pool(_dealt(), None, 0)
    there = coins.draw(pool, 8, 0)
    losses = np.random.default_rng(1).normal(size=(8, len(pool.rows.y)))
    monkeypatch.setattr(wall, "row_losses", lambda trained, models, rows: losses)
    ((_, given),) = wall.guesses("final", Trained(None, None, None), pool, there)
    for target, one in enumerate(given):
        assert len(one.shadows.there) == 6
        np.testing.assert_array_equal(one.shadows.there.sum(axis=0), 3)
        secret = {"there": there[target], "others": ~there[target]}
        assert not truth.leaks(one, secret)
    attack = importlib.import_module("experiments.membership.attacking")
    imported = truth.imports(attack, "experiments.membership")
    assert not imported & {f"experiments.membership.{n}" for n in ("coins", "scores")}


def test_scores_are_an_area_and_what_is_found_at_few_false_alarms():
    there = np.arange(8000).reshape(4, -1) % 2 == 0
    assert scores.rates(there * 1.0, there)[:2] == (1.0, 100.0)
    assert scores.rates(np.where(there, np.nan, 1.0), there).auc == 0
    few = np.zeros(there.shape)
    few[0, :200] = there[0, :200]  # a hundred members of 4,000
    assert scores.rates(few, there).found == 2.5


def test_candidates_who_are_alike_are_said_to_hide_each_other():
    dealt = _dealt()
    for leaf in dealt.rows:
        leaf[0, 10:20] = leaf[0, :10]  # of the first client
    with pytest.warns(UserWarning, match="20 of 50 candidates are copies of another"):
        coins.pool(dealt, None, 0)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("--participation=uniform", "--participation: expected all"),
        ("--client_optimiser=adam", "--client_optimiser: expected sgd"),
        ("--trainings=9", "--trainings: expected an even number, got 9"),
        ("--defenses=dp_sgd(clip=1)", "--defenses: dp_sgd: expected one of sigma"),
    ],
)
def test_flags_that_do_not_fit_are_refused(told, said, parsed, tmp_path):
    folder = tmp_path / "out"
    with pytest.raises(ConfigError, match=said):
        PROGRAM.run(parsed(PROGRAM, *_TINY, f"--run_dir={folder}", told))
    assert not folder.exists()


@pytest.mark.slow
def test_members_are_found_without_a_defense_and_not_with_much_noise(parsed, tmp_path):
    told = "--defenses=none; dp_sgd(clip=1, epsilon=0.1)"
    PROGRAM.run(parsed(PROGRAM, *_TINY, f"--run_dir={tmp_path / 'out'}", told))
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    auc = {
        (row.defense.partition("(")[0], row.setting, row.attack): row.value
        for row in rows
        if row.metric == "membership_auc"
    }
    assert auc["none", "messages", "gradient_joint"] > 0.9
    for (defense, _, _), value in auc.items():
        assert defense == "none" or abs(value - 0.5) < 0.15
    (spent,) = {row.value for row in rows if row.metric == "epsilon_rdp"}
    assert 0.09 < spent <= 0.1
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["diverged"] == {}
    (promised,) = manifest["defense"].values()
    assert promised["epsilon"] <= spent and promised["assumption"]
