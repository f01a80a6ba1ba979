"""Messages that have, or have not, the noise that their defense is said to add."""

import numpy as np
import pandas as pd
import pytest

import fljax
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.auditing import declared_noise
from fljax.auditing.lines import MISFIT
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Known, Transcript

_TOLD = {
    "target": "y", "sensitive": "married", "client_column": "client",
    "attacks": ("model",),
}  # fmt: skip


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize(("count", "size"), [(2, 400), (3, 40), (12, 4), (30, 100)])
def test_who_adds_the_noise_is_never_said_to_lack_it(law, count, size):
    rng, unit = np.random.default_rng(0), np.sqrt(2) if law == "laplace" else 1
    found = 0
    for _ in range(200):
        deviation = rng.uniform(0.1, 2, count)
        signal = np.cumsum(rng.normal(size=(count, size)), axis=0) * rng.integers(2)
        noise = getattr(rng, law)(size=(count, size)) * deviation[:, None] / unit
        found += _lacks(signal + noise, np.square(deviation))
    assert found == 0


def _lacks(delta, variance, rounding=1e-6):
    """Of the messages of one client."""
    client = declared_noise._Messages(np.arange(len(delta)), delta, variance)
    return declared_noise._is_less(declared_noise._in_time(client, rounding, 1.0))


@pytest.mark.parametrize(("count", "size"), [(2, 400), (12, 4), (30, 100)])
def test_a_fifth_of_the_deviation_is_told_from_the_whole(count, size):
    rng = np.random.default_rng(0)
    delta, declared = rng.normal(size=(count, size)), np.full(count, 25.0)
    assert _lacks(delta, declared)
    assert not _lacks(delta[:1], declared[:1])  # without a pair
    assert not _lacks(delta, declared, 8.0)  # rounded away
    still = np.where(np.arange(size) < size / 2, delta, 5 * delta)
    assert not _lacks(still, declared)
    frozen = np.concatenate([5 * delta, np.zeros((count, 9 * size))], axis=1)
    assert not _lacks(frozen, declared)


def _view(delta, rounds=None, clients=(0, 1)):
    """Of clients with ten rows each, who send these `{name: [R, C, *shape]}`."""
    first = next(iter(delta.values()))
    rounds = np.arange(len(first)) if rounds is None else rounds
    sent = {
        name: np.zeros((len(leaf), *leaf.shape[2:])) for name, leaf in delta.items()
    }
    seen = Transcript(rounds, np.tile(clients, (len(first), 1)), sent, delta)
    count = len(clients)
    known = Known(None, np.zeros((count, 10)), np.ones((count, 10), bool))
    return AdversaryView(
        seen, views.client_view(seen, clients), np.array(clients), known, np.eye(2),
        False, None, None, "regression", 1, False,
        LocalTraining(learning_rate=0.1, steps=40), 0,
    )  # fmt: skip


def _noisy(rng, count, leave=()):
    """Three arrays of as many clients, with noise of deviation 1 but where it is left out."""
    shapes = {
        "dense/bias": (60, count, 3),
        "dense/kernel": (60, count, 5, 3),
        "scale": (60, count),
    }
    return {
        name: rng.normal(size=shape) * (0.01 if name in leave else 1)
        for name, shape in shapes.items()
    }  # fmt: skip


def _said(view):
    return declared_noise.lacking(
        view._replace(defense=specs.parse("gaussian(deviation=1)"))
    ).said


def test_arrays_that_a_defense_leaves_out_are_named():
    rng = np.random.default_rng(0)
    for _ in range(100):
        assert _said(_view(_noisy(rng, 2))) == ""
    bare = _view(_noisy(rng, 2, ("dense/bias", "scale")))
    assert _said(bare).startswith(
        "messages of most clients differ from round to round in dense/bias, scale by less "
    )
    all_bare = _view(_noisy(rng, 2, ("dense/bias", "dense/kernel", "scale")))
    assert _said(all_bare).startswith("messages of 2 of 2 clients differ from round")
    one = _noisy(rng, 3)
    one["scale"][:, 0] *= 0.01  # of one client of three
    assert _said(_view(one, clients=(0, 1, 2))) == ""


