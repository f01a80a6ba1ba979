"""What each method shows of a client."""

import jax
import numpy as np

from experiments.gradient_leakage import attack, views
from fljax.defenses import pruning


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
    (norm,) = (float(np.linalg.norm(leaf)) for leaf in jax.tree.leaves(raw))
    assert norm > run.clip
    clipped = jax.tree.map(lambda leaf: leaf * run.clip / norm, raw)
    assert distance(see("fed_cdp_per_batch"), clipped) < 1e-6
    for method in ("fed_cdp", "fed_cdp_decay", "fed_cdp_recommended"):
        assert distance(see(method), clipped) > run.clip * run.sigma, method
    assert distance(see("fed_sdp"), raw) == 0
    assert distance(see("dssgd"), raw) == 0
    assert 0 < distance(see("gaussian"), raw) < 1
    assert distance(see("non_private", 0.5), pruning.prune(raw, 0.5)) == 0


def test_noise_differs_between_clients_and_is_drawn_anew_for_no_image(
    completed, linear, distance
):
    run = completed("--types=2", "--methods=fed_cdp")
    (view,) = views.views(run)
    loss_fn, params, x, y = linear
    see = views.observe(run, view, loss_fn, 1)
    keys = [attack._key(0, 1, n) for n in (0, 1, 0)]
    found = [see(key, params, x, y, 4.0, 0.0) for key in keys]
    assert distance(found[0], found[1]) > 1
    assert distance(found[0], found[2]) == 0
