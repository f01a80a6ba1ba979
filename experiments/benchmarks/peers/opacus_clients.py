"""Opacus: a `PrivacyEngine` for every client, with its loader, optimiser and accountant."""

import warnings

import numpy as np
import torch
from torch import nn

from experiments.benchmarks.peers import canaries
from experiments.benchmarks.peers.rows import Rows
from experiments.benchmarks.peers.training import Setting, Shipped, start
from fljax.types import NoiseSpec

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecations of its own dependencies
    from opacus import PrivacyEngine

_DELTA = 1e-5
_LOSSES = {"regression": nn.MSELoss, "binary": nn.BCEWithLogitsLoss}
_NAMES = {"w1": "0.weight", "b1": "0.bias", "w2": "2.weight", "b2": "2.bias"}


def dp_sgd(setting: Setting, epsilon: float) -> Shipped:
    """`make_private_with_epsilon`, at the median norm of a row's gradient.

    Args:
      setting: the training.
      epsilon: of all rounds.
    """
    people, plan = setting.people, setting.plan
    torch.manual_seed(plan.seed)
    torch.set_num_threads(1)  # its steps are too small for more
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its generator is no cryptographic one
        made = [_private(rows, setting, epsilon) for rows in people.clients]
    loss_fn = _LOSSES[people.task]()

    def steps_over(client, params, batches):
        _, module, optimiser, _ = made[client]
        _load(module, params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hooks on a network whose inputs need none
            for x, y in batches:
                optimiser.zero_grad()
                loss_fn(module(x)[:, 0], y).backward()
                optimiser.step()
        return _read(module)

    def epoch(client, params, rng):
        del rng
        return steps_over(client, params, made[client][-1])

    def release(seed, present):
        torch.manual_seed(seed % 2**63)
        x, y = map(torch.from_numpy, canaries.batch(people, plan))
        batch = slice(0 if present else 1, None)
        return steps_over(0, start(people, plan), [(x[batch], y[batch])])

    clip, size = setting.sizes.gradient, len(people.clients[0].y)
    sigma = made[0][2].noise_multiplier
    noise = NoiseSpec(sigma, clip, 1 / plan.steps(size), "add or remove one record")
    return Shipped(
        epoch=epoch,
        stated=lambda: made[0][0].get_epsilon(_DELTA),
        noise=noise,
        release=release,
        simulated=f"dp_sgd(clip={clip:.8g}, sigma={sigma:.8g})",
    )


def _private(rows: Rows, setting: Setting, epsilon: float):
    """A client's engine, network, optimiser and loader."""
    plan = setting.plan
    inputs, hidden = start(setting.people, setting.plan)["w1"].shape
    module = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 1))
    data = torch.utils.data.TensorDataset(*map(torch.from_numpy, rows))
    engine = PrivacyEngine()
    return engine, *engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=plan.learning_rate),
        data_loader=torch.utils.data.DataLoader(data, batch_size=plan.batch_size),
        target_epsilon=epsilon,
        target_delta=_DELTA,
        epochs=plan.rounds,
        max_grad_norm=setting.sizes.gradient,
    )


def _load(module, params) -> None:
    state = {
        _NAMES[name]: torch.from_numpy(np.array(a.T)) for name, a in params.items()
    }
    module._module.load_state_dict(state)


def _read(module):
    state = module._module.state_dict()
    return {name: state[own].numpy().T.copy() for name, own in _NAMES.items()}
