"""Every defense before every attack: both fit together, in shape and in numbers.

A federation of two clients is trained for three rounds under each defense, all seeds in
one compiled program, and every attack of the registry then runs on what the clients of
one seed sent, again compiled once for all defenses. What they find is not the point.
"""

import functools

import jax
import numpy as np
import optax
import pytest

from fljax import local, losses, models, rounds, schedule
from fljax.attacks import attribute, registry
from fljax.attacks.adversary import AdversaryView, LocalTraining, ProxyRows
from fljax.attacks.attribute import gradient_grid
from fljax.attacks.estimates import LabelEstimate, Prediction, Reconstruction
from fljax.attacks.inversion import first_message as inversion
from fljax.attacks.label_distribution import first_message, simulated_path
from fljax.attacks.trajectory import clients as trajectory
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Defense, Features, Rows
from tests.defenses import examples

WIDTH, ROWS, CLIENTS, ROUNDS, BATCH, RATE, LABELS = 3, 4, 2, 3, 2, 0.1, 3
SEEDS = 2
MODEL = models.mlp(WIDTH, 0, hidden=(2,), outputs=LABELS)
LOSS = losses.example_loss(MODEL.apply, losses.cross_entropy)
LAYERS = 4
CANDIDATES = np.array([[-1.0], [1.0]], np.float32)
# Every seed's program is the same; a lane that saw another's numbers would show.
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


DEFENSES = {
    text: functools.partial(
        examples.built, text, LOSS, CLIENTS, layers=LAYERS, num_rounds=ROUNDS
    )
    for text in examples.TEXTS
    if "decay_to" not in text  # how a clip changes is nothing to an attack
}

# What an attack meets are defended steps or defended messages: one of each is quick.
_QUICK = [
    next(text for text in DEFENSES if text.startswith(n)) for n in ("dp_sgd", "fed_sdp")
]
_TEXTS = [
    pytest.param(text, marks=() if text in _QUICK else pytest.mark.slow)
    for text in DEFENSES
]


# Programs run once: what takes time is making them fast.
_jit = functools.partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 0}
)


def _rows(seed):
    """Rows of both clients; the sensitive column is the last."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(CLIENTS * ROWS, WIDTH)).astype(np.float32)
    x[:, -1] = np.where(x[:, -1] > 0, 1, -1)
    y = rng.permutation(np.arange(CLIENTS * ROWS) % LABELS).astype(np.int32)
    return Rows(Features(x, np.zeros((len(x), 0), np.int32)), y)


def _view(defense, clients):
    """What the adversary has of the first seed's clients."""
    seen = jax.tree.map(lambda leaf: leaf[0], _messages(defense))
    x, y = jax.tree.map(
        lambda leaf: leaf.reshape(CLIENTS, ROWS, *leaf.shape[1:])[list(clients)],
        tuple(_rows(0))[:2],
    )
    return AdversaryView(
        transcript=seen,
        messages=views.client_view(seen, clients),
        clients=np.array(clients),
        known=attribute.conceal(x, y, np.ones(y.shape, bool), width=1),
        candidates=CANDIDATES,
        continuous=False,
        loss_fn=LOSS,
        apply=MODEL.apply,
        task="multiclass",
        outputs=LABELS,
        linear=True,
        training=LocalTraining(batch_size=BATCH, learning_rate=RATE, epochs=1),
        seed=0,
        proxy=ProxyRows(_rows(1).x.numeric, _rows(1).y),
    )


