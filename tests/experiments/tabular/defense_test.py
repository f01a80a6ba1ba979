"""The defense of a run: its budget, its clip, and what is said about it."""

import json
import warnings

import jax
import numpy as np
import optax
import pytest

from experiments.aia import privacy_report, wall
from experiments.tabular import clients, defense, federation, problem, settings
from fljax import privacy
from fljax.defenses import specs
from fljax.driver.config import ConfigError
from fljax.results import Labels
from fljax.types import Batch, Rows, Sender

SEEDS = (0, 3)
MODEL = settings.ModelConfig(name="linear")
TRAIN = settings.TrainConfig(num_rounds=4, learning_rate=0.02)
CLIPS = (0.01, 1.0, 1e4)
TOLD = settings.DefenseConfig(defense="dp_sgd(clip=0.01|1|1e4, epsilon=8)")


@pytest.fixture(scope="module")
def dealt():
    config = settings.DataConfig()
    return clients.deal(
        clients.load_table(config),
        config,
        MODEL,
        settings.PartitionConfig(clients=3),
        SEEDS,
    ).clients


def _posed(dealt, told=TOLD, train=TRAIN, active_rounds=6):
    made = defense.maker(told, train, active_rounds)
    return problem.build(dealt, MODEL, train, SEEDS, defense=made)


@pytest.fixture(scope="module")
def posed(dealt):
    return _posed(dealt)


@pytest.fixture(scope="module")
def chosen(dealt, posed):
    done = []
    found = defense.choose_clip(posed, dealt, progress=done.append)
    assert done[-1] == 6
    return found


def test_without_a_defense_nothing_is_drawn_or_shielded(dealt):
    none = settings.DefenseConfig()
    assert defense.maker(none, TRAIN, 6) is None
    plain = _posed(dealt, none)
    assert plain.bound_defense is None and not plain.schedule.poisson


def test_an_adversary_knows_the_clip_of_its_seed(posed):
    bound = posed.bound_defense
    for seed in range(2):
        spec = wall.known_defense(bound, seed)
        (part,) = spec.parts
        assert part.values["clip"] == pytest.approx(bound.parts[0]["clip"][seed])
        assert (spec,) == specs.alternatives(spec)


