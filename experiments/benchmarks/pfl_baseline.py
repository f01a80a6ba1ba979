"""The federations of the speed benchmarks with pfl-research, as its users write them.

Its own `FederatedAveraging` on its simulated backend and PyTorch model, averages weighted
by rows, nothing evaluated after the first round. It takes batches in the order of the
rows, without a shuffle. Params are those of `torch_baseline`. This is the only file that
imports pfl.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel
from torch.nn import functional

from experiments.benchmarks import torch_baseline

Arrays = torch_baseline.Arrays


class _Perceptron(torch_baseline.Perceptron):
    """With what pfl asks of a module."""

    def loss(self, x, y):
        return functional.mse_loss(self(x), y)

    def metrics(self, x, y):
        del x, y
        return {}


def trainer(
    clients: Sequence[tuple[np.ndarray, np.ndarray]],
    params: Arrays,
    *,
    learning_rate: float,
    batch_size: int,
    shuffle: bool = True,
) -> Callable[[int], Arrays]:
    """`(rounds) -> model after them`; arguments as in `fedjax_baseline.trainer`.

    Rows are in their order also if they are to be shuffled: pfl leaves that to its user.
    """
    del shuffle
    datasets = {
        str(i): PyTorchTensorDataset([torch.tensor(x), torch.tensor(y)], user_id=str(i))
        for i, (x, y) in enumerate(clients)
    }
    sampler = get_user_sampler("minimize_reuse", list(datasets))
    training = NNTrainHyperParams(
        local_batch_size=batch_size,
        local_num_epochs=1,
        local_learning_rate=learning_rate,
    )

    def train(num_rounds: int) -> Arrays:
        network = _Perceptron(*params["hidden_kernel"].shape)
        network.load_state_dict(torch_baseline.to_state(params))
        optimiser = torch.optim.SGD(network.parameters(), lr=1.0)
        model = PyTorchModel(network, torch.optim.SGD, optimiser)
        federation = FederatedDataset(datasets.__getitem__, sampler)
        FederatedAveraging().run(
            NNAlgorithmParams(
                central_num_iterations=num_rounds,
                evaluation_frequency=num_rounds + 1,
                train_cohort_size=len(datasets),
                val_cohort_size=0,
            ),
            SimulatedBackend(federation, federation, [WeightByDatapoints()]),
            model,
            training,
            NNEvalHyperParams(local_batch_size=None),
            send_metrics_to_platform=False,
        )
        return torch_baseline.to_arrays(network.state_dict())

    return train
