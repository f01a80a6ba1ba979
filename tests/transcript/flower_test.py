"""A federation of Flower's own strategies and clients, in one process."""

import copy
import random
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import transcript
from fljax.attacks.reconstruction import least_squares

app = pytest.importorskip("flwr.app")
clientapp = pytest.importorskip("flwr.clientapp")
serverapp = pytest.importorskip("flwr.serverapp")
strategies = pytest.importorskip("flwr.serverapp.strategy")

from fljax.transcript import flower

pytestmark = pytest.mark.filterwarnings("ignore:.*arrays of integers")
_NODES = (2**64 - 5, 2**63 + 1, 17)  # as large as Flower's are
_RATE = 0.1


@pytest.fixture(autouse=True)
def _at_the_server(monkeypatch):
    """Newer versions of Flower ask who it is that makes a message."""
    if found := sys.modules.get("flwr.supercore.task_identity"):
        for name in ("_run_id", "_node_id", "_task_id"):
            monkeypatch.setattr(found.TaskIdentity, name, 1)


def _rows(node):
    rng = np.random.default_rng(_NODES.index(node))
    x = rng.normal(size=(20, 3))
    return x, x @ rng.normal(size=(3, 1)) + rng.normal(size=(20, 1))


def _steps(weight, bias, node):
    """Full-batch steps of linear regression; `weight` is `[outputs, inputs]`."""
    x, y = _rows(node)
    for _ in range(2):
        error = x @ weight.T + bias - y
        slopes = 2 * error.T @ x / len(x), 2 * error.mean(axis=0)
        weight, bias = weight - _RATE * slopes[0], bias - _RATE * slopes[1]
    return weight, bias


def _record_of(weight, bias, seen=7):
    arrays = {"fc.weight": weight, "fc.bias": bias, "fc.seen": np.array(seen)}
    return app.ArrayRecord({name: app.Array(a) for name, a in arrays.items()})


def _initial(seen=7, place=0.0):
    return _record_of(np.full((1, 3), place), np.full(1, place), seen)


class _Federation(serverapp.Grid):
    """Carries messages to a real ClientApp and back, and keeps what it carried."""

    def __init__(self, nodes=_NODES, fails=lambda number, node: None):
        self.carried = {}  # (round, node) -> (sent weight, returned weight)
        self.asked = {"train": 0, "evaluate": 0}  # messages of each type
        self._nodes, self._fails = nodes, fails
        self._client = clientapp.ClientApp()
        self._client.train()(self._train)
        self._client.evaluate()(self._evaluate)

    def _train(self, message, context):
        number = message.content["config"]["server-round"] - 1
        sent = message.content["arrays"]
        how = self._fails(number, context.node_id)
        if how == "crash":
            raise RuntimeError("out of memory")
        if how == "empty":
            return app.Message(app.RecordDict(), reply_to=message)
        model = sent["fc.weight"].numpy(), sent["fc.bias"].numpy()
        weight, bias = _steps(*model, context.node_id)
        self.carried[number, context.node_id] = model[0], weight
        mine = _record_of(weight, bias, sent["fc.seen"].numpy())
        place = _NODES.index(context.node_id)
        metrics = app.MetricRecord({"num-examples": 20, "place": place})
        found = app.RecordDict({"mine": mine, "metrics": metrics})
        return app.Message(found, reply_to=message)

    def _evaluate(self, message, context):
        message.content["metrics"] = app.MetricRecord({"num-examples": 20})
        return app.Message(message.content, reply_to=message)

    def send_and_receive(self, messages, *, timeout=None):
        return [self._answer(message) for message in messages]

    def _answer(self, message):
        kind, node = message.metadata.message_type, message.metadata.dst_node_id
        self.asked[kind] += 1
        own = app.Message(copy.deepcopy(message.content), node, kind)
        try:
            return self._client(own, app.Context(0, node, {}, app.RecordDict(), {}))
        except RuntimeError as error:
            return app.Message(app.Error(0, str(error)), reply_to=message)

    def get_node_ids(self):
        return self._nodes

    run = set_run = create_message = push_messages = pull_messages = None


def _fed_avg(**arguments):
    return strategies.FedAvg(min_train_nodes=1, min_available_nodes=1, **arguments)


