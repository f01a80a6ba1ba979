"""Defenses by name: what they are told, which batches they get, what they promise."""

import json

import jax
import numpy as np
import pytest

from experiments.aia import (
    clients,
    defense,
    problem,
    promises,
    scoring,
    settings,
    shields,
)
from fljax import results
from fljax.driver.config import ConfigError
from fljax.types import Batch

SEEDS = (0, 3)
MODEL = settings.ModelConfig(hidden=(4,))
LAYERS, CLIENTS, ROUNDS, ACTIVE = 4, 3, 4, 2
# name -> flags with which it can be made
FLAGS = {
    "dp_sgd": {"clip": (0.5,)},
    "fed_cdp": {"clip": (0.5,)},
    "fed_cdp_decay": {"clip": (6.0,)},
    "fed_sdp": {"clip": (0.5,)},
    "median": {},
    "gaussian": {"noise": 0.01},
    "laplace": {"noise": 0.01},
    "pruning": {"ratio": 0.5},
    "dssgd": {"fraction": 0.1},
}
PROMISING = {
    "dp_sgd": {},
    "recommended": {"name": "fed_cdp"},
    "per_batch": {"name": "fed_cdp", "mode": "per_batch"},
    "per_example": {"name": "fed_cdp_decay", "mode": "per_example"},
    "fed_sdp": {},
    "fed_sdp server": {"name": "fed_sdp", "where": "server"},
}


def _config(name, **flags):
    given = {k: v for each in name.split(",") for k, v in FLAGS.get(each, {}).items()}
    return settings.DefenseConfig(name=name, **given | flags)


def _train(**flags):
    return settings.TrainConfig(num_rounds=ROUNDS, learning_rate=0.02, **flags)


@pytest.fixture(scope="module")
def dealt():
    config = settings.DataConfig()
    table = clients.load_table(config)
    split = settings.PartitionConfig(clients=CLIENTS)
    return clients.gather(table, config, MODEL, split, SEEDS)


def _posed(dealt, config, **train):
    told = _train(**train)
    made = defense.maker(config, told, ACTIVE)
    return problem.pose(dealt, MODEL, told, SEEDS, defense=made)


def _rows(posed, config):
    labels = scoring.Labels("aia", "diabetes", "mlp", shields.label(config), "", SEEDS)
    return promises.rows(labels, posed, config)


def _of_all(rows, metric):
    return [r.value for r in rows if (r.client, r.metric) == ("all", metric)]


def test_every_defense_of_the_flag_can_be_made_and_says_what_it_promises(dealt):
    assert set(FLAGS) == set(shields.NAMES)
    help_ = settings.DefenseConfig.__dataclass_fields__["name"].metadata["help"]
    for name in shields.NAMES:
        assert name in help_
        config = _config(name, sigma=1.0)
        posed = _posed(dealt, config)
        rows = _rows(posed, config)
        said = promises.describe(posed, config, np.full((2, 1), np.nan), active=True)
        json.dumps(said, allow_nan=False)
        promised = [r.value for r in rows if r.metric.endswith("epsilon_pld")]
        assert len(promised) == len(SEEDS) * (CLIENTS + 1)
        assert np.isfinite(promised).all() == ("no_guarantee" not in said), name


@pytest.mark.parametrize(
    ("name", "flags", "expected"),
    [
        ("dp_sgd", {}, True),
        ("fed_cdp", {}, True),
        ("fed_cdp", {"mode": "per_batch"}, False),
        ("fed_cdp_decay", {"mode": "per_example"}, False),
        ("median", {}, False),
        ("pruning,fed_cdp", {}, True),
        ("fed_sdp", {}, False),
    ],
)
def test_batches_are_poisson_only_where_the_guarantee_rests_on_it(
    dealt, name, flags, expected
):
    assert _posed(dealt, _config(name, **flags)).schedule.poisson == expected


@pytest.mark.parametrize("flags", PROMISING.values(), ids=PROMISING)
@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_sigma_is_chosen_for_the_budget(dealt, flags, accountant, request):
    name = flags.get("name", request.node.callspec.id.split("-")[-1])
    told = {k: v for k, v in flags.items() if k != "name"}
    config = _config(name, epsilon=2.0, accountant=accountant, **told)
    posed = _posed(dealt, config)
    prefix = "client_" if name == "fed_sdp" else ""
    for spent in _of_all(_rows(posed, config), f"{prefix}epsilon_{accountant}"):
        assert 0.99 * 2 < spent <= 2


