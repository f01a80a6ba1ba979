"""Attacks by name, what they need, and draws that belong to seed and client."""

import jax
import numpy as np
import pytest

from fljax.attacks import needs, registry, spec, streams
from fljax.attacks.adversary import LocalTraining, ProxyRows
from fljax.attacks.attribute import gradient_grid
from fljax.attacks.estimates import NotApplicable, Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.attacks.trajectory import Settings as Search
from fljax.attacks.trajectory import clients as trajectory
from fljax.types import Features, Known, Transcript
from tests.attacks import regression

_ROWS = 10


def _view(clients=(4, 7, 9), rounds=3, **changes):
    """Random messages of these clients, who sent in every round."""
    sent = jax.vmap(regression.MODEL.init)(jax.random.split(jax.random.key(0), rounds))
    everyone = (4, 7, 9)
    delta = jax.tree.map(
        lambda leaf: (
            np.random.default_rng(leaf.size)
            .normal(size=(rounds, 3, *leaf.shape[1:]))
            .astype(np.float32)
        ),
        sent,
    )
    seen = Transcript(np.arange(rounds), np.tile(everyone, (rounds, 1)), sent, delta)
    at = np.searchsorted(everyone, clients)
    rng = np.random.default_rng(1)
    public = rng.normal(size=(3, _ROWS, 2)).astype(np.float32)[at]
    known = Known(
        Features(public, np.zeros((len(at), _ROWS, 0), np.int32)),
        rng.normal(size=(3, _ROWS)).astype(np.float32)[at],
        np.ones((len(at), _ROWS), bool),
    )
    return regression.view(seen, clients, known, **changes)


_SEARCH = Search(path_steps=2, iterations=4, batch_rounds=1, stages=1, probes=1)
_QUICK = trajectory.Settings(epoch_steps=2, search=_SEARCH)
_GRID = gradient_grid.Settings(rounds=(1, 3), learning_rates=(1.0, 10.0), iterations=2)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("grad", _GRID),
        pytest.param("linear_inversion", _QUICK, marks=pytest.mark.slow),
    ],
)
def test_who_else_is_attacked_changes_no_draw(name, settings):
    attack = registry.ATTACKS[name]
    (everyone,) = spec.apply(attack, _view(), settings).values()
    (one,) = spec.apply(attack, _view(clients=(7,)), settings).values()
    np.testing.assert_array_equal(one.value[0], everyone.value[1])


def test_streams_differ_by_seed_purpose_and_client():
    drawn = {
        tuple(jax.random.key_data(streams.key(*each)).tolist())
        for each in ((0, 2, 1), (1, 2, 1), (0, 5, 1), (0, 2, 2))
    }
    assert len(drawn) == 4


def test_the_best_setting_of_the_grid_is_the_prediction():
    estimate = registry.ATTACKS["grad"].run(_view(), _GRID)["grad"]
    grid = estimate.details["grid"]
    assert grid.index.shape == (3, 2, 2, _ROWS)
    for client in range(3):
        at = np.unravel_index(grid.dissimilarity[client].argmin(), (2, 2))
        np.testing.assert_array_equal(estimate.value[client], grid.index[client][at])
        cosine = 1 - grid.dissimilarity[client].min()
        assert estimate.diagnostics["cosine"][client] == pytest.approx(cosine)


def _counted():
    """A loss, and how often it was traced."""
    traced = []

    def loss_fn(params, x, y):
        traced.append(1)
        return regression.LOSS(params, x, y)

    return loss_fn, traced


@pytest.mark.slow
@pytest.mark.parametrize(
    "epoch_steps", [1, 2]
)  # of two, so that shorter steps are there to be tried where one runs away
def test_trajectory_matching_and_its_first_order_are_one_program(epoch_steps):
    loss_fn, traced = _counted()
    view, quick = _view(loss_fn=loss_fn), _QUICK._replace(epoch_steps=epoch_steps)
    first = registry.ATTACKS["linear_inversion"].run(view, quick)["linear_inversion"]
    before = len(traced)
    found = registry.ATTACKS["trajectory"].run(view, quick)["trajectory"]
    assert len(traced) == before > 0
    assert not np.array_equal(
        first.details["probability"], found.details["probability"]
    )


def test_a_second_seed_compiles_nothing():
    loss_fn, traced = _counted()
    view = _view(loss_fn=loss_fn)
    attack = registry.ATTACKS["grad"]
    attack.run(view, _GRID)
    before = len(traced)
    attack.run(view._replace(seed=4, candidates=view.candidates + 1), _GRID)
    assert len(traced) == before > 0