def test_the_noise_spends_the_budget_over_training_and_attacked_rounds(dealt, posed):
    setting, steps = posed.bound_defense.setting, posed.bound_defense.steps
    (numbers,) = posed.bound_defense.parts
    per_epoch = -(-dealt.sizes // 32)
    np.testing.assert_array_equal(steps, (4 + 6) * per_epoch)
    np.testing.assert_allclose(setting.sampling_rate, 1 / per_epoch)
    np.testing.assert_allclose(setting.batch_size, dealt.sizes / per_epoch)
    assert posed.schedule.poisson
    for sigma, rate, count in zip(
        numbers["sigma"].flat, setting.sampling_rate.flat, steps.flat,
        strict=True,
    ):  # fmt: skip
        spent = privacy.epsilon(sigma, rate, count, TOLD.delta)
        assert 0.99 * 8 < spent <= 8


@pytest.mark.parametrize(
    ("changed", "per_round"),
    [
        ({"local_epochs": 3}, lambda sizes: 3 * -(-sizes // 32)),
        ({"local_steps": 7}, lambda sizes: np.full(sizes.shape, 7)),
        ({"batch_size": None}, lambda sizes: np.ones(sizes.shape)),
        ({"algorithm": "fed_sgd"}, lambda sizes: np.ones(sizes.shape)),
    ],
    ids=["epochs", "steps", "full batches", "fed_sgd"],
)
def test_the_budget_counts_the_steps_that_the_schedule_has(dealt, changed, per_round):
    train = settings.TrainConfig(num_rounds=4, **changed)
    posed = _posed(dealt, train=train, active_rounds=1)
    np.testing.assert_array_equal(posed.bound_defense.steps, 5 * per_round(dealt.sizes))
    for seed, client in np.ndindex(dealt.sizes.shape):
        slots = jax.tree.map(lambda leaf, s=seed: leaf[s], posed.schedule.slots)
        mine = (slots.participant_index == client) & (slots.count > 0)
        assert mine.sum() == posed.bound_defense.steps[seed, client] / 5


@pytest.mark.slow
def test_the_clip_is_the_best_on_held_out_rows_for_each_seed(posed, chosen):
    best, loss = chosen
    assert loss.shape == (2, 3)
    assert np.isfinite(loss).any(axis=1).all()
    cost = np.where(np.isfinite(loss), loss, np.inf)
    (chosen,), (first,) = best.bound_defense.parts, posed.bound_defense.parts
    np.testing.assert_array_equal(chosen["clip"], np.array(CLIPS)[cost.argmin(axis=1)])
    np.testing.assert_array_equal(chosen["sigma"], first["sigma"])


@pytest.mark.slow
def test_training_repeats_the_run_that_was_chosen(dealt, chosen):
    best, loss = chosen
    run = federation.train(best, chunk=4, progress=lambda done: None)
    last = jax.tree.map(lambda leaf: leaf[:, None], run.server.params)
    found = federation.loss_curve(best, last, dealt.test, dealt.test_mask)[:, 0]
    np.testing.assert_allclose(found, loss.min(axis=1), rtol=1e-4)


def test_a_single_clip_is_not_tried_out(dealt):
    told = settings.DefenseConfig(defense="dp_sgd(clip=2, epsilon=1)")
    posed = _posed(dealt, told)
    found, loss = defense.choose_clip(posed, dealt, progress=pytest.fail)
    assert found is posed
    assert loss.shape == (2, 1) and np.isnan(loss).all()


def test_training_that_always_diverges_is_said_to(dealt, posed, monkeypatch):
    loss = np.array([[1.0, np.nan, np.inf], [np.nan, np.inf, np.nan]])
    monkeypatch.setattr(defense, "_held_out_losses", lambda *arguments: loss)
    with pytest.raises(federation.Diverged, match="every clip of --defense"):
        defense.choose_clip(posed, dealt, progress=pytest.fail)


def test_several_clips_need_held_out_rows(dealt, posed):
    without = dealt._replace(test=None)
    with pytest.raises(ConfigError, match="--defense: choosing a clip"):
        defense.choose_clip(posed, without, progress=pytest.fail)


def test_only_a_clip_is_chosen():
    told = settings.DefenseConfig(defense="dp_sgd(clip=1, sigma=1|2)")
    with pytest.raises(ConfigError, match="--defense: dp_sgd: sigma: expected one"):
        defense.maker(told, TRAIN, 0)


def test_other_numbers_of_epochs_get_noise_of_their_own(dealt, posed):
    found = defense.for_epochs(posed.bound_defense, 200)
    per_epoch = -(-dealt.sizes // 32)
    np.testing.assert_array_equal(found.steps, 200 * per_epoch)
    more = found.parts[0]["sigma"]
    assert (more > posed.bound_defense.parts[0]["sigma"]).all()
    spent = privacy.epsilon(more[0, 0], 1 / per_epoch[0, 0], found.steps[0, 0], 1e-5)
    assert 0.99 * 8 < spent <= 8


def test_rows_state_clip_noise_and_both_epsilons(dealt, chosen):
    best, _ = chosen
    labels = Labels("aia", "diabetes", "mlp", "dp_sgd")
    rows = privacy_report.rows(labels, best, SEEDS)
    metrics = ("epsilon_rdp", "epsilon_pld", "noise_multiplier", "clip")
    assert {row.metric for row in rows} == set(metrics)
    assert len(rows) == 2 * 4 * (3 + 1)
    for row in rows:
        assert (row.defense, row.attack, row.setting) == ("dp_sgd", "none", "defense")
        if row.metric.startswith("epsilon"):
            assert 0.5 * 8 < row.value <= 8
    of_all = [r.value for r in rows if (r.client, r.metric) == ("all", "clip")]
    np.testing.assert_array_equal(of_all, best.bound_defense.parts[0]["clip"])


def test_the_manifest_states_the_assumptions(chosen):
    best, loss = chosen
    said = json.loads(
        json.dumps(
            privacy_report.describe(best.bound_defense, loss, active=True),
            allow_nan=False,
        )
    )
    assert said["clip"] == best.bound_defense.parts[0]["clip"].tolist()
    assert np.shape(said["held_out_loss"]) == (2, 3)
    assert np.shape(said["epsilon_pld"]) == (2, 3)
    for text in said["assumption"]:
        assert "Poisson" in text and "choice among several clips" in text


@pytest.mark.parametrize("optimiser", [None, optax.adam(0.1)], ids=["own", "adam"])
def test_the_defense_stays_under_another_optimiser(dealt, posed, optimiser):
    update = problem.local_update(posed, 1, optimiser)
    params = posed.model.init(jax.random.key(0))
    x, y = (jax.tree.map(lambda leaf: leaf[1, :5], part) for part in dealt.rows)
    empty = Batch(x, y, np.zeros(5, bool), np.int32(2), np.int32(0))
    step = jax.jit(update.step)
    carry = step(jax.random.key(0), update.init(params), params, empty)
    sender = Sender(empty.client, empty.round)
    delta = update.final(jax.random.key(1), carry, params, sender).delta
    # Nothing but noise moves an empty batch.
    assert all((np.asarray(leaf) != 0).all() for leaf in jax.tree.leaves(delta))


def test_who_stops_tells_when_it_took_part(posed):
    drawn = settings.TrainConfig(participation="uniform", fraction=0.5)
    sampling, rate, summed = defense._participation(drawn, posed.schedule, stops=True)
    assert sampling == "all"
    np.testing.assert_array_equal([rate, summed], np.ones((2, len(rate))))


@pytest.mark.parametrize(
    ("text", "delta", "warned"),
    [
        ("dp_sgd(clip=1, epsilon=8)", 0.1, True),
        ("dp_sgd(clip=1, epsilon=8)", 1e-5, False),
        ("pruning(ratio=0.5)", 0.1, False),  # promises nothing
    ],
)
def test_a_delta_above_one_in_the_rows_is_warned_of(dealt, text, delta, warned):
    told = settings.DefenseConfig(defense=text, delta=delta)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        _posed(dealt, told)
    found = [str(each.message) for each in said]
    assert (
        any("--delta: 0.1 is not below one in the" in each for each in found) == warned
    )


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_classes_that_are_named_rightly_are_counted_without_padding(task):
    logits = np.float32(
        [[[2], [-1], [3], [5]], [[-1], [-1], [-1], [5]]]
    )  # [seeds, N, 1]
    outputs = logits if task == "binary" else np.concatenate([0 * logits, logits], -1)
    rows = Rows(outputs[..., 0] if task == "binary" else outputs, np.ones((2, 4), int))
    mask = np.array([[True, True, True, False]] * 2)
    found = federation.classes_right(
        lambda params, x: params * x, task, np.ones(2, np.float32), rows, mask
    )
    np.testing.assert_allclose(found, [200 / 3, 0], rtol=1e-6)
