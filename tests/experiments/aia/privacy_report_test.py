"""What a run says of its defense: noise, clip, epsilons and what they rest on."""

import json

import jax
import numpy as np
import pytest

from experiments.aia import privacy_report
from experiments.tabular import budgets, clients, defense, problem, settings
from fljax import results
from fljax.defenses import specs
from fljax.defenses.registry import DEFENSES
from fljax.driver.config import ConfigError
from fljax.privacy import exact
from fljax.results import Labels
from fljax.types import Batch

SEEDS = (0, 3)
MODEL = settings.ModelConfig(hidden=(4,))
LAYERS, CLIENTS, ROUNDS, ACTIVE = 4, 3, 4, 2
PROMISING = {
    "dp_sgd(clip=0.5, {})": "",
    "fed_cdp(clip=0.5, {}, mode=recommended)": "",
    "fed_cdp(clip=0.5, {}, mode=per_batch)": "",
    "fed_cdp(clip=6, decay_to=2, {})": "",
    "fed_sdp(clip=0.5, {})": "client_",
    "fed_sdp(clip=0.5, {}, where=server)": "client_",
}
OTHERS = (
    "median", "gaussian(deviation=0.01)", "laplace(scale=0.01)", "pruning(ratio=0.5)",
    "dssgd(fraction=0.1)", "norm_clipping(norm=1)", "value_clipping(limit=0.1)",
)  # fmt: skip
UNTRIED = np.full((2, 1), np.nan)


def _config(text):
    return settings.DefenseConfig(defense=text)


def _train(**flags):
    return settings.TrainConfig(num_rounds=ROUNDS, learning_rate=0.02, **flags)


@pytest.fixture(scope="module")
def dealt():
    config = settings.DataConfig()
    split = settings.PartitionConfig(clients=CLIENTS)
    return clients.deal(clients.load_table(config), config, MODEL, split, SEEDS).clients


def _posed(dealt, config, active=ACTIVE, **train):
    told = _train(**train)
    made = defense.maker(config, told, active)
    return problem.build(dealt, MODEL, told, SEEDS, defense=made)


def _rows(posed):
    return privacy_report.rows(Labels("aia", "diabetes", "mlp"), posed, SEEDS)


def _sigma(text, sigma=1.0):
    return text.format(f"sigma={sigma}")


def _of_all(rows, metric):
    return [r.value for r in rows if (r.client, r.metric) == ("all", metric)]


@pytest.mark.parametrize("text", [*map(_sigma, PROMISING), *OTHERS])
def test_every_defense_can_be_bound_and_says_what_it_promises(dealt, text):
    posed = _posed(dealt, _config(text))
    said = privacy_report.describe(posed.bound_defense, UNTRIED, active=True)
    json.dumps(said, allow_nan=False)
    promised = [r.value for r in _rows(posed) if r.metric.endswith("epsilon_pld")]
    assert len(promised) == len(SEEDS) * (CLIENTS + 1)
    assert np.isfinite(promised).all() == ("no_guarantee" not in said)
    rests = text.startswith("dp_sgd") or "recommended" in text
    assert posed.schedule.poisson == rests


def test_the_examples_are_all_defenses():
    names = specs.parse(" + ".join([*map(_sigma, PROMISING), *OTHERS])).names
    assert set(names) == set(DEFENSES)


@pytest.mark.parametrize(("text", "prefix"), PROMISING.items(), ids=PROMISING)
@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_sigma_is_chosen_for_the_budget(dealt, text, prefix, accountant):
    posed = _posed(dealt, _config(text.format(f"epsilon=2, accountant={accountant}")))
    assert posed.bound_defense.rounds == ROUNDS + ACTIVE
    for spent in _of_all(_rows(posed), f"{prefix}epsilon_{accountant}"):
        assert 0.99 * 2 < spent <= 2


def test_sigma_is_the_papers_and_the_multiplier_that_of_the_guarantee(dealt):
    for mode, share in {
        "recommended": 1.0,
        "per_batch": 1 / LAYERS**0.5,
        "per_example": (32 / LAYERS) ** 0.5,
    }.items():
        rows = _rows(_posed(dealt, _config(f"fed_cdp(clip=0.5, sigma=3, mode={mode})")))
        assert _of_all(rows, "sigma") == [3, 3]
        assert _of_all(rows, "noise_multiplier") == pytest.approx([3 * share] * 2)


def test_of_all_clients_the_largest_epsilon_is_told(dealt, monkeypatch):
    told = [("epsilon_pld", np.array([1.0, 3.0, 2.0]))]
    monkeypatch.setattr(privacy_report, "_numbers", lambda *_: told)
    found = [row.value for row in _rows(_posed(dealt, _config("median")))]
    assert found == [1, 3, 2, 3] * 2


