"""The program on digits: who leaks, what is written, and one-line errors."""

import inspect
import json
import pathlib

import jax
import numpy as np
import pytest
from absl import flags

from experiments import config, finished
from experiments.config import ConfigError
from experiments.gradient_leakage import (
    attack,
    program,
    published,
    scores,
    settings,
    victims,
    views,
)
from fljax import losses, models
from fljax.attacks.inversion import Inversion
from fljax.defenses import clipping, pruning

_SMALL = (
    "--clients=2",
    "--images=2",
    "--iterations=3",
    "--methods=non_private,fed_cdp",
    "--types=2",
    "--run_dir=out",
)


@pytest.fixture
def compiled_fast():
    """Programs that run once need not be fast."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def _told(*arguments):
    values = flags.FlagValues()
    program.define(
        lambda cls, prefix="": config.define(cls, prefix, flag_values=values)
    )
    values(["gradient_leakage", *arguments])
    return settings.Told(
        config.read(settings.DataConfig, "data", flag_values=values),
        config.read(settings.Config, flag_values=values),
    )


def _completed(*arguments):
    return settings.complete(_told("--images=2", *arguments)).run


@pytest.fixture
def linear():
    """Loss, params and images of a softmax regression, which compiles at once."""
    module = models.cnn((4, 4, 1), 3, channels=())
    params = module.init(jax.random.key(3))
    x = np.random.default_rng(0).uniform(size=(2, 4, 4, 1)).astype(np.float32)
    y = np.array([2, 0], np.int32)
    return losses.example_loss(module.apply, losses.cross_entropy), params, x, y


def _see(run, view, linear, pruned=0.0):
    loss_fn, params, x, y = linear
    layers = clipping.num_layers(params)
    see = views.observe(run, view, loss_fn, layers)
    clip = views.clip_of(run, view.method)
    return see(jax.random.key(5), params, x, y, clip, pruned)


def _distance(one, other):
    difference = jax.tree.map(lambda a, b: np.abs(a - b).max(), one, other)
    return max(map(float, jax.tree.leaves(difference)))


def test_the_program_shows_who_leaks_and_writes_all(
    compiled_fast, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    program.run(_told(*_SMALL))
    out = capsys.readouterr().out
    assert "success: RMSE < 0.01" in out
    assert "out" in out
    folder = tmp_path / "out"
    assert {path.name for path in folder.iterdir()} == {
        "rows.jsonl",
        "manifest.json",
        "reconstructions.lenet.example.png",
        "search.lenet.example.png",
    }
    rows = finished.read(folder, ("gradient_leakage",)).rows
    mean = {(row.attack, row.metric): row.value for row in rows if row.client == "all"}
    assert mean["non_private", "attack_success"] == 1
    assert mean["non_private", "reconstruction_distance"] < 0.01
    assert mean["non_private", "attack_iterations"] <= 3
    assert mean["non_private", "label_accuracy"] == 1
    assert mean["fed_cdp", "attack_success"] == 0
    assert mean["fed_cdp", "attack_iterations"] == 3
    level = mean["mean_image", "reconstruction_distance"]
    assert mean["fed_cdp", "reconstruction_distance"] > level
    assert level < mean["seed_image", "reconstruction_distance"]
    mine = [
        r.value for r in rows if r[4:10:5] == ("fed_cdp", "mse") and r.client != "all"
    ]
    assert len(mine) == 2
    assert np.mean(mine) == pytest.approx(mean["fed_cdp", "mse"])
    manifest = json.loads((folder / "manifest.json").read_text())
    found = manifest["summary"]["lenet, leakage_type=2, non_private"]
    assert found["attack_success"]["low"] == pytest.approx(0.025**0.5)


def test_the_attack_is_not_handed_the_truth():
    parameters = inspect.signature(attack._attack).parameters
    assert list(parameters) == [
        "run", "shape", "num_classes", "loss_fn", "simulation", "item", "shared"
    ]  # fmt: skip
    # `item` is a number and a message, `shared` params and what is known of a method.
    assert views.Known._fields == ("clip", "message_clip", "pruned")


def test_views_of_fed_sdp_at_the_server_differ_by_type(linear):
    run = _completed("--methods=fed_sdp,non_private", "--where=server")
    found = views.views(run)
    assert [(v.method, v.setting) for v in found] == [
        ("fed_sdp", "leakage_type=0"),
        ("fed_sdp", "leakage_type=1"),
        ("fed_sdp", "leakage_type=2"),
        ("non_private", "leakage_type=0_1"),
        ("non_private", "leakage_type=2"),
    ]
    seen = [_see(run, view, linear) for view in found]
    assert _distance(seen[1], seen[3]) == 0
    assert _distance(seen[2], seen[4]) == 0
    assert _distance(seen[0], seen[3]) > run.clip * run.sigma


def test_what_each_method_shows(linear):
    """Type 2: noise with Fed-CDP, only a clip where the noise follows the mean."""
    run = _completed("--methods=non_private", "--clip=0.1", "--types=2")

    def see(method, pruned=0.0):
        view = views.View(method, (2,), True)
        return _see(run, view, linear, pruned)

    raw = see("non_private")
    (norm,) = (float(np.linalg.norm(leaf)) for leaf in jax.tree.leaves(raw))
    assert norm > run.clip
    clipped = jax.tree.map(lambda leaf: leaf * run.clip / norm, raw)
    assert _distance(see("fed_cdp_per_batch"), clipped) < 1e-6
    for method in ("fed_cdp", "fed_cdp_decay", "fed_cdp_recommended"):
        assert _distance(see(method), clipped) > run.clip * run.sigma, method
    assert _distance(see("fed_sdp"), raw) == 0
    assert _distance(see("dssgd"), raw) == 0
    assert 0 < _distance(see("gaussian"), raw) < 1
    assert _distance(see("non_private", 0.5), pruning.prune(raw, 0.5)) == 0


def test_the_aware_attacker_simulates_clip_and_pruning(linear):
    """Where there is no noise, the truth explains what she sees, and only if aware."""
    loss_fn, params, x, y = linear
    view = views.View("fed_cdp_per_batch", (2,), True)
    for attacker, close in (("aware", True), ("naive", False)):
        run = _completed("--types=2", "--clip=0.1", f"--attacker={attacker}")
        seen = _see(run, view, linear, 0.4)
        known = views.known(run, view, 1, 0.4)
        simulation = views.simulation(run, example=True)
        simulate = simulation(loss_fn, known, seen)
        found = simulate(params, x[:1], y[:1])
        assert (_distance(found, seen) < 1e-6) is close


@pytest.mark.parametrize(
    "told", [(), ("--steps=3", "--batch_size=1")], ids=["one_step", "three_steps"]
)
def test_a_message_is_explained_by_the_truth(linear, told):
    loss_fn, params, x, y = linear
    run = _completed("--types=1", "--methods=non_private", "--rate=0.5", *told)
    (view,) = views.views(run)
    seen = _see(run, view, linear)
    known = views.known(run, view, 1, 0.0)
    build = views.simulation(run, example=False)
    simulate = build(loss_fn, known, seen)
    assert _distance(simulate(params, x, y), seen) < 1e-5
    assert _distance(simulate(params, x, y[::-1]), seen) > 1e-2


def test_noise_differs_between_clients_and_is_drawn_anew_for_no_image(linear):
    run = _completed("--types=2", "--methods=fed_cdp")
    (view,) = views.views(run)
    loss_fn, params, x, y = linear
    see = views.observe(run, view, loss_fn, 1)
    keys = [attack._key(0, 1, n) for n in (0, 1, 0)]
    found = [see(key, params, x, y, 4.0, 0.0) for key in keys]
    assert _distance(found[0], found[1]) > 1
    assert _distance(found[0], found[2]) == 0


def test_success_counts_iterations_and_all_images():
    x = np.zeros((2, 4, 4, 1), np.float32)
    x[1] = 1
    guess = x[::-1] + 0.001  # in another order
    path = np.stack([guess + 1, guess, guess])
    found = Inversion(guess, np.array([1, 0]), 0.5, None, path, 0, 3)
    run = _completed("--iterations=5", "--record_every=2")
    everything = np.ones(x.shape[1:], bool)
    score = scores.score(run, found, x, np.array([0, 1]), everything)
    assert score.values["attack_success"] == 1
    assert score.values["attack_iterations"] == 4
    assert score.values["reconstruction_distance"] == pytest.approx(0.001, rel=1e-3)
    assert score.values["label_accuracy"] == 1
    np.testing.assert_allclose(score.x, x, atol=0.0011)
    assert score.path.shape == (3, 4, 4, 1)
    half = found._replace(path=np.stack([x + np.array([0, 1]).reshape(2, 1, 1, 1)] * 3))
    missed = scores.score(run, half, x, np.array([0, 1]), everything)
    assert missed.values["attack_success"] == 0
    assert missed.values["attack_iterations"] == 5


def test_pixels_that_the_network_never_reads_do_not_count_where_it_reads():
    x = np.zeros((1, 4, 4, 1), np.float32)
    guess = x.copy()
    guess[:, -1] = 1
    read = np.ones((4, 4, 1), bool)
    read[-1] = False
    found = Inversion(guess, np.array([0]), 0.5, None, guess[None], 0, 3)
    score = scores.score(_completed(), found, x, np.array([0]), read)
    assert score.values["distance_cut_to_range"] == pytest.approx(0.5)
    assert score.values["distance_where_read"] == 0


def test_pooling_leaves_out_the_last_two_rows_and_columns_of_28():
    model = models.cnn((28, 28, 1), 10)
    read = victims._read(model, model.init(jax.random.key(0)), (28, 28, 1))[..., 0]
    assert read[:26, :26].all()
    assert not read[26:].any() and not read[:, 26:].any()


def test_no_image_is_attacked_twice():
    told = settings.complete(_told("--clients=60", "--images=5"))
    found = victims.load(*told)
    assert found.x.shape == (60, 5, 8, 8, 1)
    assert 0 <= found.x.min() < found.x.max() == 1
    rows = found.x.reshape(300, -1)
    assert len(np.unique(rows, axis=0)) == 300
    classes = [len(np.unique(labels)) for labels in found.y]
    assert max(classes) <= 2


def test_table_7_stands_beside_a_run_on_its_data():
    reference = published.reference
    found = reference({"paper_table": "table7"}, "mnist")
    assert len(found.numbers) == 24
    key = "leakage_type=2", "fed_sdp", "reconstruction_distance"
    assert found.numbers[key].mean == 0.0008
    assert reference({"paper_table": "table7"}, "digits") is None
    assert reference({}, "mnist") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods=magic"], "--methods: expected some of non_private"),
        (["--methods="], "--methods: expected each at most once, and one at least"),
        (["--types=2,2"], "--types: expected each at most once"),
        (["--types=3"], "--types: expected some of 0, 1, 2"),
        (["--success_rmse=0"], "--success_rmse: expected a number > 0"),
        (["--sigma=-1"], "--sigma: expected a number >= 0"),
        (["--clip=0"], "--clip: expected a number > 0"),
        (["--pruned=1"], "--pruned: expected numbers >= 0 and < 1"),
        (["--dssgd_fraction=0"], "--dssgd_fraction: expected a number > 0 and <= 1"),
        (["--decay=6"], "--decay: expected first and last clip"),
        (["--images=3", "--batch_size=2"], "--batch_size: expected a divisor"),
        (["--batch_size=1"], "--images: expected at most --steps=1 batches of 1"),
        (["--round=10"], "--round: expected less than --num_rounds=10"),
        (["--clients=2000"], "--clients: expected at most"),
        (
            ["--attack=inverting_gradients", "--solver=whitened"],
            "--solver: inverting_gradients has its own",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, flags.Error)) as error:
        program.run(_told("--images=2", "--run_dir=out", *arguments))
    assert message in str(error.value)
    assert "\n" not in str(error.value).strip()
    assert not (tmp_path / "out").exists()


def test_a_dry_run_attacks_nobody(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program.run(_told(*_SMALL, "--dry_run=true"))
    out = capsys.readouterr().out
    assert "fed_cdp, leakage_type=2: 2 clients of 1 images" in out
    assert not list(tmp_path.iterdir())


def test_every_flagfile_can_be_read():
    found = sorted(pathlib.Path("experiments/flags").glob("gradient_leakage.*.flags"))
    assert len(found) == 6
    for path in found:
        assert "# expect:" in path.read_text()
        settings.complete(_told(f"--flagfile={path}"))
