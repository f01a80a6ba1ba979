"""What a user of Opacus would write: per-layer clipping and one noise draw in PyTorch.

The networks are those of `experiments.benchmarks.clipping`, without biases, from the
same parameters: `PatchConv_i/kernel [3, 3, in, out]`, `Dense_i/kernel [in, out]` and, for
the table, `TabularDense_0/kernel`. Without noise both sides compute the same, which is
checked before anything is timed. This file alone imports opacus.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecations of its own dependencies
    from opacus import GradSampleModule
    from opacus.optimizers import DPPerLayerOptimizer


class ConvNet(nn.Module):
    """Two 3x3 convolutions with ReLU and 2x2 max-pooling, and a dense layer."""

    def __init__(self, kernels: Sequence[np.ndarray]):
        super().__init__()
        first, second, dense = kernels
        self.first = _weighted(nn.Conv2d(*first.shape[2:], 3, bias=False), first)
        self.second = _weighted(nn.Conv2d(*second.shape[2:], 3, bias=False), second)
        self.dense = _weighted(nn.Linear(*dense.shape, bias=False), dense)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Opacus unfolds the storage of a layer's input as if channels came first,
        # which those of a convolution need not.
        x = x.permute(0, 3, 1, 2).contiguous()
        x = functional.max_pool2d(torch.relu(self.first(x)), 2).contiguous()
        x = functional.max_pool2d(torch.relu(self.second(x)), 2)
        return self.dense(x.permute(0, 2, 3, 1).flatten(1))


class Perceptron(nn.Module):
    """Dense layers with ReLU between."""

    def __init__(self, kernels: Sequence[np.ndarray]):
        super().__init__()
        layers = [_weighted(nn.Linear(*k.shape, bias=False), k) for k in kernels]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def train(
    kernels: Sequence[np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    *,
    clip: float,
    noise_scale: float,
    learning_rate: float,
    threads: int,
) -> list[np.ndarray]:
    """One client's local steps.

    Args:
      kernels: of the layers, in the order of the network.
      x: `[S, B, ...]` inputs of each step.
      y: `[S, B]` classes.
      clip: C of every layer.
      noise_scale: sigma; the noise on the sum has the deviation sigma C.
      learning_rate: of plain SGD.
      threads: of torch.

    Returns:
      The kernels after the last step.
    """
    torch.set_num_threads(threads)
    torch.backends.cudnn.allow_tf32 = False  # full float32, as ours
    network = ConvNet if x.ndim == 5 else Perceptron
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model: Any = GradSampleModule(network(kernels).to(device))
    layers = list(model.parameters())
    optimiser = DPPerLayerOptimizer(
        torch.optim.SGD(layers, lr=learning_rate),
        noise_multiplier=noise_scale / np.sqrt(len(layers)),
        max_grad_norm=[clip] * len(layers),
        expected_batch_size=x.shape[1],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hooks on a network whose inputs need none
        for inputs, labels in zip(*map(torch.from_numpy, (x, y)), strict=True):
            optimiser.zero_grad()
            found = model(inputs.to(device))
            functional.cross_entropy(found, labels.to(device)).backward()
            optimiser.step()
    return [_kernel(layer.detach().cpu().numpy()) for layer in layers]


def _weighted(layer: Any, kernel: np.ndarray) -> Any:
    moved = np.moveaxis(kernel, (-1, -2), (0, 1))
    layer.weight.data = torch.from_numpy(np.ascontiguousarray(moved))
    return layer


def _kernel(weight: np.ndarray) -> np.ndarray:
    return np.moveaxis(weight, (0, 1), (-1, -2))