def test_without_budget_and_noise_the_budget_is_one(dealt):
    config = _config("fed_sdp")
    posed = _posed(dealt, config)
    assert _of_all(_rows(posed, config), "client_epsilon_rdp") == pytest.approx(
        [1, 1], rel=1e-2
    )
    assert posed.shield.rounds == ROUNDS + ACTIVE


def test_sigma_is_the_papers_and_the_multiplier_that_of_the_guarantee(dealt):
    for mode, share in {
        "recommended": 1.0,
        "per_batch": 1 / LAYERS**0.5,
        "per_example": (32 / LAYERS) ** 0.5,
    }.items():
        config = _config("fed_cdp", sigma=3.0, mode=mode)
        rows = _rows(_posed(dealt, config), config)
        assert _of_all(rows, "sigma") == [3, 3]
        assert _of_all(rows, "noise_multiplier") == pytest.approx([3 * share] * 2)


def test_no_noise_is_no_guarantee(dealt):
    config = _config("fed_cdp", sigma=0.0)
    posed = _posed(dealt, config)
    assert _of_all(_rows(posed, config), "epsilon_pld") == [np.inf, np.inf]
    said = promises.describe(posed, config, np.full((2, 1), np.nan), active=False)
    assert said["epsilon_pld"] == [["inf"] * CLIENTS] * len(SEEDS)


def test_defenses_at_different_places_keep_a_budget_for_each_unit(dealt):
    config = _config("dp_sgd,fed_sdp", epsilon=2.0)
    posed = _posed(dealt, config)
    rows = _rows(posed, config)
    for metric in ("epsilon_rdp", "client_epsilon_rdp"):
        assert _of_all(rows, metric) == pytest.approx([2, 2], rel=1e-2)
    assert {row.defense for row in rows} == {"dp_sgd+fed_sdp"}
    said = promises.describe(posed, config, np.full((2, 1), np.nan), active=False)
    assert "(one row) of one client" in said["assumption"][0]
    assert "all that she has" in said["client_assumption"][0]


@pytest.mark.parametrize(
    ("participation", "fraction", "sampling", "rate"),
    [("all", 1.0, "all", 1.0), ("uniform", 0.67, "fixed", 2 / 3),
     ("poisson", 0.67, "all", 1.0)],
)  # fmt: skip
def test_noise_at_the_server_counts_how_clients_are_drawn_and_weighted(
    dealt, participation, fraction, sampling, rate
):
    config = _config("fed_sdp", sigma=1.0, where="server")
    posed = _posed(dealt, config, participation=participation, fraction=fraction)
    (spec,) = posed.shield.build(defense.numbers_of(posed.shield, 0)).noise
    assert (spec.sampling, float(spec.sampling_rate)) == (sampling, pytest.approx(rate))
    weights = dealt.sizes[0].astype(float)
    pairs = [np.delete(weights, out) for out in range(CLIENTS)]
    summed = {
        "all": np.square(weights).sum() / weights.max() ** 2,
        "uniform": min(np.square(w).sum() / w.max() ** 2 for w in pairs),
        "poisson": 1,
    }[participation]
    multiplier = float(spec.noise_multiplier)
    assert multiplier >= (summed / LAYERS) ** 0.5 - 1e-6
    assert multiplier <= (len(weights) / LAYERS) ** 0.5 + 1e-6


def test_a_clip_is_chosen_for_any_defense_that_clips(dealt):
    config = _config("fed_cdp", clip=(1e-6, 1.0), sigma=0.01)
    keys = jax.vmap(jax.random.key)(np.array(SEEDS))
    posed = _posed(dealt, config)
    best, loss = defense.choose_clip(posed, dealt, keys, config, progress=int)
    assert loss.shape == (2, 2)
    np.testing.assert_array_equal(best.shield.numbers.clip, [1.0, 1.0])
    quiet = _config("pruning", clip=(0.5, 1.0))
    posed = _posed(dealt, quiet)
    found, _ = defense.choose_clip(posed, dealt, keys, quiet, progress=pytest.fail)
    assert found is posed


