"""Attacks on clients whose messages are only seen in sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks import needs, registry, spec
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.attacks.attribute import gradient_grid
from fljax.attacks.each_client import task
from fljax.attacks.estimates import NotApplicable
from fljax.attacks.groups import over_groups
from fljax.attacks.trajectory import Settings as Search
from fljax.attacks.trajectory import message_facts, simulation
from fljax.attacks.trajectory import sums as together
from fljax.transcript import sums
from fljax.transcript.sums import Server
from fljax.types import Exchange, Features, Known, Transcript
from tests.attacks import regression

_IDS, _ROWS, _ROUNDS = np.array([2, 4, 7, 9, 30]), 6, 4
_SEARCH = Search(path_steps=2, iterations=4, batch_rounds=1, stages=1, probes=1)


def _view(size=2, absent=(), sees="sum", server=None) -> AdversaryView:
    """Random messages in sums of so many; `absent` are `(round, client)`."""
    rng = np.random.default_rng(0)
    ids = np.tile(_IDS, (_ROUNDS, 1))
    for at, client in absent:
        ids[at, _IDS == client] = -1
    params = jax.vmap(regression.MODEL.init)(
        jax.random.split(jax.random.key(0), _ROUNDS)
    )
    delta = jax.tree.map(
        lambda leaf: rng.normal(size=(*ids.shape, *leaf.shape[1:])).astype(np.float32),
        params,
    )
    whole = Transcript(np.arange(_ROUNDS), ids, params, delta)
    known = Known(
        Features(
            rng.normal(size=(5, _ROWS, 2)).astype(np.float32),
            np.zeros((5, _ROWS, 0), np.int32),
        ),
        rng.normal(size=(5, _ROWS)).astype(np.float32),
        np.ones((5, _ROWS), bool),
    )
    server = server or Server(_IDS, np.arange(1.0, 6.0))
    seen = sums.add_up(whole, server, size)
    if sees != "sum":
        seen = getattr(sums, sees)(whole, server)
    return regression.view(seen, _IDS, known, sees=sees)


def _told(static, group, number):
    """Of each client: its number, its rows, its weight in each sum, all sums."""
    del static
    here = jax.nn.one_hot(group.member, len(number))
    weight = jnp.einsum("qs,qsm->mq", group.share, here)
    total = jax.tree.leaves(group.exchange.delta)[0].sum()
    everyone = jnp.full(len(number), total)
    return number, group.known.y.sum(axis=1), weight, everyone, group.known.mask


def _all_told(view):
    return over_groups(_told, task(view), view, np.arange(5.0))


def test_each_group_has_its_clients_their_rows_and_weights():
    view = _view(size=2)
    number, rows, weight, total, mask = _all_told(view)
    np.testing.assert_array_equal(number, np.arange(5))
    np.testing.assert_allclose(rows, view.known.y.sum(axis=1), rtol=1e-6)
    alone = np.array([1 / 6, 2 / 6, 3 / 6, 4 / 9, 5 / 9])
    np.testing.assert_allclose(weight, np.tile(alone[:, None], _ROUNDS), rtol=1e-6)
    assert mask.all() and total[0] == total[2] != total[3]


def test_changing_participants_link_clients_and_absent_ones_have_no_weight():
    view = _view(size=5, absent=[(0, 4), (3, 30), *((at, 9) for at in range(4))])
    _, rows, weight, total, _ = _all_told(view)
    np.testing.assert_allclose(weight[0], [1 / 9, 1 / 11, 1 / 11, 1 / 6], rtol=1e-6)
    assert (weight[1] > 0).tolist() == [False, True, True, True]
    assert not weight[3].any() and rows[3] == total[3] == 0  # in no sum
    np.testing.assert_allclose(weight.sum(axis=0), 1, rtol=1e-6)


@pytest.mark.slow
def test_the_sum_of_paths_has_the_derivatives_of_each_path():
    """Against automatic differentiation through the sum itself."""
    rng = np.random.default_rng(2)
    view = _view(size=5, absent=[(1, 4)])
    seen = together.Seen(
        Exchange(view.transcript.params, view.transcript.delta),
        np.searchsorted(_IDS, np.maximum(view.transcript.member[:, 0], 2)),
        view.transcript.share[:, 0],
        message_facts.none(_ROUNDS),
    )
    matrix = jnp.asarray(rng.normal(size=(5, 3, 3)), jnp.float32)
    sent = jnp.asarray(rng.normal(size=(_ROUNDS, 3)), jnp.float32)
    sizes = jnp.asarray([0.1, 0.2, 0.3, 0.4, 0.5])

    def simulate(rows):
        def loss(params, values):
            return 0.5 * jnp.sum((rows @ params - values) ** 2)

        return simulation.paths(simulation.of_loss(loss), simulation.SGD, sent, 3)

    added, apart = together.added(simulate, seen, matrix, sizes)
    values = jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)
    cotangent = jnp.asarray(rng.normal(size=3), jnp.float32)

    @jax.jit
    def both(t, values, scale):
        predicted, stored = added.end(t, values, scale)
        own = jax.vmap(
            lambda rows, mine, size: simulate(rows).end(t, mine, scale * size)[0]
        )(matrix, values, sizes)
        exact = jax.grad(lambda v, s: cotangent @ added.end(t, v, s)[0], (0, 1))
        found = added.back(stored, cotangent, values, scale)
        return predicted, own, found, exact(values, scale)

    for round_ in (0, 1):
        predicted, own, found, exact = both(round_, values, 0.7)
        mean = seen.share[round_] @ np.asarray(own)[seen.member[round_]]
        np.testing.assert_allclose(predicted, mean, rtol=1e-5)
        who, parts = apart(round_, values)
        np.testing.assert_array_equal(who, seen.member[round_])
        whole = added.end(round_, values, 1.0)[0]
        np.testing.assert_allclose(parts.sum(axis=0), whole, rtol=1e-5)
        for ours, theirs in zip(found, exact, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    assert not found[0][1].any()  # the absent client


_GRID = gradient_grid.Settings(rounds=(1, 3), learning_rates=(1.0, 10.0), iterations=2)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("model", None),
        pytest.param("grad", _GRID, marks=pytest.mark.slow),
        pytest.param(
            "trajectory", registry.ATTACKS["trajectory"].settings._replace(
                epoch_steps=2, search=_SEARCH), marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_attacks_on_sums_speak_of_every_client(name, settings):
    view = _view(size=3, absent=[(0, 4)])
    for found in spec.apply(registry.ATTACKS[name], view, settings).values():
        assert found.value.shape == (5, _ROWS)
        assert set(np.unique(found.value)) <= {0, 1}


def test_who_sees_less_is_told_which_attacks_it_cannot_run():
    def why(name, view):
        return needs.missing(registry.ATTACKS[name].needs, view)

    assert "sees only sums" in why("reconstruct", _view())
    assert why("trajectory", _view(sees="final")) == (
        "needs each client's own messages, or sum, or models, the adversary sees only "
        "the last global model"
    )
    assert not why("trajectory", _view(sees="models"))
    absent = Server(_IDS, np.ones(5), everybody=False)
    assert "who is in each sum" in why("grad", _view(sees="models", server=absent))
    assert not why("model", _view(sees="models", server=absent))
    few = _view()
    few = few._replace(clients=_IDS[:3], messages=few.messages.of(slice(3)))
    assert "has none of client 9" in why("trajectory", few)
    training = LocalTraining(
        batch_size=3, learning_rate=0.1, epochs=1, weight_decay=0.1
    )
    uneven = _view()._replace(num_rows=np.array([6, 3, 6, 6, 6]), training=training)
    assert not why("trajectory", uneven)
    adam = uneven._replace(training=training._replace(optimiser="adam"))
    assert "they take 1 to 2 steps" in why("trajectory", adam)
    (said,) = spec.apply(registry.ATTACKS["trajectory"], few).values()
    assert isinstance(said, NotApplicable)


def test_gradients_name_nobody_who_is_in_none_of_the_sums_that_are_used():
    """Client 9 comes in the last round alone, when only all four sums are used."""
    view = _view(size=5, absent=[(at, 9) for at in range(3)])
    chosen = gradient_grid.Settings(rounds=(1, 4), learning_rates=(1.0,), iterations=2)
    grid = gradient_grid.grid(view, chosen)
    nine = list(_IDS).index(9)
    assert (grid.index[nine, 0] == -1).all() and (grid.index[nine, 1] >= 0).all()
    others = np.delete(grid.index, nine, axis=0)
    assert (others >= 0).all()
    far = np.isnan(grid.dissimilarity)
    assert far[nine, 0].all() and far.sum() == far[nine, 0].sum()
    found = registry.ATTACKS["grad"].run(view, chosen)["grad"]
    assert (found.value[nine] >= 0).all()