_PROXY = ProxyRows(np.zeros((4, 3), np.float32), np.array([0, 0, 1, 1]))
_NEEDS = {
    "number": (Needs(categorical=True), {"continuous": True}, "is a number"),
    "linear": (Needs(linear=True), {"linear": False}, "needs a linear model"),
    "task": (Needs(task="multiclass"), {}, "needs a multiclass target"),
    "told": (
        Needs(training=True),
        {"training": LocalTraining(steps=2)},
        "needs to be told learning_rate",
    ),
    "adam": (
        Needs(optimisers=("sgd",)),
        {"training": LocalTraining(optimiser="adam")},
        "needs clients that use sgd, they use adam",
    ),
    "momentum": (
        Needs(optimisers=("sgd",)),
        {"training": LocalTraining(momentum=0.9, weight_decay=0.01)},
        "use sgd alone, they use sgd with momentum 0.9 and weight decay 0.01",
    ),
    "decay": (
        Needs(optimisers=("sgd", "adam"), single_gradient=True),
        {"training": LocalTraining(optimiser="adamw", weight_decay=0.1, momentum=0.9)},
        "use sgd or adam, they use adamw with momentum 0.9 and weight decay 0.1",
    ),
    "first momentum": (
        Needs(optimisers=("sgd",), single_gradient=True),
        {"training": LocalTraining(5, 0.1, 1, momentum=0.9)},
        "it is 2 steps over 10 rows",
    ),
    "dropout": (
        Needs(single_gradient=True),
        {"training": LocalTraining(0, 0.1, 1, dropout=0.5)},
        "does not simulate dropout",
    ),
    "steps": (
        Needs(epochs=True), {"training": LocalTraining(steps=2)}, "told local steps"
    ),
    "dropped": (
        Needs(training=True),
        {"training": LocalTraining(11, 0.1, steps=5, drop_last=True)},
        "needs clients with 11 rows or more, as drop_last leaves nothing of fewer, they",
    ),
    "schedule": (
        Needs(training=True),
        {"training": LocalTraining(5, 0.1, 1, schedule=(1.0, 0.5))},
        "needs clients whose learning rate is the same in all rounds",
    ),
    "prox": (
        Needs(algorithms_not=("fed_prox",)),
        {"training": LocalTraining(algorithm="fed_prox")},
        "does not simulate fed_prox",
    ),
    "gradient": (Needs(single_gradient=True), {}, "it is 2 steps over 10 rows"),
    "messages": (
        Needs(more_messages_than_parameters=True), {}, "needs 5 messages of each client"
    ),
    "bias": (Needs(last_bias=True), {"outputs": 4}, "no array that must be its last"),
    "proxy": (Needs(proxy=True), {}, "needs proxy rows"),
    "class": (
        Needs(proxy=True), {"proxy": _PROXY, "outputs": 3}, "no proxy row of class 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "changes", "why"), _NEEDS.values(), ids=_NEEDS)
def test_what_is_missing_is_said_in_one_line(wanted, changes, why):
    said = needs.missing(wanted, _view(**changes))
    assert why in said and "\n" not in said
    assert not needs.missing(Needs(), _view(**changes))


def test_before_a_training_only_what_is_known_then_is_asked_for():
    wanted = Needs(linear=True, more_messages_than_parameters=True)
    assert not needs.missing(wanted, _view(transcript=None, messages=None))


def test_user_code_registers_an_attack(monkeypatch):
    monkeypatch.setattr(registry, "ATTACKS", dict(registry.ATTACKS))

    def run(view, settings):
        return {"zeros": Prediction(np.zeros(view.known.y.shape, int))}

    registry.register(AttackSpec("zeros", Needs(categorical=True), run))
    (found,) = registry.find(["zeros"])
    assert spec.apply(found, _view())["zeros"].value.shape == (3, _ROWS)
    assert isinstance(spec.apply(found, _view(continuous=True))["zeros"], NotApplicable)
    for name in ("zeros", "label_distribution"):
        with pytest.raises(ValueError, match="is there already"):
            registry.register(AttackSpec(name, Needs(), run))
    with pytest.raises(ValueError, match="'my_other': expected a name without"):
        registry.register(AttackSpec("my_other", Needs(), run))


def test_groups_are_found_by_name_in_the_registrys_order():
    found = registry.find(["label_distribution", "model"])
    names = [each.name for each in found]
    assert names == [
        "model", "last_layer", "class_gradients", "predictor", "simulated_path"
    ]  # fmt: skip
    with pytest.raises(ValueError, match="unknown attack 'guess'; known: model, grad"):
        registry.find(["guess"])


def test_streams_of_small_ids_are_theirs_and_large_ones_are_told_apart():
    ids = np.array([0, 7, 2**32 - 1, 2**40, 2**40 + 1, 2**63 - 1])
    numbers = streams.numbers(ids)
    assert numbers[:3].tolist() == ids[:3].tolist()
    assert len({*numbers.tolist()}) == len(ids)
    one, other = (
        jax.random.key_data(streams.key(0, streams.TRAJECTORY, each))
        for each in (7, jax.numpy.uint32(7))
    )
    np.testing.assert_array_equal(one, other)