@pytest.mark.parametrize(("last", "expected"), [(None, 2.0), (3.0, 3.0)])
def test_the_clip_decays_over_the_training_and_stays_there(dealt, last, expected):
    posed = _posed(dealt, _config("fed_cdp_decay", sigma=1.0, clip_end=last))
    made = problem.defense_of(posed, 0)
    params = posed.model.init(jax.random.key(0))
    x, y = (jax.tree.map(lambda leaf: leaf[0, :4], part) for part in dealt.rows)
    empty = Batch(x, y, np.zeros(4, bool), np.int32(0))

    @jax.jit
    def noise(round_):  # nothing else is in the sum of an empty batch
        found, _ = made.gradient(
            jax.random.key(1), params, empty._replace(round=round_)
        )
        return jax.tree.leaves(found)[0]

    first, end, after = map(noise, (0, ROUNDS - 1, ROUNDS + 5))
    np.testing.assert_allclose(end / first, expected / 6, rtol=1e-5)
    np.testing.assert_array_equal(after, end)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"name": "dp"}, "--defense_name: expected none, or some of dp_sgd, .* got 'dp'"),
        ({"name": "none,pruning"}, "--defense_name: expected none, or some of .*'none'"),
        ({"name": "fed_sdp", "clip": ()}, "--defense_clip: expected distinct numbers"),
        ({"name": "gaussian", "noise": None}, "--defense_noise: expected a number for"),
        ({"name": "pruning", "ratio": None}, "--defense_ratio: expected a number for"),
        ({"name": "dssgd", "fraction": None}, "--defense_fraction: expected a number"),
        ({"name": "fed_cdp", "sigma": 1.0, "epsilon": 1.0}, "--defense_sigma: expected"),
        ({"name": "dp_sgd,fed_cdp"}, "gradient: expected one defense there, got dp_sgd"),
        ({"name": "pruning,gaussian"}, "encode: expected one defense there, got pruning"),
        ({"name": "fed_cdp", "clip": (np.inf,)}, "clip must be > 0 and finite, got inf"),
        ({"name": "fed_sdp", "sigma": np.inf}, "noise_scale must be >= 0 and finite"),
        ({"name": "fed_cdp_decay", "clip_end": -2.0}, "clip must be > 0 .* in round 3"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_one_line(dealt, flags, message):
    with pytest.raises(ConfigError, match=message) as refused:
        _posed(dealt, _config(**flags))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--defense_clip=0", "--defense_clip: expected numbers > 0 and < inf"),
        ("--defense_clip=-1,2", "--defense_clip: expected numbers > 0 and < inf"),
        ("--defense_sigma=-1", "--defense_sigma: expected a number >= 0"),
        ("--defense_delta=0", "--defense_delta: expected a number > 0 and < 1"),
        ("--defense_delta=1", "--defense_delta: expected a number > 0 and < 1"),
        ("--defense_epsilon=0", "--defense_epsilon: expected a number > 0"),
        ("--defense_clip_end=-2", "--defense_clip_end: expected a number > 0"),
        ("--defense_ratio=1", "--defense_ratio: expected a number >= 0 and < 1"),
        (
            "--defense_fraction=1.5",
            "--defense_fraction: expected a number > 0 and <= 1",
        ),
        ("--fraction=0", "--fraction: expected a number > 0"),
        ("--fraction=1.2", "--fraction: expected a number > 0"),
        ("--defense_name=dp_sgd,fed_cdp", "--defense_name=dp_sgd,fed_cdp: gradient"),
    ],
)
def test_a_flag_out_of_range_is_one_line(run, argument, expected):
    code, _, errors = run("--defense_name=fed_cdp", "--defense_clip=1", argument)
    assert code == 2
    assert errors.count("\n") == 1 and errors.startswith(expected)


def test_a_sweep_over_defenses_is_drawn_and_says_what_each_promises(run, tmp_path):
    sweep = "defense_name=none; defense_name=pruning,fed_sdp"
    told = (
        "--defense_clip=1", "--defense_ratio=0.5", "--defense_where=server",
        "--defense_sigma=0.01",
    )  # fmt: skip
    code, out, _ = run(f"--sweep={sweep}", *told, "--attack_kinds=model")
    assert code == 0 and "client epsilon pld" in out
    folder = tmp_path / "out"
    assert (folder / "leakage_by_utility.svg").exists()
    rows = results.read_rows(folder / "rows.jsonl")
    assert {row.defense for row in rows} == {"none", "pruning+fed_sdp"}
    (said,) = json.loads((folder / "manifest.json").read_text())["defense"].values()
    assert "whoever sees models only" in said["client_assumption"][0]
