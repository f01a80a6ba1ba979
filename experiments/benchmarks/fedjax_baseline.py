"""The federations of the speed benchmarks with FedJAX, as its users write them.

Its own FedAvg (`fedjax.algorithms.fed_avg`) with the datasets, batches and optimisers
that it ships; compiled once for each shape of a batch, driven from Python client by
client. Params are those of `torch_baseline`. This is the only file that imports fedjax.
"""

from collections.abc import Callable, Sequence

import fedjax
import jax
import jax.numpy as jnp
import numpy as np
from fedjax.algorithms import fed_avg

if not hasattr(jax, "tree_map"):  # fedjax 0.0.17 calls it; jax has removed it since
    jax.tree_map = jax.tree.map  # pyright: ignore[reportAttributeAccessIssue]

Arrays = dict[str, np.ndarray]


def trainer(
    clients: Sequence[tuple[np.ndarray, np.ndarray]],
    params: Arrays,
    *,
    learning_rate: float,
    batch_size: int,
    shuffle: bool = True,
) -> Callable[[int], Arrays]:
    """`(rounds) -> model after them`; compiled once, whatever the rounds.

    Args:
      clients: per client `x [n, d]` float32 and `y [n]`.
      params: initial global model.
      learning_rate: of the clients.
      batch_size: rows in a batch.
      shuffle: whether each round draws the order of a client's rows anew.
    """
    datasets = [fedjax.ClientDataset({"x": x, "y": y}) for x, y in clients]
    algorithm = fed_avg.federated_averaging(
        jax.jit(jax.grad(_loss)),
        fedjax.optimizers.sgd(learning_rate),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(
            batch_size=batch_size, num_epochs=1, skip_shuffle=not shuffle
        ),
    )

    def train(num_rounds: int) -> Arrays:
        state = algorithm.init(jax.tree.map(jnp.asarray, params))
        for round_ in range(num_rounds):
            keys = jax.random.split(jax.random.key(round_), len(datasets))
            sampled = [(str(i), d, keys[i]) for i, d in enumerate(datasets)]
            state, _ = algorithm.apply(state, sampled)
        return jax.tree.map(np.asarray, state.params)

    return train


def _loss(params, batch, key):
    del key
    hidden = jax.nn.relu(
        batch["x"] @ params["hidden_kernel"] + params["hidden_bias"][None]
    )
    output = hidden @ params["output_kernel"] + params["output_bias"][None]
    return jnp.mean(jnp.square(output[:, 0] - batch["y"]))