def test_no_noise_is_no_guarantee(dealt):
    posed = _posed(dealt, _config("fed_cdp(clip=0.5, sigma=0)"))
    assert _of_all(_rows(posed), "epsilon_pld") == [np.inf, np.inf]
    said = privacy_report.describe(posed.bound_defense, UNTRIED, active=False)
    assert said["epsilon_pld"] == [["inf"] * CLIENTS] * len(SEEDS)


def test_defenses_at_different_places_keep_budgets_of_their_own(dealt):
    both = _config("dp_sgd(clip=0.5, epsilon=2) + fed_sdp(clip=1, epsilon=3)")
    posed = _posed(dealt, both)
    rows = _rows(posed)
    assert _of_all(rows, "epsilon_rdp") == pytest.approx([2, 2], rel=1e-2)
    assert _of_all(rows, "client_epsilon_rdp") == pytest.approx([3, 3], rel=1e-2)
    assert _of_all(rows, "clip") == [0.5, 0.5]
    assert _of_all(rows, "client_clip") == [1, 1]
    said = privacy_report.describe(posed.bound_defense, UNTRIED, active=False)
    assert "(one row) of one client" in said["assumption"][0]
    assert "all that it has" in said["client_assumption"][0]


@pytest.mark.parametrize(
    ("participation", "fraction", "sampling", "rate"),
    [("all", 1.0, "all", 1.0), ("uniform", 0.67, "fixed", 2 / 3),
     ("poisson", 0.67, "all", 1.0)],
)  # fmt: skip
def test_noise_at_the_server_counts_how_clients_are_drawn_and_weighted(
    dealt, participation, fraction, sampling, rate
):
    config = _config("fed_sdp(clip=0.5, sigma=1, where=server)")
    posed = _posed(dealt, config, participation=participation, fraction=fraction)
    (spec,) = posed.bound_defense.build(posed.bound_defense.of_seed(0)).noise
    assert (spec.sampling, float(spec.sampling_rate)) == (sampling, pytest.approx(rate))
    weights = dealt.sizes[0].astype(float)
    pairs = [np.delete(weights, out) for out in range(CLIENTS)]
    summed = {
        "all": np.square(weights).sum() / weights.max() ** 2,
        "uniform": min(np.square(w).sum() / w.max() ** 2 for w in pairs),
        "poisson": 1,
    }[participation]
    present = np.asarray(posed.schedule.participants)[0]
    rounds = [weights[each[each < CLIENTS]] for each in present]
    there = min(np.square(w).sum() / w.max() ** 2 for w in rounds if len(w))
    least, most = ((count / LAYERS) ** 0.5 for count in (summed, there))
    assert least - 1e-6 <= float(spec.noise_multiplier) <= most + 1e-6


def test_noise_at_the_client_counts_the_rounds_that_it_is_drawn_for(dealt):
    """As `experiments.fed_cdp` counts them; an active server asks in all of its own."""
    config = _config("fed_sdp(clip=0.5, sigma=1)")
    uniform = {"participation": "uniform", "fraction": 0.67}
    found = {}
    for active in (0, ACTIVE):
        posed = _posed(dealt, config, active, **uniform)
        (spec,) = posed.bound_defense.build(posed.bound_defense.of_seed(0)).noise
        assert spec.noise_multiplier == pytest.approx(LAYERS**-0.5)
        found[active] = spec.sampling, _of_all(_rows(posed), "client_epsilon_pld")[0]
    assert [sampling for sampling, _ in found.values()] == ["fixed", "all"]
    counts = exact.drawn(ROUNDS, 2 / 3)
    assert found[0][1] == pytest.approx(exact.gaussian(LAYERS**-0.5, *counts, 1e-5))
    everyone = exact.gaussian(LAYERS**-0.5, [ROUNDS + ACTIVE], [1.0], 1e-5)
    assert found[ACTIVE][1] == pytest.approx(everyone)


@pytest.mark.slow
def test_a_clip_is_chosen_for_any_defense_that_clips(dealt):
    config = _config("fed_cdp(clip=1e-6|1, sigma=0.01) + fed_sdp(clip=1e3, sigma=0)")
    posed = _posed(dealt, config)
    best, loss = defense.choose_clip(posed, dealt, progress=int)
    assert loss.shape == (2, 2)
    np.testing.assert_array_equal(best.bound_defense.parts[0]["clip"], [1.0, 1.0])
    np.testing.assert_array_equal(best.bound_defense.parts[1]["clip"], [1e3, 1e3])