def _train(stem, strategy, grid=None, rounds=4, initial=None, **arguments):
    grid, initial = grid or _Federation(), initial or _initial()
    with transcript.Recorder(stem, {"batch_size": None}) as recorder:
        watched = flower.record(
            strategy, recorder, arrays_fn=transcript.from_torch, **arguments
        )
        return grid, watched.start(grid, initial, num_rounds=rounds)


def _heard(seen, about):
    """`(round, node) -> (sent weight, returned weight)`, as the transcript says."""
    nodes = {client: int(node) for node, client in about["flower_nodes"].items()}
    sent, delta = seen.params["fc"]["kernel"], seen.delta["fc"]["kernel"]
    return {
        (int(number), nodes[client]): (sent[row].T, (sent[row] - delta[row, slot]).T)
        for row, number in enumerate(seen.round)
        for slot, client in enumerate(seen.client[row])
        if client >= 0
    }


def _assert_same(heard, carried):
    assert heard.keys() == carried.keys()
    for place, weights in carried.items():
        for found, expected in zip(heard[place], weights, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("share", [0.7, 1.0], ids=["two of three", "all"])
@pytest.mark.parametrize("kind", ["FedAvg", "FedAdam", "FedAvgM"])
def test_a_transcript_is_what_went_over_the_wire(kind, share, tmp_path):
    random.seed(0)  # Flower samples clients with it
    strategy = getattr(strategies, kind)(
        fraction_train=share, min_train_nodes=1, min_available_nodes=1
    )
    grid, _ = _train(tmp_path / "seen", strategy)
    seen, about = transcript.load(tmp_path / "seen")
    assert grid.asked["evaluate"] == 12  # and left out
    assert seen.client.shape == (4, 2 if share < 1 else 3)
    assert set(about["flower_nodes"]) == {str(node) for node in _NODES}
    assert sorted(about["flower_nodes"].values()) == [0, 1, 2]
    assert about["batch_size"] is None
    assert seen.params["fc"].keys() == {"kernel", "bias"}
    assert about["left_out"] == ["fc/seen"]  # though its averages are floats
    _assert_same(_heard(seen, about), grid.carried)


def test_the_training_is_the_same_as_without(tmp_path):
    random.seed(0)
    _, recorded = _train(tmp_path / "seen", _fed_avg())
    random.seed(0)
    plain = _fed_avg().start(_Federation(), _initial(), num_rounds=4)
    assert recorded.arrays == plain.arrays
    assert recorded.arrays != _initial()


def test_a_strategy_keeps_its_kind_and_its_own_loop(tmp_path):
    class Own(strategies.FedAvg):
        def start(self, grid, initial_arrays, num_rounds):
            self.started = True
            return super().start(grid, initial_arrays, num_rounds)

    own = Own(fraction_evaluate=0.0)
    with transcript.Recorder(tmp_path / "seen") as recorder:
        assert flower.record(own, recorder) is own
        own.start(_Federation(), _initial(), num_rounds=1)
    assert own.started
    seen, _ = transcript.load(tmp_path / "seen")
    assert seen.params["fc.weight"].shape == (1, 1, 3)  # as PyTorch has it


@pytest.mark.parametrize("how", ["crash", "empty"])
def test_who_returns_nothing_has_an_empty_slot(how, tmp_path):
    def fails(number, node):
        return how if number == 2 or (number, node) == (0, 17) else None

    class Lenient(strategies.FedAvg):
        def aggregate_train(self, server_round, replies):
            good = [r for r in replies if r.has_content() and r.content.array_records]
            return super().aggregate_train(server_round, good)

    grid = _Federation(fails=fails)
    _train(tmp_path / "seen", Lenient(), grid)
    seen, about = transcript.load(tmp_path / "seen")
    np.testing.assert_array_equal(seen.round, [0, 1, 3])  # nobody answered the third
    np.testing.assert_array_equal((seen.client == -1).sum(axis=1), [1, 0, 0])
    assert about["flower_nodes"]["17"] == 2  # the last to answer
    _assert_same(_heard(seen, about), grid.carried)


def test_a_crashed_training_is_readable_and_may_go_on(tmp_path):
    class Fragile(strategies.FedAvg):
        def aggregate_train(self, server_round, replies):
            if server_round == 3:
                raise RuntimeError("power cut")
            return super().aggregate_train(server_round, replies)

    first = _Federation()
    with pytest.raises(RuntimeError, match="power cut"):
        _train(tmp_path / "seen", Fragile(), first)
    *_, last = transcript.Recorder(tmp_path / "seen").about["flower_nodes"]
    alone, average = _Federation([int(last)]), _initial(seen=7.5, place=0.01)
    quick = _fed_avg(fraction_evaluate=0.0)
    second, _ = _train(tmp_path / "seen", quick, alone, initial=average)
    later = {(number + 3, node): w for (number, node), w in second.carried.items()}
    seen, about = transcript.load(tmp_path / "seen")
    np.testing.assert_array_equal(seen.round, range(7))
    assert about["flower_nodes"][last] == 2
    _assert_same(_heard(seen, about), first.carried | later)


def test_around_clipping_it_hears_the_clients_and_within_it_the_clipped(tmp_path):
    def clipped(inner):
        return strategies.DifferentialPrivacyServerSideFixedClipping(inner, 0.0, 0.1, 3)

    grid, _ = _train(tmp_path / "around", clipped(_fed_avg()))
    _assert_same(_heard(*transcript.load(tmp_path / "around")), grid.carried)
    with transcript.Recorder(tmp_path / "within") as recorder:
        inner = flower.record(_fed_avg(), recorder, arrays_fn=transcript.from_torch)
        clipped(inner).start(_Federation(), _initial(), num_rounds=1)
    seen, _ = transcript.load(tmp_path / "within")
    deltas = [seen.delta["fc"][name][0].reshape(3, -1) for name in ("kernel", "bias")]
    norms = np.linalg.norm(np.concatenate(deltas, axis=1), axis=1)
    np.testing.assert_allclose(norms, 0.1, rtol=1e-6)


def test_clients_may_say_who_they_are(tmp_path):
    def place(reply):
        return 10 + reply.content["metrics"]["place"]

    grid, _ = _train(tmp_path / "seen", _fed_avg(), client_fn=place)
    seen, about = transcript.load(tmp_path / "seen")
    assert about["flower_nodes"] == {str(n): 10 + k for k, n in enumerate(_NODES)}
    _assert_same(_heard(seen, about), grid.carried)
    with pytest.raises(transcript.TranscriptError, match="two models of client 4"):
        _train(tmp_path / "other", _fed_avg(), client_fn=lambda reply: 4)


def test_different_models_for_different_clients_are_refused(tmp_path):
    class Active(strategies.FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            *others, last = super().configure_train(server_round, arrays, config, grid)
            last.content = copy.deepcopy(last.content)
            last.content["arrays"] = _record_of(np.ones((1, 3)), np.zeros(1))
            return [*others, last]

    with pytest.raises(transcript.TranscriptError, match="one and the same model"):
        _train(tmp_path / "seen", Active())


def test_the_model_is_named_where_there_are_more_arrays(tmp_path):
    class Scaffold(strategies.FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            messages = super().configure_train(server_round, arrays, config, grid)
            for message in messages:
                control = _record_of(np.ones((1, 3)), np.ones(1))
                message.content = app.RecordDict({"c": control, **message.content})
            return messages

    grid, _ = _train(tmp_path / "seen", Scaffold())
    _assert_same(_heard(*transcript.load(tmp_path / "seen")), grid.carried)
    with pytest.raises(transcript.TranscriptError, match="one and the same model"):
        _train(tmp_path / "other", Scaffold(), record_key="model")


def test_the_optimum_of_a_client_is_in_her_messages(tmp_path):
    class Perturbing(strategies.FedAvg):
        def aggregate_train(self, server_round, replies):
            arrays, metrics = super().aggregate_train(server_round, replies)
            means = arrays["fc.weight"].numpy(), arrays["fc.bias"].numpy()
            rng = np.random.default_rng(server_round)
            return _record_of(*(a + rng.normal(size=a.shape) for a in means)), metrics

    _train(tmp_path / "seen", Perturbing(), rounds=8)
    seen, about = transcript.load(tmp_path / "seen")
    for node in _NODES:
        hers = transcript.exchange(seen, about["flower_nodes"][str(node)])
        with jax.enable_x64(True):
            sent, delta = (
                jnp.concatenate([tree["fc"]["kernel"][..., 0], tree["fc"]["bias"]], 1)
                for tree in hers
            )
            found = least_squares.reconstruct_linear(sent, delta)
        x, y = _rows(node)
        optimum = np.linalg.lstsq(np.c_[x, np.ones(20)], y[:, 0], rcond=None)[0]
        assert found.determined
        np.testing.assert_allclose(found.estimate, optimum, rtol=1e-8)
