"""The adversary: how it simulates what it sees."""

import jax
import numpy as np
import pytest

from experiments.gradient_leakage import adversary, knowledge, views
from fljax import losses, models
from fljax.attacks.inversion.gaussian import Gaussian
from fljax.defenses import clipping, specs
from tests.defenses import examples


def _slow(*cases):
    return [pytest.param(*each, marks=pytest.mark.slow) for each in cases]


def test_the_aware_attacker_simulates_clip_and_pruning(
    completed, linear, see_view, distance
):
    """Where there is no noise, the truth explains what is seen, and only to an aware attacker."""
    loss_fn, params, x, y = linear
    spec = specs.parse("fed_cdp(clip=0.1, sigma=6, mode=per_batch)")
    view = views.View(spec, (2,), True)
    for attacker, close in (("aware", True), ("naive", False)):
        run = completed("--types=2", f"--attacker={attacker}")
        seen = see_view(run, view, 0.4)
        known = knowledge.known(run, view, 1, 0.4)
        simulation = knowledge.simulation(run, example=True)
        simulate = jax.jit(simulation(loss_fn, known, seen))
        found = simulate(params, x[:1], y[:1])
        assert (distance(found, seen) < 1e-6) is close


@pytest.mark.parametrize(
    "more", [(), ("--steps=3", "--batch_size=1")], ids=["one_step", "three_steps"]
)
def test_a_message_is_explained_by_the_truth(
    completed, linear, more, see_view, distance
):
    loss_fn, params, x, y = linear
    run = completed("--types=1", "--defense=none", "--rate=0.5", *more)
    (view,) = views.views(run)
    seen = see_view(run, view)
    known = knowledge.known(run, view, 1, 0.0)
    build = knowledge.simulation(run, example=False)
    simulate = jax.jit(build(loss_fn, known, seen))
    assert distance(simulate(params, x, y), seen) < 1e-5
    assert distance(simulate(params, x, y[::-1]), seen) > 1e-2


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("dssgd(fraction=0.1)", ()),
        *_slow(
            ("fed_cdp(clip=0.1, sigma=0)", ()),
            ("fed_cdp(clip=0.1, sigma=0)", ("--steps=3", "--batch_size=1")),
            ("dp_sgd(clip=0.1, sigma=0)", ()),
            ("median", ()),
            ("norm_clipping(norm=0.01)", ()),
            ("norm_clipping(norm=0.01)", ("--steps=3",)),
        ),
        ("fed_cdp(clip=0.1, sigma=0, mode=recommended)", ("--steps=3",)),
        ("median", ("--steps=3",)),
        ("fed_sdp(clip=0.1, sigma=0)", ("--steps=3",)),
        ("value_clipping(limit=0.001)", ("--steps=3",)),
        *[
            (f"{first} + fed_sdp(clip=0.003, sigma=0, where=server)", ("--types=0",))
            for first in ("norm_clipping(norm=0.01)", "value_clipping(limit=0.0003)")
        ],
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else value,
)
def test_only_the_aware_attacker_simulates_what_a_message_went_through(
    completed, linear, text, more, see_view, distance
):
    loss_fn, params, x, y = linear
    near = {}
    for attacker in ("aware", "naive"):
        run = completed(
            f"--defense={text}", "--types=1", "--rate=0.5", f"--attacker={attacker}", *more,
        )  # fmt: skip
        (view,) = views.views(run)
        seen = see_view(run, view)
        known = knowledge.known(run, view, clipping.num_layers(params), 0.0)
        build = knowledge.simulation(run, example=False)
        simulate = jax.jit(build(loss_fn, known, seen))
        near[attacker] = distance(simulate(params, x, y), seen)
    assert near["aware"] < 1e-6
    assert near["naive"] > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("text", [*examples.marked(examples.TEXTS)])
def test_what_is_simulated_has_finite_tangents(completed, linear, text, see_view):
    """Without them the whitened solver would quietly not whiten."""
    loss_fn, params, x, y = linear
    run = completed(f"--defense={text.format(6)}", "--types=1,2")

    def tangent(view, known, seen, x):
        count = 1 if view.example else len(x)
        simulate = knowledge.simulation(run, example=view.example)(loss_fn, known, seen)
        x = x[:count]
        return jax.jvp(lambda x: simulate(params, x, y[:count]), (x,), (x / x,))[1]

    told = [
        (view, knowledge.known(run, view, clipping.num_layers(params), 0.0),
         see_view(run, view))
        for view in views.views(run)
    ]  # fmt: skip
    found = jax.jit(lambda x: [tangent(*each, x) for each in told])(x)
    assert found
    for tangents in found:
        for leaf in jax.tree.leaves(tangents):
            assert np.isfinite(leaf).all()
        assert any(np.any(leaf) for leaf in jax.tree.leaves(tangents))


