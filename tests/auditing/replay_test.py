"""Messages that clients might have sent who train as was declared."""

import jax
import numpy as np
import pytest

from fljax.attacks.adversary import LocalTraining
from fljax.auditing import case, fits, inputs, replay


def _view(linear, config, **changes):
    told = config(linear, **changes)
    ready = case.prepare(told, inputs.read(told.files, told.rows))
    return fits.knowing_the_truth(ready.view, ready.truth.sensitive)


def test_clients_who_take_all_rows_send_the_same_again(linear, config):
    view = _view(linear, config)
    again = replay.sent_again(view)
    assert again is not None
    for new, old in zip(
        jax.tree.leaves(again.transcript.delta),
        jax.tree.leaves(view.transcript.delta),
        strict=True,
    ):
        assert np.abs(old).max() > 1e-3
        np.testing.assert_allclose(new, old, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{"algorithm": "scaffold"}, {"dropout": 0.5}, {"optimiser": "lion"},
     {"kept": True, "momentum": 0.9}, {"steps": 10**6}, {"learning_rate": None}],
)  # fmt: skip
def test_what_is_not_known_or_long_is_not_sent_again(linear, config, changes):
    view = _view(linear, config)
    training = view.training._replace(**changes)
    assert replay.sent_again(view._replace(training=training)) is None
    assert replay.sent_again(view._replace(sees="sum")) is None


@pytest.mark.parametrize(
    ("training", "sizes"),
    [
        (LocalTraining(4, epochs=2), [4, 4, 2, 4, 4, 2]),
        (LocalTraining(4, epochs=2, drop_last=True), [4, 4, 4, 4]),
        (LocalTraining(4, steps=4), [4, 4, 2, 4]),
        (LocalTraining(0, epochs=2), [10, 10]),
    ],
)
def test_batches_are_those_of_the_training(training, sizes):
    kept = np.arange(12) % 6 > 0
    steps = int(training.local_steps(np.array([10]))[0])
    found = replay._batches(np.random.default_rng(0), kept, steps, training)
    assert [int((each >= 0).sum()) for each in found] == sizes
    first = np.concatenate([each[each >= 0] for each in found])[:8]
    assert len(set(first)) == 8 and kept[first].all()
