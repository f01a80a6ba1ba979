"""Models that were not copied in time are refused; honest ones never are."""

import copy
import functools

import numpy as np
import pytest

from fljax import transcript

_SIZES = {3: 1.0, 5: 3.0}


def _train(model, client, number, rate=0.1):
    """Changes a model in place, as PyTorch's optimisers do."""
    rng = np.random.default_rng(100 * number + client)
    for leaf in model.values():
        leaf -= rate * rng.normal(size=leaf.shape)


def _average(server, returned):
    total = sum(_SIZES.values())
    for name, leaf in server.items():
        leaf[...] = sum(_SIZES[c] * m[name] for c, m in returned.items()) / total


def _network():
    return {"kernel": np.ones((3, 2), np.float32), "bias": np.zeros(2, np.float32)}


def _record(stem, one_round, rounds=4):
    server = _network()
    with transcript.Recorder(stem) as recorder:
        for number in range(rounds):
            one_round(number, server, functools.partial(recorder.record, number))


def _honest(number, server, record):
    returned = {}
    for client in _SIZES:
        returned[client] = copy.deepcopy(server)
        _train(returned[client], client, number)
    record(server, returned)
    _average(server, returned)


def _one_network(number, server, record):
    """All clients train one network, whose memory each returns."""
    mine, returned = copy.deepcopy(server), {}
    for client in _SIZES:
        _train(mine, client, number)
        returned[client] = {name: leaf.view() for name, leaf in mine.items()}
    record(server, returned)
    _average(server, copy.deepcopy(returned))


def _copied_too_late(number, server, record):
    mine = copy.deepcopy(server)
    for client in _SIZES:
        _train(mine, client, number)
    returned = {client: copy.deepcopy(mine) for client in _SIZES}
    record(server, returned)
    _average(server, returned)


def _server_first(number, server, record):
    """The server averages into the memory of what it sent, and only then records."""
    returned = {}
    for client in _SIZES:
        returned[client] = copy.deepcopy(server)
        _train(returned[client], client, number)
    _average(server, returned)
    record(server, returned)


def _trains_the_server(number, server, record):
    """The clients have no network of their own."""
    for client in _SIZES:
        _train(server, client, number)
    record(server, dict.fromkeys(_SIZES, server))


@pytest.mark.parametrize(
    ("one_round", "said"),
    [
        (_one_network, "round 0: clients 3 and 5 returned the same memory"),
        (_copied_too_late, "round 2: all clients returned equal models in each of 3"),
        (_server_first, "round 1: .*returned models with this average: `sent` was"),
        (_trains_the_server, "round 2: .*returned just what it was sent: `sent` was"),
    ],
)
def test_models_that_were_not_copied_are_refused(one_round, said, tmp_path):
    with pytest.raises(transcript.TranscriptError, match=said) as caught:
        _record(tmp_path / "run", one_round)
    assert "transcript.from_torch, .clone() or .copy()" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def _warm_up(number, server, record):
    """The first rate is 0, and client 5 never does a step."""
    returned = {5: server, 3: copy.deepcopy(server)}
    _train(returned[3], 3, number, rate=0.1 * number)
    record(server, returned)
    _average(server, copy.deepcopy(returned))


def _one_rests(number, server, record):
    """In the first round one of the clients does no step."""
    returned = {client: copy.deepcopy(server) for client in _SIZES}
    for client in list(_SIZES)[bool(number == 0) :]:
        _train(returned[client], client, number)
    record(server, returned)
    _average(server, returned)


def _idle(number, server, record):
    """Nobody ever does a step."""
    record(server, dict.fromkeys(_SIZES, server))


def _signs(number, server, record):
    """Messages of signs agree until the clients' paths part."""
    _train(server, 0, number)
    returned = {}
    for client in _SIZES:
        apart = client if number == 2 else 0
        returned[client] = {k: leaf - 0.1 * apart - 0.1 for k, leaf in server.items()}
    record(server, returned)


def _alone(number, server, record):
    mine = copy.deepcopy(server)
    _train(mine, 3, number)
    record(server, {3: mine})
    for name, leaf in server.items():
        leaf[...] = mine[name]


def _draws(number, server, record):
    """A server in the middle sends what it likes; its clients are at their optimum."""
    target = _network()
    _train(server, 0, number)
    returned = {c: {k: (v + target[k]) / c for k, v in server.items()} for c in _SIZES}
    record(server, returned)


def _opposite(number, server, record):
    """Two clients pull to two sides, and the server stays where it is."""
    signs = enumerate(_SIZES)
    record(server, {c: {k: v + 1 - 2 * n for k, v in server.items()} for n, c in signs})


@pytest.mark.parametrize(
    "one_round",
    [_honest, _warm_up, _one_rests, _idle, _signs, _alone, _draws, _opposite],
)
def test_honest_rounds_are_recorded(one_round, tmp_path):
    _record(tmp_path / "run", one_round)
    found, _ = transcript.load(tmp_path / "run")
    assert len(found.round) == 4


@pytest.mark.parametrize("seed", range(8))
def test_noisy_clients_of_whose_model_little_is_trained_are_honest(tmp_path, seed):
    """Between so many messages of so few numbers nothing lies as likely as not."""
    rng = np.random.default_rng(seed)
    frozen, head = rng.normal(size=(20, 20)), np.zeros(10)
    with transcript.Recorder(tmp_path / "run") as recorder:
        for number in range(3):
            returned = {
                client: {"frozen": frozen.copy(), "head": head + rng.normal(size=10)}
                for client in range(50)
            }
            recorder.record(number, {"frozen": frozen, "head": head}, returned)
            head = np.mean([each["head"] for each in returned.values()], axis=0)


def test_a_training_that_goes_on_is_not_looked_at_again(tmp_path):
    _record(tmp_path / "run", _honest, rounds=1)
    server = _network()
    recorder = transcript.Recorder(tmp_path / "more")
    for number in range(4):
        recorder.record(number, server, {3: server})
        recorder = transcript.Recorder(tmp_path / "more")
        _train(server, 0, number)
    assert recorder.last_round == 3


def test_pytorchs_memory_is_copied_by_from_torch_and_known_without(tmp_path):
    torch = pytest.importorskip("torch")
    network = torch.nn.Linear(3, 2, dtype=torch.bfloat16)
    one = transcript.from_torch(network.state_dict())
    before = copy.deepcopy(one)
    with torch.no_grad():
        network.weight += 1
    np.testing.assert_array_equal(one["kernel"], before["kernel"])
    assert one["kernel"].shape == (3, 2) and one["kernel"].dtype == np.float32
    recorder = transcript.Recorder(tmp_path / "run")
    same = {client: dict(network.named_parameters()) for client in _SIZES}
    sent = {name: torch.zeros_like(leaf) for name, leaf in same[3].items()}
    with pytest.raises(transcript.TranscriptError, match="the same memory"):
        recorder.record(0, sent, same)
    recorder.record(0, sent, {3: same[3]})  # and what belongs to a graph is recorded