@pytest.mark.parametrize(
    ("images", "pixels", "chosen"),
    [
        (2, 128, ("whitened", 0.01, 7)),
        (2, 127, ("lbfgs", 7)),
        (1, 1, ("whitened", 0.01, 7)),
    ],
)
def test_whitening_is_for_so_many_pixels_at_once(
    completed, linear, monkeypatch, images, pixels, chosen
):
    run = completed(
        "--solver=whitened", f"--whitened_pixels={pixels}", "--inner_iterations=7"
    )

    def asked(simulate, shape, *, solver, **others):
        assert others["probe"] is None
        assert others["prior"] is None
        raise LookupError(solver)

    for name in ("whitened_lbfgs", "lbfgs"):
        short = name.removesuffix("_lbfgs")
        monkeypatch.setattr(
            adversary.solvers, name, lambda *given, short=short: (short, *given)
        )
    monkeypatch.setattr(adversary.presets, "cpl", asked)
    known = knowledge.known(run, views.views(run)[0], 1, 0.0)
    search = adversary.attack(run, linear[0], (images, 8, 8, 1), 10, example=False)
    with pytest.raises(LookupError) as caught:
        search(jax.random.key(0), {}, {}, known)
    assert caught.value.args == (chosen,)


def test_probed_labels_and_public_images_reach_the_search(
    completed, linear, monkeypatch
):
    run = completed("--labels=probed", "--prior=public")

    def asked(simulate, shape, **given):
        raise LookupError(given)

    monkeypatch.setattr(adversary.presets, "cpl", asked)
    known = knowledge.known(run, views.views(run)[0], 1, 0.0)
    known = known._replace(noise=np.float32(2))
    prior = Gaussian.fit(np.random.default_rng(0).uniform(size=(9, 4, 4, 1)))
    search = adversary.attack(
        run, linear[0], (2, 4, 4, 1), 3, example=False, prior=prior
    )
    with pytest.raises(LookupError) as caught:
        search(jax.random.key(0), linear[1], {}, known)
    (given,) = caught.value.args
    assert given["prior"].weight == 2
    assert given["seed"] == prior.draw
    message = given["probe"](linear[1], linear[2], linear[3])
    assert jax.tree.structure(message) == jax.tree.structure(linear[1])


@pytest.mark.parametrize(
    ("text", "more", "deviation"),
    [
        ("none", ("--types=1",), 0.0),
        ("fed_cdp(clip=4, sigma=0.5)", ("--types=2",), 2.0),
        *_slow(
            ("fed_cdp(clip=4, sigma=0.5)", ("--types=1",), 2.0 / 2**0.5),
            ("fed_cdp(clip=4, sigma=0.5)", ("--types=1", "--sought=one"), 2.0 / 2**0.5),
            ("fed_cdp(clip=4, sigma=0.5, mode=per_batch)", ("--types=1",), 2.0 / 2),
            ("fed_sdp(clip=4, sigma=0.5, where=client)", ("--types=1",), 2.0 / 0.5),
            ("fed_sdp(clip=4, sigma=0.5, where=server)", ("--types=1",), 0.0),
        ),
        ("fed_cdp(clip=4, sigma=0.5, mode=per_batch)", ("--types=2",), 0.0),
        ("dp_sgd(clip=4, sigma=0.5)", ("--types=0",), 2.0 / 2),
        ("fed_sdp(clip=4, sigma=0.5, where=server)", ("--types=0",), 2.0 / 0.5),
        ("fed_sdp(clip=4, sigma=0.5)", ("--types=2",), 0.0),
        (
            "fed_cdp(clip=4, sigma=0.5) + pruning(ratio=0.9)",
            ("--types=1",),
            2.0 / 2**0.5,
        ),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else None,
)
def test_the_adversary_rehearses_how_much_noise_there_is(
    completed, text, more, deviation
):
    """Two images in a batch, rate 0.5; many parameters, so that one rehearsal tells."""
    model = models.cnn((10, 10, 1), 10)
    params = model.init(jax.random.key(0))
    loss_fn = losses.example_loss(model.apply, losses.cross_entropy)
    run = completed(f"--defense={text}", "--rate=0.5", *more)
    (view,) = views.views(run)
    shape = (1 if view.example else 2, 10, 10, 1)
    rehearse = knowledge.noise_variance(run, view, loss_fn, params, shape)
    found = float(jax.jit(rehearse)(jax.random.key(1)))
    assert found**0.5 == pytest.approx(deviation, rel=0.02)