def test_clients_who_draw_the_same_noise_are_told_by_their_differences():
    rng = np.random.default_rng(0)
    own, alike = _noisy(rng, 3), _noisy(rng, 3)
    for leaf in alike.values():
        leaf[:, 2] = leaf[:, 1] + 0.01 * rng.normal(size=leaf[:, 1].shape)
    assert _said(_view(own, clients=(2, 4, 7))) == ""
    assert _said(_view(alike, clients=(2, 4, 7))).startswith(
        "messages of clients 4 and 7 differ from each other by less than a tenth of the "
        "noise's variance that gaussian(deviation=1) adds, as if both drew it"
    )
    # Of other rounds nothing is known.
    seen = _view(alike, clients=(2, 4, 7))
    apart = np.tile([2, 4, 7], (60, 1))
    apart[::2, 1], apart[1::2, 2] = -1, -1
    transcript = seen.transcript._replace(client=apart)
    where = views.client_view(transcript, (2, 4, 7))
    assert _said(seen._replace(transcript=transcript, messages=where)) == ""


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize(("count", "size"), [(1, 400), (3, 40), (12, 4)])
def test_a_seed_is_shared_by_clients_of_other_deviations_or_none(law, count, size):
    rng, unit = np.random.default_rng(0), np.sqrt(2) if law == "laplace" else 1
    rounds, ones = np.arange(count), np.ones(count)

    def less(one, other):
        large = declared_noise._Messages(rounds, 5 * other, 25 * ones)
        client = declared_noise._Messages(rounds, one, ones)
        return declared_noise._is_less(declared_noise._between(client, large, 1e-6))

    for _ in range(200):
        one, other = getattr(rng, law)(size=(2, count, size)) / unit
        assert not less(one, other)
    assert less(one, one + 0.01 * other)


def test_noise_that_is_the_same_in_every_round_is_none():
    rng = np.random.default_rng(0)
    once = {
        name: np.tile(leaf[:1], (60, *[1] * (leaf.ndim - 1)))
        for name, leaf in _noisy(rng, 2).items()
    }
    moved = {
        name: leaf + 0.01 * rng.normal(size=leaf.shape) for name, leaf in once.items()
    }
    assert "of 2 of 2 clients differ from round to round by less" in _said(_view(moved))


def test_of_noise_that_later_steps_take_back_the_last_draw_counts():
    rng, rounds, size = np.random.default_rng(0), 12, 60
    path, shrinks = np.zeros((2, rounds, size)), 0.3  # curvature times rate, 40 steps
    for _ in range(40):
        path = (1 - shrinks) * path + 0.1 * rng.normal(size=path.shape)
    view = _view({"w": np.moveaxis(path, 0, 1)})._replace(
        defense=specs.parse("gaussian(deviation=1, on=steps)")
    )
    assert declared_noise.lacking(view).said == ""
    ten = view._replace(defense=specs.parse("gaussian(deviation=20, on=steps)"))
    assert declared_noise.lacking(ten).wholly
    assert declared_noise.lacking(ten).said.startswith("messages of 2 of 2 clients")
    cut = "gaussian(deviation=20, on=steps) + pruning(ratio=0.5)"
    assert not declared_noise.lacking(view._replace(defense=specs.parse(cut))).said


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_an_audit_under_noise_that_is_not_there_concludes_nothing(
    linear, record, share
):
    rows, rng = pd.read_csv(linear / "rows.csv"), np.random.default_rng(0)
    deviation = 0.1 * 32 / 30  # rate times sigma over the rows of a full batch

    def change(_, model, returned):
        for client, theirs in returned.items():
            for name, leaf in theirs.items():
                moved = 1e-3 * (client + rng.normal(size=leaf.shape))
                noise = share * deviation * rng.normal(size=leaf.shape)
                theirs[name] = model[name] - moved + noise

    record(linear / "seen", rows, change=change)
    findings = fljax.audit(
        linear / "seen", rows, defense="dp_sgd(clip=1, sigma=32)", **_TOLD
    )
    said = (
        "of 2 clients differ from round to round by less than a tenth of the noise's "
        "variance that dp_sgd"
    )
    ceiling = findings.audited.ceiling
    if share:
        assert not findings.audited.fit.lacking and ceiling.percent is not None
    else:
        line = next(each for each in findings.lines if each.attack == "model")
        assert line.verdict == MISFIT and f"messages of 2 {said}" in line.detail
        assert findings.outcome == "no_conclusion" and said in findings.summary[0]
        assert ceiling.percent is None and any(said in n for n in findings.notes)