@functools.cache
def _messages(name):
    """Transcript, leaves `[seeds, R, ...]`; no name, no defense."""
    defense = DEFENSES[name]() if name else Defense()
    update = local.sgd(
        LOSS, optax.sgd(RATE), gradient=defense.gradient, encode=defense.encode
    )
    plan = schedule.build(
        [ROWS] * CLIENTS, num_rounds=ROUNDS, batch_size=BATCH, lanes=CLIENTS,
        shuffle=False, poisson=name in ("dp_sgd", "fed_cdp recommended"),
    )  # fmt: skip
    server = optax.sgd(1.0)

    def train(seed, rows):
        key = jax.random.key(seed)
        begin = MODEL.init(jax.random.fold_in(key, 0))
        return rounds.advance(
            jax.random.fold_in(key, 1), rounds.start(begin, plan, server), rows, plan,
            ROUNDS, local=update, server_optimiser=server, receive=defense.receive,
        ).transcript  # fmt: skip

    trained = _jit(jax.vmap(train))
    numbers = np.arange(SEEDS)
    rows = jax.tree.map(lambda *leaves: np.stack(leaves), *map(_rows, numbers))
    seen, swapped = (
        trained(at, jax.tree.map(lambda leaf, at=at: leaf[at], rows))
        for at in (numbers, numbers[::-1])
    )
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b[::-1], **CLOSE),
        (seen.params, seen.delta), (swapped.params, swapped.delta),
    )  # fmt: skip
    return jax.tree.map(np.asarray, seen)


_SEARCH = trajectory.matching.Settings(
    iterations=2, batch_rounds=1, stages=1, checkpoints=1, probes=1
)
_TRAJECTORY = trajectory.Settings(epoch_steps=2, search=_SEARCH)
# Of attacks that need not look so hard here.
SETTINGS = {
    "grad": gradient_grid.Settings((1, ROUNDS), (1.0,), iterations=2),
    "linear_inversion": _TRAJECTORY,
    "trajectory": _TRAJECTORY,
    "predictor": first_message.Settings(shadow_clients=8),
    "simulated_path": simulated_path.Settings(2, iterations=3, per_label=2),
    "inversion": inversion.Settings(iterations=2, starts=1),
}
SHAPES = {
    Prediction: (ROWS,),
    LabelEstimate: (LABELS,),
    Reconstruction: (ROWS, WIDTH),
}


# They are compiled for seconds, and have tests of their own.
_LARGE = ("linear_inversion", "trajectory")
_SLOW = (*_LARGE, "simulated_path", "predictor")
_ATTACKS = [
    pytest.param(name, marks=pytest.mark.slow if name in _SLOW else ())
    for name in registry.ATTACKS
]


@pytest.mark.long("the first of a defense trains for all attacks on it")
@pytest.mark.parametrize("attack", _ATTACKS)
@pytest.mark.parametrize("defense", _TEXTS)
def test_a_defense_and_an_attack_fit_together(defense, attack):
    """Whether it is worth running (`needs`) is not asked."""
    spec = registry.ATTACKS[attack]
    settings = SETTINGS.get(attack, spec.settings)
    for estimate in spec.run(_view(defense, range(CLIENTS)), settings).values():
        assert type(estimate) is spec.gives
        assert np.shape(estimate.value) == (CLIENTS, *SHAPES[spec.gives])
        assert np.isfinite(estimate.value).all()
        for value in getattr(estimate, "diagnostics", {}).values():
            assert np.shape(value) == (CLIENTS,)


@pytest.mark.slow
@pytest.mark.parametrize("attack", _LARGE)
@pytest.mark.parametrize("defense", DEFENSES)
def test_a_defense_and_an_attack_that_knows_of_it_fit_together(defense, attack):
    spec = registry.ATTACKS[attack]
    view = _view(defense, range(CLIENTS))
    view = view._replace(defense=specs.parse(defense.format(0.3)))
    (estimate,) = spec.run(view, SETTINGS[attack]).values()
    assert np.isfinite(estimate.details["probability"]).all()


@pytest.mark.parametrize("defense", _TEXTS)
def test_what_is_sent_depends_on_the_seed_and_is_defended(defense):
    flat, plain = (
        np.concatenate(
            [
                leaf.reshape(SEEDS, -1)
                for leaf in jax.tree.leaves(_messages(name).delta)
            ],
            1,
        )
        for name in (defense, "")
    )
    assert flat.shape == plain.shape
    assert np.abs(flat[0] - flat[1]).max() > 1e-3
    assert np.abs(flat - plain).max() > 1e-3
