"""What a federation refuses, and how many trainings it works on side by side."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fljax import dropout, federation, losses
from fljax.defenses import dp_sgd, fed_sdp
from fljax.federation import FedAvg, Federation, Tables, Training, side_by_side
from fljax.types import Defense, Model, NoiseSpec, Rows

_ROUNDS = 6


def _loss(params, x, y):
    return jnp.square(jnp.sum(params["w"] * x) - y)


_MODEL = Model(
    lambda key: {"w": jax.random.normal(key, (3,))},
    lambda params, x: jnp.sum(params["w"] * x),
)
_METHOD = FedAvg(model=_MODEL, loss_fn=_loss, optimiser=lambda numbers: optax.sgd(0.1))


def _tables(**plan):
    rows = Rows(np.ones((24, 3), np.float32), np.ones(24, np.float32))
    parts = np.split(np.arange(24), 3)
    return Tables.of(rows, parts, num_rounds=_ROUNDS, batch_size=4, **plan)


def _defended(sampling_rate, poisson=True):
    defense = dp_sgd.dp_sgd(
        _loss,
        clip=1.0,
        noise_multiplier=1.0,
        sampling_rate=sampling_rate,
        batch_size=4.0,
    )
    method = dataclasses.replace(_METHOD, defense=lambda numbers: defense)
    return Federation(method, _tables(poisson=poisson))


@pytest.mark.parametrize(
    "defense, got",
    [
        ("dp_sgd(clip=1, sigma=2)", "got str"),
        (Defense(), "got Defense"),
        (lambda numbers: None, "got one that returns NoneType"),
    ],
)
def test_a_defense_is_a_function_that_returns_one(defense, got):
    method = dataclasses.replace(_METHOD, defense=defense)
    with pytest.raises(TypeError, match=rf"^defense: expected a function .*, {got}$"):
        federation.train(Federation(method, _tables()), Training.of_seeds(0))


@pytest.mark.parametrize(
    "stops", [(), (3, 2, 6), (2, 2, 6), (2, 7), (-1, 6), (2.5, 6), ("end",)]
)
def test_stops_increase_within_the_rounds(stops):
    whole = Federation(_METHOD, _tables())
    with pytest.raises(
        ValueError, match=r"stops: expected increasing rounds in \[0, 6"
    ):
        federation.train(whole, Training.of_seeds(0), stops=stops)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("seed", np.zeros(0, np.uint32), "seed: expected one seed at least"),
        ("seed", np.uint32(0), "seed: expected one seed at least"),
        ("numbers", np.zeros(3), "numbers: expected 2 of them, .* got 3"),
        ("numbers", 0.5, "numbers: expected 2 of them, .* got 0"),
        ("rows", np.array([0, 1]), r"rows: expected positions in \[0, 1\)"),
        ("schedule", np.array([0, -1]), r"schedule: expected positions in \[0, 1\)"),
    ],
)
def test_trainings_are_of_what_is_there(field, value, said):
    whole, trainings = Federation(_METHOD, _tables()), Training.of_seeds(0, 1)
    with pytest.raises(ValueError, match=f"trainings.{said}"):
        federation.train(whole, trainings._replace(**{field: value}))


@pytest.mark.parametrize(
    ("rate", "poisson", "said"),
    [
        (
            0.5,
            False,
            "promises for 'poisson' batches, those of the schedule are 'fixed'",
        ),
        (0.1, True, "promises for a sampling rate of 0.1"),
    ],
)
def test_noise_promises_for_the_batches_that_are_drawn(rate, poisson, said):
    with pytest.raises(ValueError, match=f"defense: its noise {said}"):
        federation.train(_defended(rate, poisson), Training.of_seeds(0))


@pytest.mark.parametrize(
    "rates", [[1.0, 0.1, 1.0], [0.5, 0.1, 0.5]], ids=["others everywhere", "others"]
)
def test_noise_promises_for_the_batches_of_each_client(rates):
    with pytest.raises(ValueError, match="promises for a sampling rate of"):
        federation.train(_defended(np.array(rates)), Training.of_seeds(0))


@pytest.mark.parametrize(("share", "refused"), [(1 / 3, True), (2 / 3, False)])
def test_noise_on_clients_promises_for_as_many_as_take_part(share, refused):
    defense = fed_sdp.fed_sdp(
        clip=1.0, noise_scale=1.0, sampling_rate=share, num_layers=1, sampling="fixed"
    )
    method = dataclasses.replace(_METHOD, defense=lambda numbers: defense)
    drawn = [np.array([at % 3, (at + 1) % 3]) for at in range(_ROUNDS)]
    whole = Federation(method, _tables(participants=drawn))
    if not refused:
        federation.train(whole, Training.of_seeds(0))
        return
    with pytest.raises(ValueError, match="of 0.333333 of the clients .* up to 2 of 3"):
        federation.train(whole, Training.of_seeds(0))


def test_noise_on_clients_who_come_by_chance_is_of_the_chance():
    noise = NoiseSpec(
        1.0, 1.0, 1 / 3, "a client left out", unit="client", sampling="poisson"
    )
    own = Defense(encode=lambda key, delta, sender: delta, noise=(noise,))
    method = dataclasses.replace(_METHOD, defense=lambda numbers: own)
    drawn = [np.arange(at % 4) for at in range(_ROUNDS)]  # up to all three
    federation.train(
        Federation(method, _tables(participants=drawn)), Training.of_seeds(0)
    )


def test_noise_that_promises_no_more_than_it_may_is_trained_with():
    loss = federation.train(_defended(0.5), Training.of_seeds(0)).run.loss
    assert np.isfinite(loss).all()


def test_a_program_holds_what_is_needed_at_a_time():
    def two(x):  # of 4 bytes for each number
        y = jnp.outer(x, x)
        z = jnp.outer(y[0], x)
        return jnp.sum(z + y)

    found = side_by_side.peak(jax.make_jaxpr(two)(jnp.ones(100)).jaxpr)
    assert 2 * 40_000 <= found < 3.1 * 40_000

    def looped(x):
        return jax.lax.fori_loop(0, 9, lambda i, x: x + jnp.outer(x, x).sum(0), x)

    assert (
        40_000 <= side_by_side.peak(jax.make_jaxpr(looped)(jnp.ones(100)).jaxpr) < 10**5
    )


@pytest.fixture
def fitting():
    device = types.SimpleNamespace(platform="gpu", memory_stats=dict)
    over = types.SimpleNamespace(devices=np.array([device], object), size=1)
    trainings = Training.of_seeds(*range(20))

    def found(memory, rows=8):
        device.memory_stats = lambda: {"bytes_limit": memory} if memory else None
        x = np.ones((rows, 1000), np.float32)
        parts = np.split(np.arange(rows), 2)
        tables = Tables.of(
            Rows(x, x[:, 0]), parts, num_rounds=2, batch_size=4, record_rounds=()
        )
        init = functools.partial(jnp.zeros, 1000)
        model = Model(lambda key: {"w": init()}, lambda params, x: params["w"] @ x)
        method = dataclasses.replace(
            _METHOD, model=model, loss_fn=lambda p, x, y: jnp.square(p["w"] @ x - y)
        )
        return side_by_side.fitting(over, method, tables, trainings, None)

    return found


def test_an_accelerator_has_as_many_trainings_side_by_side_as_fit(fitting):
    assert fitting(None) == fitting(10**9) == 16
    assert fitting(10**6) < 16
    assert fitting(10**7, rows=800) < fitting(
        10**7
    )  # each has its own, and all of them
    assert fitting(1) == 1


def test_a_cpu_has_one_training_at_a_time():
    over = types.SimpleNamespace(devices=np.array(jax.devices("cpu")), size=1)
    trainings = Training.of_seeds(0)
    assert side_by_side.fitting(over, _METHOD, _tables(), trainings, None) == 1


def test_rows_that_are_not_finite_are_refused():
    rows = _tables().rows
    x, y = jax.tree.map(lambda leaf: np.array(leaf[0]), (rows.x, rows.y))
    y[1] = np.nan
    with pytest.raises(ValueError, match="rows: expected finite numbers, got .* in y"):
        Tables.of(Rows(x, y), [np.arange(2)], num_rounds=1, batch_size=1)
    large = np.full(np.shape(x), 1e300)
    with pytest.raises(ValueError, match="rows: expected finite numbers, got .* in x"):
        Tables.of(Rows(large, 0 * y), [np.arange(2)], num_rounds=1, batch_size=1)
    with pytest.raises(ValueError, match="rows: expected finite numbers, got .* in y"):
        codes = np.full(len(y), 3_000_000_000)  # which int32 would have as another
        Tables.of(Rows(x, codes), [np.arange(2)], num_rounds=1, batch_size=1)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "0", True])
def test_a_seed_is_a_natural_number(seed):
    with pytest.raises(ValueError, match="seeds: expected integers from 0 to"):
        Training.of_seeds(0, seed)


def test_an_optimiser_is_a_function_that_returns_one():
    method = dataclasses.replace(_METHOD, optimiser=optax.sgd(0.1))
    with pytest.raises(
        TypeError, match=r"^optimiser: expected a function .*, got Grad"
    ):
        federation.train(Federation(method, _tables()), Training.of_seeds(0))


@pytest.mark.parametrize("loss", [losses.logistic, losses.WeightedLogistic(2.0)])
def test_classes_of_one_and_two_have_no_logistic_loss(loss):
    loss_fn = losses.example_loss(_MODEL.apply, loss)
    tables = _tables()
    y = tables.rows.y + np.arange(24) % 2  # 1 and 2
    wrong = tables._replace(rows=tables.rows._replace(y=y))
    for each in (loss_fn, dropout.MeanLoss(loss_fn, 0.5, draws=1)):
        method = dataclasses.replace(_METHOD, loss_fn=each)
        with pytest.raises(ValueError, match="targets from 0 to 1 for .*, got 1 to 2"):
            federation.train(Federation(method, wrong), Training.of_seeds(0))
