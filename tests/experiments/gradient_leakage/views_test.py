"""What the attacker sees of each method, and how she simulates it."""

import jax
import numpy as np
import pytest

from experiments.gradient_leakage import attack, views
from fljax import losses, models
from fljax.defenses import clipping, pruning


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


def test_views_of_fed_sdp_at_the_server_differ_by_type(completed, linear):
    run = completed("--methods=fed_sdp,non_private", "--where=server")
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


def test_what_each_method_shows(completed, linear):
    """Type 2: noise with Fed-CDP, only a clip where the noise follows the mean."""
    run = completed("--methods=non_private", "--clip=0.1", "--types=2")

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


def test_the_aware_attacker_simulates_clip_and_pruning(completed, linear):
    """Where there is no noise, the truth explains what she sees, and only if aware."""
    loss_fn, params, x, y = linear
    view = views.View("fed_cdp_per_batch", (2,), True)
    for attacker, close in (("aware", True), ("naive", False)):
        run = completed("--types=2", "--clip=0.1", f"--attacker={attacker}")
        seen = _see(run, view, linear, 0.4)
        known = views.known(run, view, 1, 0.4)
        simulation = views.simulation(run, example=True)
        simulate = simulation(loss_fn, known, seen)
        found = simulate(params, x[:1], y[:1])
        assert (_distance(found, seen) < 1e-6) is close


@pytest.mark.parametrize(
    "more", [(), ("--steps=3", "--batch_size=1")], ids=["one_step", "three_steps"]
)
def test_a_message_is_explained_by_the_truth(completed, linear, more):
    loss_fn, params, x, y = linear
    run = completed("--types=1", "--methods=non_private", "--rate=0.5", *more)
    (view,) = views.views(run)
    seen = _see(run, view, linear)
    known = views.known(run, view, 1, 0.0)
    build = views.simulation(run, example=False)
    simulate = build(loss_fn, known, seen)
    assert _distance(simulate(params, x, y), seen) < 1e-5
    assert _distance(simulate(params, x, y[::-1]), seen) > 1e-2


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("dssgd", ()),
        ("fed_cdp", ()),
        ("fed_cdp", ("--steps=3", "--batch_size=1")),
        ("fed_cdp_recommended", ("--steps=3",)),
        ("fed_sdp", ("--steps=3",)),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else value,
)
def test_only_the_aware_attacker_simulates_what_a_message_went_through(
    completed, linear, method, more
):
    loss_fn, params, x, y = linear
    near = {}
    for attacker in ("aware", "naive"):
        run = completed(
            f"--methods={method}", "--types=1", "--rate=0.5", "--clip=0.1", "--sigma=0",
            f"--attacker={attacker}", *more,
        )  # fmt: skip
        (view,) = views.views(run)
        seen = _see(run, view, linear)
        known = views.known(run, view, clipping.num_layers(params), 0.0)
        simulate = views.simulation(run, example=False)(loss_fn, known, seen)
        near[attacker] = _distance(simulate(params, x, y), seen)
    assert near["aware"] < 1e-6
    assert near["naive"] > 1e-3


def test_noise_differs_between_clients_and_is_drawn_anew_for_no_image(
    completed, linear
):
    run = completed("--types=2", "--methods=fed_cdp")
    (view,) = views.views(run)
    loss_fn, params, x, y = linear
    see = views.observe(run, view, loss_fn, 1)
    keys = [attack._key(0, 1, n) for n in (0, 1, 0)]
    found = [see(key, params, x, y, 4.0, 0.0) for key in keys]
    assert _distance(found[0], found[1]) > 1
    assert _distance(found[0], found[2]) == 0
