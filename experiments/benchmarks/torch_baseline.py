"""What a PyTorch user would write: the written baseline of the speed benchmarks.

Plain and idiomatic on purpose: one model, a `DataLoader` per client, Python loops over
rounds, clients, batches and attacked rounds. Nothing is tuned for or against it. Given
the same orders and the same noise, both functions compute the same numbers as fljax up
to float32 rounding, which is checked before anything is timed.

Params are dicts of NumPy arrays `hidden_kernel [d, H]`, `hidden_bias [H]`,
`output_kernel [H, 1]`, `output_bias [1]`; a `torch.nn.Linear` holds the transpose.
This is the only file that imports torch. Where it sees a GPU, models and batches are
there, rows stay in the `DataLoader`.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

Arrays = dict[str, np.ndarray]
State = dict[str, torch.Tensor]
_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
_NAMES = {
    "hidden_kernel": "hidden.weight",
    "hidden_bias": "hidden.bias",
    "output_kernel": "output.weight",
    "output_bias": "output.bias",
}


class Perceptron(nn.Module):
    """One hidden layer with ReLU and one output."""

    def __init__(self, num_inputs: int, num_hidden: int):
        super().__init__()
        self.hidden = nn.Linear(num_inputs, num_hidden)
        self.output = nn.Linear(num_hidden, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(torch.relu(self.hidden(x))).squeeze(-1)


def train_rounds(
    clients: Sequence[tuple[np.ndarray, np.ndarray]],
    params: Arrays,
    *,
    learning_rate: float,
    batch_size: int,
    num_rounds: int,
    orders: Sequence[Sequence[np.ndarray]] | None = None,
    seed: int = 0,
    num_threads: int | None = None,
) -> tuple[Arrays, list[list[Arrays]]]:
    """Federated averaging with all clients and one local epoch in every round.

    McMahan et al. 2017 (https://arxiv.org/abs/1602.05629): plain SGD on the mean
    squared error of each batch, the last one smaller; average weighted by rows.

    Args:
      clients: per client `x [n, d]` float32 and `y [n]`.
      params: initial global model.
      learning_rate: of the clients.
      batch_size: rows in a batch.
      num_rounds: communication rounds `R`.
      orders: `[R][C]` arrays with the order of each client's rows, instead of shuffles.
      seed: of the shuffles.
      num_threads: threads of torch during the call; None leaves the default.

    Returns:
      The global model after the last round, and per round the models that the clients
      returned.
    """
    with _threads(num_threads):
        datasets = [TensorDataset(_tensor(x), _tensor(y)) for x, y in clients]
        generator = torch.Generator().manual_seed(seed)
        loaders = [
            DataLoader(d, batch_size, shuffle=True, generator=generator)
            for d in datasets
        ]
        weights = [len(dataset) for dataset in datasets]
        model, state = _model(params), to_state(params)
        returned = []
        for round_ in range(num_rounds):
            if orders is not None:
                loaders = [
                    DataLoader(dataset, batch_size, sampler=order.tolist())
                    for dataset, order in zip(datasets, orders[round_], strict=True)
                ]
            states = []
            for loader in loaders:
                model.load_state_dict(state)
                states.append(train_one_epoch(model, loader, learning_rate))
            state = _average(states, weights)
            returned.append([to_arrays(s) for s in states])
        return to_arrays(state), returned


def trainer(
    clients: Sequence[tuple[np.ndarray, np.ndarray]],
    params: Arrays,
    *,
    learning_rate: float,
    batch_size: int,
    shuffle: bool = True,
) -> Callable[[int], Arrays]:
    """`(rounds) -> model after them`, of `train_rounds`."""
    in_order = [np.arange(len(y)) for _, y in clients]

    def train(num_rounds: int) -> Arrays:
        return train_rounds(
            clients,
            params,
            learning_rate=learning_rate,
            batch_size=batch_size,
            num_rounds=num_rounds,
            orders=None if shuffle else [in_order] * num_rounds,
        )[0]

    return train


def gradient_attack(
    params_per_round: Sequence[Arrays],
    deltas: Sequence[Arrays],
    public: np.ndarray,
    y: np.ndarray,
    values: tuple[float, float],
    *,
    learning_rate: float,
    num_iterations: int,
    noise: tuple[np.ndarray, np.ndarray] | None = None,
    seed: int = 0,
    num_threads: int | None = None,
) -> tuple[np.ndarray, float]:
    """Gradient-based attribute inference on one client.

    The baseline "Grad" of Diana et al., AAAI 2025 (https://arxiv.org/abs/2411.12697),
    as their code has it: a straight-through binary sample with ONE Gumbel variate, so
    that a logit of 0 means 0.632 for the high value; one cosine per round over all
    parameters; full-batch gradients; the last iterate is the answer.

    Args:
      params_per_round: `[R]` models that the client was sent.
      deltas: `[R]` what it was sent minus what it returned.
      public: `[n, d - 1]` its rows without the sensitive column, which is the LAST.
      y: `[n]` its targets.
      values: low and high value of the sensitive column.
      learning_rate: of the SGD on the logits.
      num_iterations: SGD steps.
      noise: initial logits `[n]` and Gumbel variates `[num_iterations, n]`, instead of
        draws.
      seed: of the draws.
      num_threads: threads of torch during the call; None leaves the default.

    Returns:
      Logits `[n]` after the last step (positive: high value) and the loss before it.
    """
    with _threads(num_threads):
        models = [_model(params) for params in params_per_round]
        targets = [_flat(to_state(delta).values()).to(_DEVICE) for delta in deltas]
        x_public, y_true = _tensor(public).to(_DEVICE), _tensor(y).to(_DEVICE)
        drawn = _draws(noise, len(y), num_iterations, seed)
        start, gumbels = (each.to(_DEVICE) for each in drawn)
        logits = nn.Parameter(start)
        optimizer = torch.optim.SGD([logits], lr=learning_rate)
        loss = torch.tensor(torch.nan, device=_DEVICE)
        for gumbel in gumbels:
            column = _straight_through(logits, gumbel, values)
            x = torch.cat([x_public, column[:, None]], dim=1)
            distances = [
                _cosine_distance(model, x, y_true, target)
                for model, target in zip(models, targets, strict=True)
            ]
            loss = torch.stack(distances).sum()
            optimizer.zero_grad()
            loss.backward(inputs=[logits])
            optimizer.step()
        return logits.detach().cpu().numpy(), loss.item()


def train_one_epoch(model: Perceptron, loader: DataLoader, rate: float) -> State:
    """The model's state after plain SGD on each batch of the loader."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        optimizer.zero_grad()
        functional.mse_loss(model(x.to(_DEVICE)), y.to(_DEVICE)).backward()
        optimizer.step()
    return {name: value.clone() for name, value in model.state_dict().items()}


def _average(states: list[State], weights: list[int]) -> State:
    total = sum(weights)
    return {
        name: torch.stack([s[name] * (w / total) for s, w in zip(states, weights)]).sum(
            0
        )
        for name in states[0]
    }


def _straight_through(
    logits: torch.Tensor, gumbel: torch.Tensor, values: tuple[float, float]
) -> torch.Tensor:
    """A hard sample `[n]` of the column whose gradient is that of the soft one."""
    low, high = values
    soft = torch.sigmoid(logits + gumbel)
    hard = (soft > 0.5).float()
    return low + (high - low) * (hard - soft.detach() + soft)


def _cosine_distance(
    model: Perceptron, x: torch.Tensor, y: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    loss = functional.mse_loss(model(x), y)
    gradient = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    return 1 - functional.cosine_similarity(_flat(gradient), target, dim=0)


def _draws(
    noise: tuple[np.ndarray, np.ndarray] | None, num_rows: int, num: int, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    if noise is not None:
        start, gumbels = noise
        if np.shape(gumbels) != (num, num_rows):
            expected = f"gumbels of shape {(num, num_rows)}"
            raise ValueError(f"noise: expected {expected}, got {np.shape(gumbels)}")
        return _tensor(start), _tensor(gumbels)
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(num_rows, generator=generator)
    exponential = torch.empty(num, num_rows).exponential_(generator=generator)
    return start, -exponential.log()


def _model(params: Arrays) -> Perceptron:
    model = Perceptron(*params["hidden_kernel"].shape)
    model.load_state_dict(to_state(params))
    return model.to(_DEVICE)


def to_state(params: Arrays) -> State:
    return {
        theirs: _tensor(np.transpose(params[ours])) for ours, theirs in _NAMES.items()
    }


def to_arrays(state: State) -> Arrays:
    return {ours: state[theirs].cpu().numpy().T for ours, theirs in _NAMES.items()}


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.asarray(array), dtype=torch.float32)


def _flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


@contextlib.contextmanager
def _threads(num_threads: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
