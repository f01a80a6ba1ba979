"""What each method shows of a client."""

import dataclasses
import sys
import types
import warnings

import jax
import numpy as np
import pytest

from experiments.gradient_leakage import views
from fljax.attacks import streams
from fljax.defenses import dp_sgd, fed_cdp, pruning, specs
from fljax.defenses.registry import DEFENSES
from fljax.driver.config import ConfigError

CDP = "fed_cdp(clip=0.1, sigma=6"
DP = dp_sgd.DEFINITION  # as one of somebody's own


def test_views_of_fed_sdp_at_the_server_differ_by_type(completed, see_view, distance):
    run = completed("--defense=fed_sdp(clip=4, sigma=6, where=server); none")
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
    assert distance(seen[0], seen[3]) > 4 * 6


def _example(text):
    return views.View(specs.parse(text), (2,), True)


def test_what_each_defense_shows(completed, see_view, distance):
    """Type 2: noise with Fed-CDP, only a clip where the noise follows the mean."""
    run = completed("--types=2")

    def see(text, pruned=0.0):
        return see_view(run, _example(text), pruned)

    raw = see("none")
    clipped = jax.tree.map(lambda leaf: leaf * 0.1 / np.linalg.norm(leaf), raw)
    assert min(np.linalg.norm(leaf) for leaf in jax.tree.leaves(raw)) > 0.1
    assert distance(see(CDP + ", mode=per_batch)"), clipped) < 1e-6
    for more in (")", ", mode=recommended)", ", decay_to=0.05)"):
        assert distance(see(CDP + more), clipped) > 0.1 * 6, more
    assert distance(see("fed_sdp(clip=0.1, sigma=6)"), raw) == 0
    assert distance(see("dssgd(fraction=0.1)"), raw) == 0
    assert distance(see("gaussian(deviation=0.01)"), raw) == 0
    assert 0 < distance(see("gaussian(deviation=0.01, on=steps)"), raw) < 1
    assert distance(see("none", 0.5), pruning.prune(raw, 0.5)) == 0
    together = see(f"pruning(ratio=0.5) + {CDP}, mode=per_batch)")
    assert distance(together, clipped) < 1e-6  # what is sent is pruned later


def _norm(tree):
    return np.sqrt(sum(np.sum(np.square(leaf)) for leaf in jax.tree.leaves(tree)))


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        (CDP + ", mode=recommended)", lambda c, leaf, tree: c / 2**0.5 / _norm(leaf)),
        ("dp_sgd(clip=0.1, sigma=6)", lambda c, leaf, tree: c / _norm(tree)),
        (f"{__name__}:DP(clip=0.1, sigma=6)", lambda c, leaf, tree: c / _norm(tree)),
        ("median(deviation=0.6)", lambda c, leaf, tree: 1),
        ("gaussian(deviation=0.6, on=steps)", lambda c, leaf, tree: 1),
        ("laplace(scale=0.424, on=steps)", lambda c, leaf, tree: 1),
    ],
    ids=["fed_cdp_recommended", "dp_sgd", "own", "median", "gaussian", "laplace"],
)
def test_noise_on_the_sum_hides_nothing_before_it(
    completed, see_view, distance, text, factor
):
    """Type 2 is the release of a batch of one; before the sum there is only a clip."""
    run = completed(f"--defense={text}", "--types=2")
    release, before = views.views(run)
    assert release.setting == "leakage_type=2"
    assert before.setting == "leakage_type=2 before the sum"
    plain = see_view(run, _example("none"))
    clipped = jax.tree.map(lambda leaf: factor(0.1, leaf, plain) * leaf, plain)
    assert distance(see_view(run, before), clipped) < 1e-6
    noise = jax.tree.map(np.subtract, see_view(run, release), clipped)
    size = sum(leaf.size for leaf in jax.tree.leaves(noise))
    assert _norm(noise) / size**0.5 == pytest.approx(0.1 * 6, rel=0.3)


def test_an_example_is_released_as_fed_cdp_documents_it(
    completed, linear, see_view, distance
):
    loss_fn, params, x, y = linear
    run = completed(f"--defense={CDP}, mode=recommended)", "--types=2")
    how = {"clip": 0.1, "noise_scale": 6.0, "mode": "recommended"}
    release = jax.jit(
        lambda key, *row: fed_cdp.sanitise_example(key, jax.grad(loss_fn)(*row), **how)
    )
    expected = release(jax.random.key(5), params, x[0], y[0])
    assert distance(see_view(run, views.views(run)[0]), expected) < 1e-6


def test_noise_differs_between_clients_and_is_drawn_anew_for_no_image(
    completed, linear, distance
):
    run = completed("--types=2", "--defense=fed_cdp(clip=4, sigma=6)")
    (view,) = views.views(run)
    loss_fn, params, x, y = linear
    see = jax.jit(views.observe(run, view, loss_fn, 1))
    keys = [streams.key(0, 1, n) for n in (0, 1, 0)]
    found = [see(key, params, x, y, (4.0,), 0.0) for key in keys]
    assert distance(found[0], found[1]) > 1
    assert distance(found[0], found[2]) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("salt", "--defense: salt: expected none"),
        ("fed_cdp(clip=4, epsilon=1)", "--defense=fed_cdp.* sigma is left to a budget"),
        ("median + dp_sgd(clip=1, sigma=1)", "--defense=median.* expected one defense"),
    ],
)
def test_a_defense_that_cannot_be_is_one_line(completed, text, message):
    with pytest.raises(ConfigError, match=message):
        views.views(completed(f"--defense={text}"))


def test_a_defense_that_does_not_say_what_it_does_is_warned_of(completed, monkeypatch):
    silent = dataclasses.replace(DEFENSES["median"], effects=None)
    monkeypatch.setitem(sys.modules, "dumb", types.SimpleNamespace(SILENT=silent))
    with pytest.warns(UserWarning, match="do not know what dumb:SILENT does"):
        views.views(completed("--defense=dumb:SILENT"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        views.views(completed("--defense=dumb:SILENT", "--attacker=naive"))
