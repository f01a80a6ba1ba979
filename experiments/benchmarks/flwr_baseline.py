"""The federations of the speed benchmarks in Flower, as its users write them.

A `ClientApp` that trains a PyTorch model and a `ServerApp` with its own `FedAvg`, on its
simulation engine: Ray actors of one core each, among which the clients go round. Rows are
read from files, once in each actor. The engine starts once and stays, so that a call takes
the time of its rounds alone. Params are those of `torch_baseline`. This is the only file of
the speed benchmarks that imports flwr.
"""

import functools
import logging
import queue
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import torch
from flwr.app import (
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch.utils.data import DataLoader, TensorDataset

from experiments.benchmarks import torch_baseline

Arrays = torch_baseline.Arrays
client_app = ClientApp()


@functools.cache
def _rows(folder: str, client: int) -> TensorDataset:
    with np.load(Path(folder) / f"{client}.npz") as rows:
        return TensorDataset(torch.tensor(rows["x"]), torch.tensor(rows["y"]))


@client_app.train()
def _one_epoch(message: Message, context: Context) -> Message:
    told = message.content["config"]
    state = message.content["arrays"].to_torch_state_dict()
    rows = _rows(told["folder"], context.node_config["partition-id"])
    model = torch_baseline.Perceptron(*reversed(state["hidden.weight"].shape))
    model.load_state_dict(state)
    loader = DataLoader(rows, told["batch_size"], shuffle=told["shuffle"])
    trained = torch_baseline.train_one_epoch(model, loader, told["learning_rate"])
    found = {
        "arrays": ArrayRecord(trained),
        "metrics": MetricRecord({"num-examples": len(rows)}),
    }
    return Message(content=RecordDict(found), reply_to=message)


class _Simulation:
    """`(rounds) -> model after them`, until it is closed."""

    def __init__(self, clients: int, first: ArrayRecord, told: ConfigRecord, files):
        self._clients, self._first, self._told = clients, first, told
        self._files = files
        self._asked: queue.SimpleQueue[tuple[int, Future]] = queue.SimpleQueue()
        server_app = ServerApp()
        server_app.main()(self._serve)
        self._engine = ThreadPoolExecutor(1).submit(
            run_simulation, server_app, client_app, clients,
            backend_config={"client_resources": {"num_cpus": 1}},
        )  # fmt: skip

    def __call__(self, num_rounds: int) -> Arrays:
        found: Future[ArrayRecord] = Future()
        self._asked.put((num_rounds, found))
        wait([found, self._engine], return_when=FIRST_COMPLETED)
        if not found.done():
            self._engine.result()  # raises why
            raise RuntimeError("flwr: the simulation ended before its rounds")
        return torch_baseline.to_arrays(found.result().to_torch_state_dict())

    def close(self) -> None:
        """Ends the engine and deletes its files."""
        self._asked.put((0, Future()))
        wait([self._engine])
        self._files.cleanup()

    def _serve(self, grid: Grid, context: Context) -> None:
        del context
        while (asked := self._asked.get())[0]:
            num_rounds, found = asked
            try:
                found.set_result(self._train(grid, num_rounds))
            except Exception as error:
                found.set_exception(error)  # also where the rounds were asked for
                raise

    def _train(self, grid: Grid, num_rounds: int) -> ArrayRecord:
        strategy = FedAvg(
            fraction_evaluate=0.0,
            min_train_nodes=self._clients,
            min_available_nodes=self._clients,
        )
        return strategy.start(
            grid, self._first, num_rounds=num_rounds, train_config=self._told
        ).arrays


def trainer(
    clients: Sequence[tuple[np.ndarray, np.ndarray]],
    params: Arrays,
    *,
    learning_rate: float,
    batch_size: int,
    shuffle: bool = True,
) -> Callable[[int], Arrays]:
    """`(rounds) -> model after them`; arguments as in `fedjax_baseline.trainer`.

    To be closed, before another one begins.
    """
    logging.getLogger("flwr").setLevel(logging.ERROR)
    files = tempfile.TemporaryDirectory()
    for number, (x, y) in enumerate(clients):
        np.savez(Path(files.name) / f"{number}.npz", x=x, y=y)
    told = {
        "folder": files.name,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "shuffle": shuffle,
    }
    first = ArrayRecord(torch_baseline.to_state(params))
    return _Simulation(len(clients), first, ConfigRecord(told), files)
