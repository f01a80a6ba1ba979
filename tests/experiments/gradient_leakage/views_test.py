"""What each method shows of a client."""

import jax
import numpy as np
import pytest

from experiments.gradient_leakage import blocks, views
from fljax.defenses import fed_cdp, pruning


def test_views_of_fed_sdp_at_the_server_differ_by_type(completed, see_view, distance):
    run = completed("--methods=fed_sdp,non_private", "--where=server")
    found = views.views(run)
    assert [(v.method, v.setting) for v in found] == [
        ("fed_sdp", "leakage_type=0"),
        ("fed_sdp", "leakage_type=1"),
        ("fed_sdp", "leakage_type=2"),
        ("non_private", "leakage_type=0_1"),
        ("non_private", "leakage_type=2"),
    ]
    seen = [see_view(run, view) for view in found]
    assert distance(seen[1], seen[3]) == 0
    assert distance(seen[2], seen[4]) == 0
    assert distance(seen[0], seen[3]) > run.clip * run.sigma


def test_what_each_method_shows(completed, see_view, distance):
    """Type 2: noise with Fed-CDP, only a clip where the noise follows the mean."""
    run = completed("--methods=non_private", "--clip=0.1", "--types=2")

    def see(method, pruned=0.0):
        view = views.View(method, (2,), True)
        return see_view(run, view, pruned)

    raw = see("non_private")
    clipped = jax.tree.map(lambda leaf: leaf * run.clip / np.linalg.norm(leaf), raw)
    assert min(np.linalg.norm(leaf) for leaf in jax.tree.leaves(raw)) > run.clip
    assert distance(see("fed_cdp_per_batch"), clipped) < 1e-6
    for method in ("fed_cdp", "fed_cdp_decay", "fed_cdp_recommended"):
        assert distance(see(method), clipped) > run.clip * run.sigma, method
    assert distance(see("fed_sdp"), raw) == 0
    assert distance(see("dssgd"), raw) == 0
    assert 0 < distance(see("gaussian"), raw) < 1
    assert distance(see("non_private", 0.5), pruning.prune(raw, 0.5)) == 0


def _norm(tree):
    return np.sqrt(sum(np.sum(np.square(leaf)) for leaf in jax.tree.leaves(tree)))


@pytest.mark.parametrize(
    ("method", "factor"),
    [
        ("fed_cdp_recommended", lambda c, leaf, tree: c / 2**0.5 / _norm(leaf)),
        ("dp_sgd", lambda c, leaf, tree: c / _norm(tree)),
        ("median", lambda c, leaf, tree: 1),
    ],
    ids=["fed_cdp_recommended", "dp_sgd", "median"],
)
def test_noise_on_the_sum_hides_nothing_before_it(
    completed, see_view, distance, method, factor
):
    """Type 2 is the release of a batch of one; before the sum there is only a clip."""
    run = completed(f"--methods={method}", "--clip=0.1", "--types=2")
    release, before = views.views(run)
    assert release.setting == "leakage_type=2"
    assert before.setting == "leakage_type=2 before the sum"
    plain = see_view(run, views.View("non_private", (2,), True))
    clipped = jax.tree.map(lambda leaf: factor(run.clip, leaf, plain) * leaf, plain)
    assert distance(see_view(run, before), clipped) < 1e-6
    noise = jax.tree.map(np.subtract, see_view(run, release), clipped)
    size = sum(leaf.size for leaf in jax.tree.leaves(noise))
    assert _norm(noise) / size**0.5 == pytest.approx(run.clip * run.sigma, rel=0.3)


def test_an_example_is_released_as_fed_cdp_documents_it(
    completed, linear, see_view, distance
):
    loss_fn, params, x, y = linear
    run = completed("--methods=fed_cdp_recommended", "--clip=0.1", "--types=2")
    expected = fed_cdp.sanitise_example(
        jax.random.key(5),
        jax.grad(loss_fn)(params, x[0], y[0]),
        clip=run.clip,
        noise_scale=run.sigma,
        mode="recommended",
    )
    assert distance(see_view(run, views.views(run)[0]), expected) < 1e-6


def test_noise_differs_between_clients_and_is_drawn_anew_for_no_image(
    completed, linear, distance
):
    run = completed("--types=2", "--methods=fed_cdp")
    (view,) = views.views(run)
    loss_fn, params, x, y = linear
    see = views.observe(run, view, loss_fn, 1)
    keys = [blocks.stream(0, 1, n) for n in (0, 1, 0)]
    found = [see(key, params, x, y, 4.0, 0.0) for key in keys]
    assert distance(found[0], found[1]) > 1
    assert distance(found[0], found[2]) == 0
