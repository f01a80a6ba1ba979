"""Decoding of many clients in one program."""

import jax
import numpy as np
import pytest

from experiments.lmra import attack, clients
from experiments.lmra.settings import Config, DataConfig, Settings, complete
from fljax.attacks.reconstruction.decoding import Messages


def _loaded(seeds):
    told = Config(seeds=seeds, local_steps=(1,), fit_iterations=5, decode_iterations=5)
    told = complete(Settings(DataConfig(sizes=(30, 20)), told))
    return told.run, clients.load(told.data, told.run).task


@pytest.mark.slow
def test_whoever_else_is_decoded_changes_no_draw():
    run, task = _loaded((0, 1))
    shape = (1, 2, 2, 6)
    draw = np.random.default_rng(0).normal(size=(*shape, 11)).astype(np.float32)
    messages = Messages(draw, -draw[..., ::-1], np.ones(shape, bool))
    both = attack.decode(run, task, messages, "mlp").estimate
    run, task = _loaded((1,))
    alone = jax.tree.map(lambda leaf: leaf[:, 1:, :1], messages)
    alone = attack.decode(run, task, alone, "mlp").estimate
    np.testing.assert_allclose(alone[0, 0, 0], both[0, 1, 0], rtol=1e-4)
    assert not np.allclose(both[0, 0, 0], both[0, 1, 0], rtol=1e-2)
