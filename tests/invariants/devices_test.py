"""A result belongs to its seed and client: the number of devices does not enter.

From two devices on: a program for a single one is not partitioned, and rounds otherwise;
`parallel.use_cpu_cores` makes two at least.
"""

import jax
import jax.numpy as jnp
import jaxlib.version
import numpy as np
import pytest

from fljax import parallel, rounds, schedule
from fljax.attacks import trajectory
from fljax.attacks.attribute import conceal
from fljax.types import Exchange, Features

_SETTINGS = trajectory.Settings(path_steps=2, iterations=12, batch_rounds=2)
_CANDIDATES = np.array([[-1.0], [1.0]], np.float32)


# The tests' own code is made otherwise where jaxlib can (`conftest`), and rounds otherwise.
_OLDER = jaxlib.version.__version_info__ < (0, 11)
_AS_USERS = {"xla_cpu_use_fusion_emitters": True} if _OLDER else {}


@pytest.fixture(scope="session")
def train(training):
    plan = schedule.build(training.sizes, **training.stored)

    def one(seed, shared):
        rows, plan = shared
        run = rounds.start(training.params(), plan, training.average)
        return rounds.advance(
            jax.random.key(seed), run, rows, plan, plan.num_rounds,
            local=training.sgd, server_optimiser=training.average,
        )  # fmt: skip

    return one, (training.rows(), plan)


@pytest.fixture(scope="session")
def attack():
    def loss(params, x, y):
        hidden = jnp.tanh(x.numeric @ params["first"])
        return jnp.square(jnp.sum(hidden * params["second"]) - y)

    def one(seed, known):
        key, *keys = jax.random.split(jax.random.key(seed), 5)

        def drawn(first, second):
            return {
                "first": jax.random.normal(first, (4, 3, 4)),
                "second": jax.random.normal(second, (4, 4)),
            }

        exchange = Exchange(drawn(*keys[:2]), drawn(*keys[2:]))
        return trajectory.trajectory_matching(
            key, loss, exchange, known, jnp.asarray(_CANDIDATES),
            scale=0.1, settings=_SETTINGS,
        )  # fmt: skip

    rng = np.random.default_rng(0)
    numeric = rng.normal(size=(20, 3)).astype(np.float32)
    rows = Features(numeric, np.zeros((20, 0), np.int32))
    y = rng.normal(size=20).astype(np.float32)
    return one, conceal(rows, y, np.ones(20, bool), width=1)


@pytest.mark.parametrize(
    "work", ["train", pytest.param("attack", marks=pytest.mark.slow)]
)
def test_any_number_of_devices_and_items_gives_equal_bits(work, request):
    fun, shared = request.getfixturevalue(work)

    def on(devices, seeds):
        over = parallel.mesh(devices)
        run = jax.jit(
            lambda i, s: parallel.map_items(fun, i, s, over),
            compiler_options=_AS_USERS,
        )
        return jax.device_get(run(np.arange(seeds, dtype=np.uint32), shared))

    every, many = on(2, 3), len(jax.devices())
    for devices, seeds in {(2, 1), (2, 2), (min(3, many), 3), (many, 3)} - {(2, 3)}:
        for found, expected in zip(
            jax.tree.leaves(on(devices, seeds)), jax.tree.leaves(every), strict=True
        ):
            np.testing.assert_array_equal(found, expected[:seeds])
