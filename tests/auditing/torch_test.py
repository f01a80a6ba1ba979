"""A federation that PyTorch trains, and equation 3 computed there."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import fljax
from fljax import transcript
from fljax.auditing import case, inputs
from fljax.types import Model

torch = pytest.importorskip("torch")

_INPUTS = ("age", "married", "bmi", "dose")  # the sensitive one is not the last
_CLIENTS = (3, 5)


def _network():
    return torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8),
        torch.nn.ReLU(), torch.nn.Linear(8, 1),
    )  # fmt: skip


def _arrays(state):
    """A state_dict in the open format: kernels are [inputs, outputs]."""
    return {
        name.replace("weight", "kernel"): value.numpy().T
        for name, value in state.items()
    }


def _flowers(state):
    """The same, of what Flower's messages hold."""
    return transcript.from_torch({name: value.numpy() for name, value in state.items()})


def _frame():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, 80).round(),
            "married": rng.choice([1, 2], 80),
            "bmi": rng.normal(25, 3, 80).round(1),
            "client": np.repeat(_CLIENTS, 40),
            "y": np.zeros(80),
            "dose": rng.normal(size=80).round(3),
        }
    )
    signal = (frame.age - 40) / 10 + 1.5 * frame.married + frame.dose
    return frame.assign(y=(signal + 0.3 * rng.normal(size=80)).round(4))


def _train(frame, stem, convert):
    """FedAvg of two clients; returns each one's last returned network."""
    torch.manual_seed(0)
    server = _network()
    with transcript.Recorder(stem, about={"batch_size": 10}) as recorder:
        for number in range(4):
            sent = {k: v.clone() for k, v in server.state_dict().items()}
            returned = {}
            for client in _CLIENTS:
                mine = _network()
                mine.load_state_dict(sent)
                _steps(mine, frame[frame.client == client])
                returned[client] = mine.state_dict()
            arrays = {client: convert(state) for client, state in returned.items()}
            recorder.record(number, convert(sent), arrays)
            mean = {k: sum(r[k] for r in returned.values()) / 2 for k in sent}
            server.load_state_dict(mean)
    return returned


def _steps(network, rows):
    optimiser = torch.optim.SGD(network.parameters(), lr=1e-4)
    x = torch.tensor(rows[list(_INPUTS)].to_numpy(np.float32))
    y = torch.tensor(rows.y.to_numpy(np.float32))
    for batch in torch.randperm(len(y)).split(10):
        optimiser.zero_grad()
        torch.mean((network(x[batch])[:, 0] - y[batch]) ** 2).backward()
        optimiser.step()


def _equation_3(state, rows):
    """The value of `married` under which each row's loss is smaller."""
    network = _network()
    network.load_state_dict(state)
    return _smaller_loss(network, rows)


def _smaller_loss(network, rows):
    y = torch.tensor(rows.y.to_numpy(np.float32))
    losses = []
    for value in (1, 2):
        rows_of_value = rows.assign(married=value)[list(_INPUTS)].to_numpy(np.float32)
        with torch.no_grad():
            losses.append((network(torch.tensor(rows_of_value))[:, 0] - y) ** 2)
    return torch.stack(losses).argmin(dim=0).numpy()


@pytest.mark.parametrize("convert", [_arrays, _flowers], ids=["plain", "flower"])
def test_model_based_inference_is_pytorchs_to_the_row(convert, tmp_path, audited):
    frame = _frame()
    returned = _train(frame, tmp_path / "seen", convert)
    shuffled = frame.sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "rows.csv", index=False)
    answers, lines = audited(tmp_path, model="mlp:16,8", attacks=("model",))
    for number, client in enumerate(_CLIENTS):
        rows = shuffled[shuffled.client == client]
        expected = _equation_3(returned[client], rows)
        np.testing.assert_array_equal(answers["model"].value[number], expected)
        assert 0 < expected.mean() < 1
        accuracy = 100 * np.mean(expected == rows.married.to_numpy() - 1)
        assert lines[0].clients[number].value == accuracy


def test_kernels_that_were_not_transposed_are_named(tmp_path, config):
    frame = _frame()
    frame.to_csv(tmp_path / "rows.csv", index=False)
    state = {name: value.numpy() for name, value in _network().state_dict().items()}
    with transcript.Recorder(tmp_path / "seen") as recorder:
        recorder.record(0, state, {3: state})
    chosen = config(tmp_path, model="mlp:16,8")
    with pytest.raises(
        transcript.TranscriptError, match=r"transpose PyTorch's weights"
    ):
        case.prepare(chosen, inputs.read(chosen.files, chosen.rows))


def _normalised(norm):
    return torch.nn.Sequential(
        torch.nn.Linear(4, 6), norm(6), torch.nn.ReLU(), torch.nn.Linear(6, 1)
    )


def _theirs(statistics):
    """The same network on rows, its parameters under the names of `from_torch`."""
    names = ["weight", "bias", *(["running_mean", "running_var"] * statistics)]
    shapes = {
        "0": {"kernel": (4, 6), "bias": (6,)}, "1": dict.fromkeys(names, (6,)),
        "3": {"kernel": (6, 1), "bias": (1,)},
    }  # fmt: skip

    def init(key):
        is_shape = {"is_leaf": lambda leaf: isinstance(leaf, tuple)}
        return jax.tree.map(jnp.zeros, shapes, **is_shape)

    def apply(p, x):
        h, norm = x.numeric @ p["0"]["kernel"] + p["0"]["bias"], p["1"]
        mean, variance = h.mean(), h.var()
        if statistics:
            mean, variance = norm["running_mean"], norm["running_var"]
        h = (h - mean) / jnp.sqrt(variance + 1e-5) * norm["weight"] + norm["bias"]
        return (jax.nn.relu(h) @ p["3"]["kernel"] + p["3"]["bias"])[0]

    return Model(init, apply)


@pytest.mark.parametrize("statistics", [False, True], ids=["LayerNorm", "BatchNorm"])
@pytest.mark.filterwarnings("ignore:.*num_batches_tracked")
def test_networks_with_normalisation_are_pytorchs_to_the_row(statistics, tmp_path):
    torch.manual_seed(0)
    frame = _frame()
    norm = torch.nn.BatchNorm1d if statistics else torch.nn.LayerNorm
    server, returned = _normalised(norm), {}
    with transcript.Recorder(tmp_path / "seen", {"optimiser": "sgd"}) as recorder:
        sent = transcript.from_torch(server.state_dict())
        for client in _CLIENTS:
            returned[client] = copy.deepcopy(server)
            _steps(returned[client], frame[frame.client == client])
        states = {c: transcript.from_torch(n.state_dict()) for c, n in returned.items()}
        recorder.record(0, sent, states)
    options = {"target": "y", "sensitive": "married", "client_column": "client"}
    options |= {"attacks": ["model"], "model": _theirs(statistics)}
    findings = fljax.audit(tmp_path / "seen", frame, **options)
    assert any("running statistics" in note for note in findings.notes) == statistics
    for client in _CLIENTS:
        network = returned[client].eval()
        if statistics:  # which are those that were sent
            network[1].running_mean = server[1].running_mean
            network[1].running_var = server[1].running_var
        records = findings.records[findings.records.client == client]
        rows = frame.iloc[records.row]
        expected = 1 + _smaller_loss(network, rows)
        assert len(set(expected)) == 2
        np.testing.assert_array_equal(records.model.astype(int), expected)
