"""What the messages leave open: who explains them, and who names rows alike."""

import numpy as np
import pytest

from experiments.lmra import alternatives, clients
from experiments.lmra.settings import Config, DataConfig, Settings
from fljax.attacks.reconstruction.decoding import Alternatives, Decoded

_TOLD = Settings(
    DataConfig(sizes=(30, 20)), Config(seeds=(0,), mappings=("simulated",))
)


@pytest.fixture(scope="module")
def loaded():
    return clients.load(_TOLD.data, _TOLD.run)


def _decoded(models, others, misfit):
    nothing = np.zeros(models.shape[:-1])
    return Decoded(
        models, *[nothing] * 5, alternatives=Alternatives(others, np.asarray(misfit))
    )


def _models(clients):
    """`[cases, seeds, A, P]`, some hyperplane of each client."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(1, 1, 2, clients.task.num_inputs + 1))


def test_a_model_agrees_with_itself_and_not_at_all_with_its_opposite(loaded):
    models = _models(loaded)
    others = np.stack([models, -models], axis=3)
    found = alternatives.agreement(loaded, models, others)
    np.testing.assert_allclose(found[0, 0], [[100, 0], [100, 0]])


def test_agreement_is_counted_over_the_clients_own_rows(loaded):
    models = _models(loaded)
    others = np.random.default_rng(1).normal(size=(1, 1, 2, 3, models.shape[-1]))
    found = alternatives.agreement(loaded, models, others)[0, 0]
    for client, size in enumerate(loaded.sizes):
        x = loaded.own.rows.x.numeric[0, client, :size]
        for number, other in enumerate(others[0, 0, client]):
            one, two = (_named(theta, x) for theta in (models[0, 0, client], other))
            assert found[client, number] == pytest.approx(100 * np.mean(one == two))


def _named(theta, x):
    return x @ theta[1:] + theta[0] > 0  # the intercept comes first


def test_only_alternatives_that_explain_the_messages_count(loaded):
    models = _models(loaded)
    others = np.stack([models, -models], axis=3)
    found = _decoded(models, others, [[[[1.4, 9.0], [1.0, 1.9]]]])
    rows = {
        row.metric: (row.value, row.n)
        for row in alternatives.rows(_TOLD, loaded, {"decoded_simulated": found})
    }
    assert rows == {
        alternatives.EXPLAINING: (75.0, 4),
        alternatives.AGREEING: (pytest.approx(200 / 3), 3),
    }


def test_where_nobody_explains_the_messages_nothing_is_said_of_agreement(loaded):
    models = _models(loaded)
    found = _decoded(models, models[:, :, :, None], [[[[2.5], [30.0]]]])
    (row,) = alternatives.rows(_TOLD, loaded, {"decoded_simulated": found})
    assert (row.metric, row.value) == (alternatives.EXPLAINING, 0.0)


def test_a_mapping_without_alternatives_has_no_rows(loaded):
    plain = _decoded(_models(loaded), None, 0.0)._replace(alternatives=None)
    assert alternatives.rows(_TOLD, loaded, {"decoded": plain}) == []
