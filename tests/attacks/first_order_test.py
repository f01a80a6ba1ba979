"""Trajectory matching to first order, alone and before a search of simulated paths."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax.attacks import trajectory
from fljax.attacks.trajectory import imagined, message_facts
from fljax.attacks.trajectory.imagined import Imagined
from fljax.attacks.trajectory.rules import Practice
from tests.attacks import matching


@pytest.mark.slow
def test_the_first_order_version_is_cheap_and_useful():
    case = matching.case()
    found = matching.attack(case, settings=matching.QUICK._replace(first_order=True))
    assert matching.accuracy(found.index, case) > matching.passive(case)
    told = message_facts.none(30)
    same = matching.attack(case, facts=told._replace(path=jnp.zeros(30, bool)))
    np.testing.assert_array_equal(same.index, found.index)
    np.testing.assert_allclose(same.probability, found.probability, atol=1e-4)
    np.testing.assert_allclose(same.misfit, found.misfit, rtol=1e-3)
    assert same.simulated == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "rough"), [(Imagined(precision=2.0**-23), 0), (Imagined(), 50)]
)
def test_to_first_order_nothing_is_solved_for_or_searched_before(client, rough):
    case, few = matching.case(), matching.QUICK._replace(iterations=20)
    told = message_facts.none(30)._replace(path=jnp.zeros(30, bool))

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def found(client, settings, told):
        return trajectory.trajectory_matching(
            jax.random.key(3), case.loss_fn, case.exchange, case.known, case.candidates,
            scale=case.scale, settings=settings, client=client, facts=told,
        ).probability  # fmt: skip

    asked, simulated = few._replace(rough_iterations=rough), message_facts.none(30)
    plain = found(Imagined(), few, told)
    np.testing.assert_allclose(found(client, asked, told), plain, atol=1e-5)
    assert np.abs(found(client, asked, simulated) - plain).max() > 1e-2


@pytest.mark.slow
def test_a_search_to_first_order_before_saves_steps():
    case = matching.case()
    few = matching.QUICK._replace(iterations=12, stages=1, checkpoints=1)
    found = matching.attack(case, settings=few._replace(rough_iterations=200))
    alone = matching.attack(case, settings=few)
    assert matching.accuracy(found.index, case) > matching.accuracy(alone.index, case)
    assert found.misfit < alone.misfit


def test_a_search_to_first_order_is_only_of_what_is_so_trained():
    asked = matching.QUICK._replace(rough_iterations=1)
    assert imagined.begins_roughly(Imagined(), asked)
    assert not imagined.begins_roughly(Imagined(), matching.QUICK)
    assert not imagined.begins_roughly(Imagined(), asked._replace(first_order=True))
    assert not imagined.begins_roughly(Imagined(Practice(momentum=0.9)), asked)
    assert not imagined.begins_roughly(Imagined(Practice(proximal=0.1)), asked)
    assert not imagined.begins_roughly(Imagined(precision=1e-7), asked)
