"""What the server of a Flower federation sees, recorded while it trains.

For the strategies of `flwr.serverapp.strategy`, shipped or one's own. Flower itself is
not imported here: its messages are only read.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

import numpy as np

from fljax.transcript.recorder import Recorder
from fljax.transcript.views import TranscriptError

Strategy = TypeVar("Strategy")
Message = Any  # flwr.app.Message
Named = Mapping[str, np.ndarray]

_NODES = "flower_nodes"  # in a transcript's `about`


def record(
    strategy: Strategy,
    recorder: Recorder,
    *,
    arrays_fn: Callable[[Named], Named] = dict,
    client_fn: Callable[[Message], int] | None = None,
    record_key: str = "arrays",
    sees: Literal["messages", "sum", "models"] = "messages",
) -> Strategy:
    """Makes a strategy record its rounds of training.

    ```python
    with transcript.Recorder("runs/seen", about={"batch_size": 32}) as recorder:
        strategy = flower.record(FedAvg(), recorder, arrays_fn=transcript.from_torch)
        strategy.start(grid, ArrayRecord(network.state_dict()), num_rounds=100)
    ```

    Everything else about it stays as it was. The models are those of the messages
    themselves, as they leave and before the strategy reads the replies: around Flower's
    `DifferentialPrivacyServerSideFixedClipping` they are the clients' own, within it
    the clipped ones. A round is on disk before it is aggregated.

    Clients who send an error, no model or nothing at all are absent from a round; one
    that nobody answers is left out. Rounds count from 0 and go on after those of the
    recorder. Clients are numbered from 0 as they first answer; in the transcript's
    `about`, `flower_nodes` has the number of each of Flower's node ids (as text: they
    have 64 bits).

    Args:
      strategy: its `configure_train` and `aggregate_train` are replaced.
      recorder: of the transcript; to be finished by the caller.
      arrays_fn: a model's arrays by name -> those to record, e.g. `transcript.from_torch`.
      client_fn: reply -> id of the client who sent it, 0 or more, instead of a number.
      record_key: names the model where a message has several array records.
      sees: what is recorded. `sum`: as under secure aggregation, who answered and what
        the strategy makes of that, which has to be the mean weighted by the metric that
        the strategy names (`num-examples`); `models`: the global models, as a client
        that takes part sees them, the last one at the end of `strategy.start`.

    Returns:
      The same strategy. It raises TranscriptError, from within its training, when the
      clients of a round are sent different models, and where `Recorder.record` does.
    """
    hooked: Any = strategy
    weighted_by = getattr(strategy, "weighted_by_key", "num-examples")
    configure, aggregate = hooked.configure_train, hooked.aggregate_train
    nodes: dict[str, int] = dict(recorder.about.get(_NODES, {}))
    begin: Any = getattr(hooked, "start", None)
    sent: dict[int, Named] = {}
    # The last aggregate, which nobody is sent for training after the end.
    newest: list[Named] = []

    def configure_train(server_round, arrays, config, grid):
        messages = list(configure(server_round, arrays, config, grid))
        if messages:
            sent[server_round] = _sent(messages, record_key, server_round)
        return messages

    def aggregate_train(server_round, replies):
        replies = list(replies)
        model, returned = sent.pop(server_round, {}), {}
        weights: dict[int, float] = {}
        for reply, arrays in _returned(replies, record_key):
            client = _number(nodes, reply, client_fn)
            if client in returned:
                raise TranscriptError(
                    f"Flower's round {server_round}: two models of client {client}"
                )
            returned[client] = arrays_fn(arrays)
            if sees == "sum":
                weights[client] = _weight(reply, weighted_by)
        if not returned:
            return aggregate(server_round, replies)
        if recorder.about.get(_NODES) != nodes and sees != "models":
            recorder.describe(**{_NODES: nodes})
        number, model = max(recorder.last_round + 1, server_round - 1), arrays_fn(model)
        if sees == "messages":
            recorder.record(number, model, returned)
        if sees == "models":
            recorder.record_model(number, model)
        made = aggregate(server_round, replies)
        counted = {client: weight for client, weight in weights.items() if weight}
        if counted and made[0] is not None:
            mean = arrays_fn(_arrays(made[0]))
            recorder.record_sums(number, model, [(counted, mean)])
        if sees == "models" and made[0] is not None:
            newest[:] = [arrays_fn(_arrays(made[0]))]
        return made

    def start(*args, **more):
        result = begin(*args, **more)
        if newest:
            recorder.record_model(recorder.last_round + 1, newest.pop())
        return result

    hooked.configure_train, hooked.aggregate_train = configure_train, aggregate_train
    if begin is not None:
        hooked.start = start
    return strategy


def _sent(messages: list[Message], key: str, server_round: int) -> Named:
    """The one model of all messages of a round."""
    models = [_model(message, key) for message in messages]
    if any(model is None or model != models[0] for model in models):
        raise TranscriptError(
            f"Flower's round {server_round}: expected messages with one and the same "
            "model for all clients"
        )
    return _arrays(models[0])


def _returned(replies: list[Message], key: str) -> Iterable[tuple[Message, Named]]:
    for reply in replies:
        if not reply.has_error() and (model := _model(reply, key)):
            yield reply, _arrays(model)


def _model(message: Message, key: str):
    """The message's only array record, or that of this name; None if there is none."""
    found = message.content.array_records
    return next(iter(found.values())) if len(found) == 1 else found.get(key)


def _arrays(model) -> Named:
    return {name: array.numpy() for name, array in model.items()}


def _weight(reply: Message, key: str) -> float:
    """What a reply counts for in the mean."""
    for metrics in reply.content.metric_records.values():
        if key in metrics:
            return float(metrics[key])
    raise TranscriptError(f"expected the metric {key!r} in every reply, by its weight")


def _number(nodes: dict[str, int], reply: Message, client_fn) -> int:
    """The id of the client who sent a reply; a new one joins `nodes`."""
    node = str(reply.metadata.src_node_id)
    if client_fn is not None:
        nodes[node] = operator.index(client_fn(reply))
    return nodes.setdefault(node, max(nodes.values(), default=-1) + 1)