def test_the_clip_decays_over_the_training_and_stays_there(dealt):
    posed = _posed(dealt, _config("fed_cdp(clip=6, decay_to=2, sigma=1)"))
    made = posed.bound_defense.build(posed.bound_defense.of_seed(0))
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
    np.testing.assert_allclose(end / first, 2 / 6, rtol=1e-5)
    np.testing.assert_array_equal(after, end)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--defense=dp(clip=1)", "--defense: dp: expected none, module:attribute, or"),
        ("--defense=none + median", "--defense: none: expected none"),
        ("--defense=pruning", "--defense: pruning: ratio: expected a number >= 0"),
        (
            "--defense=dp_sgd(clip=1, sigma=1) + median",
            "--defense=dp_sgd(clip=1, sigma=1) + median: gradient: expected one defense",
        ),
        ("--sweep=defense=dssgd(fraction=2)", "--sweep: --defense: dssgd: fraction"),
        ("--delta=0", "--delta: expected a number > 0 and < 1"),
        ("--delta=1", "--delta: expected a number > 0 and < 1"),
        ("--fraction=0", "--fraction: expected a number > 0"),
        ("--fraction=1.2", "--fraction: expected a number > 0"),
    ],
)
def test_what_cannot_be_made_is_one_line(run, argument, expected):
    code, _, errors = run(argument)
    assert code == 2
    assert errors.count("\n") == 1 and errors.startswith(expected)


@pytest.mark.slow
def test_a_sweep_over_defenses_is_drawn_and_says_what_each_promises(run, tmp_path):
    text = "pruning(ratio=0.5) + fed_sdp(clip=1, sigma=0.01, where=server)"
    code, out, _ = run(f"--sweep=defense=none; defense={text}", "--attack_kinds=model")
    assert code == 0 and "client epsilon pld" in out
    folder = tmp_path / "out"
    assert (folder / "leakage_by_utility.svg").exists()
    rows = results.read_rows(folder / "rows.jsonl")
    assert {row.defense for row in rows} == {"none", text}
    (said,) = json.loads((folder / "manifest.json").read_text())["defense"].values()
    assert "whoever sees models only" in said["client_assumption"][0]


def test_a_defense_of_ones_own_is_put_before_the_attacks(run, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "signs.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "from fljax.defenses.definition import Definition, Number\n"
        "from fljax.types import Defense\n"
        "def build(setting, *, step):\n"
        "    one = lambda leaf: step * jnp.sign(leaf)\n"
        "    return Defense(encode=lambda key, delta, sender: jax.tree.map(one, delta))\n"
        "numbers = (Number('step', 'of every entry', above=0),)\n"
        "signs = Definition(build=build, acts='messages', promise='signs', parameters=numbers)\n"
    )
    text = "signs:signs(step=0.01)"
    code, _, errors = run(f"--defense={text}", "--attack_kinds=model")
    assert code == 0, errors
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    assert {row.defense for row in rows} == {text}


def test_clients_stop_before_they_exceed_their_budget_and_the_report_says_so(dealt):
    text = "dp_sgd(clip=0.5, sigma=2)"
    config = settings.DefenseConfig(defense=text, stop_at_epsilon=2.0)
    posed = _posed(dealt, config, 0, participation="uniform", fraction=0.7)
    free = _posed(dealt, _config(text), 0, participation="uniform", fraction=0.7)
    rows = privacy_report.rows(Labels("aia", "d", "m", text), posed, SEEDS)
    taken = posed.bound_defense.rounds
    told = privacy_report.describe(posed.bound_defense, UNTRIED, active=False)
    assert told["rounds_within_budget"] == taken.tolist()
    before = budgets.rounds_of_each(free.schedule)
    assert (taken <= before).all() and taken.sum() < before.sum()
    for at, seed in enumerate(SEEDS):
        (ledger,) = budgets.ledgers(config, posed.bound_defense, at)
        for number in range(ROUNDS):
            ledger.charge(number, np.flatnonzero(taken[at] > number))
        for client in range(CLIENTS):
            (said,) = [
                row.value
                for row in rows
                if (row.metric, row.seed, row.client) == ("epsilon_rdp", seed, client)
            ]
            assert said == ledger.spent(client) <= config.stop_at_epsilon
            stopped = before[at, client] > taken[at, client]
            assert not (stopped and ledger.affords([client]))


@pytest.mark.parametrize(
    ("text", "active", "said"),
    [
        ("none", 0, "promises an epsilon, got none"),
        ("median", 0, "promises an epsilon, got median"),
        ("dp_sgd(clip=1, epsilon=3)", 0, "a defense with sigma="),
        ("dp_sgd(clip=1, sigma=3)", 2, "no active server"),
        ("dp_sgd(clip=1, sigma=1e-3)", 0, "one round of one client"),
    ],
)
def test_nobody_stops_at_an_epsilon_that_is_not_promised(dealt, text, active, said):
    config = settings.DefenseConfig(defense=text, stop_at_epsilon=2.0)
    with pytest.raises(ConfigError, match=said):
        _posed(dealt, config, active)
