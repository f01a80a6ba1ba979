"""What a training computes to count what it drops: nothing twice."""

import jax
import jax.numpy as jnp
import pytest

from experiments.fed_cdp import clients, setup, training
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.settings import Config, DataConfig, Settings, complete
from fljax import federation
from fljax.defenses import clipping, specs

_SPEC = specs.parse("fed_cdp(clip=4, sigma=1)")


def _products() -> int:
    """Matrix products in the program of a training on images."""
    data = DataConfig(name="digits")
    run = complete(Settings(data, Config(num_rounds=1, local_steps=3))).run
    prepared = setup.prepare(
        run, clients.load(data, run), Variant((_SPEC,), 4, 50.0, 8)
    )
    trainer = training.Trainer(prepared)
    trainings = trainer._trainings([(0, Trial(0.1, _SPEC))])
    one = jax.tree.map(lambda leaf: leaf[0], trainings)
    method, tables = trainer._federation

    def program(one, tables):
        return federation.final(federation.Federation(method, tables), one)

    return jax.jit(program).lower(one, tables).compile().as_text().count(" dot(")


@pytest.mark.slow
def test_counting_dropped_examples_takes_no_second_backward_pass(monkeypatch):
    counted = _products()

    class Uncounted:
        per_layer = staticmethod(clipping.per_layer)

        @staticmethod
        def clipped_sum(*arguments):
            return clipping.ClippedSum(arguments[1], jnp.zeros(()), jnp.zeros((), int))

    monkeypatch.setattr(training, "clipping", Uncounted)
    assert counted == _products()
