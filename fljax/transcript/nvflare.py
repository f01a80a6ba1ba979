"""What the server of an NVFlare federation sees, recorded while it trains.

For the workflows that are a `ModelController` (`FedAvg`, `Scaffold`, one's own). NVFlare
itself is not imported here: its models are only read.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fljax.transcript.recorder import Recorder
from fljax.transcript.views import TranscriptError

Controller = TypeVar("Controller")
Named = Mapping[str, np.ndarray]

_NAMES = "client_names"  # in a transcript's `about`, where an audit looks for them


class _Round(NamedTuple):
    """A round whose results are still coming in."""

    number: int
    sent: Named
    results: list[tuple[str, bool, Named]]  # name, whether a difference, arrays


def record(
    controller: Controller,
    recorder: Recorder,
    *,
    arrays_fn: Callable[[Named], Named] = dict,
    task_name: str = "train",
) -> Controller:
    """Makes a controller record its rounds of training.

    ```python
    with transcript.Recorder("runs/seen", about={"batch_size": 32}) as recorder:
        workflow = FedAvg(num_clients=3, num_rounds=100)
        controller = nvflare.record(workflow, recorder, arrays_fn=transcript.from_torch)
        ...  # run the job that it is the workflow of
    ```

    Results are recorded as they reach the controller: after the filters of the clients
    (`PercentilePrivacy`, `SVTPrivacy`, ...) and those of the server. A result of type DIFF
    is added to the model that was sent; what a filter left out of it counts as unchanged.
    Results without a model are absent from a round, and a round without any is left out.
    Rounds go on after those of the recorder. In the transcript's `about`, `client_names`
    has the number of each of NVFlare's client names, in order of their names as they first
    answer.

    A round is on disk before the global model is updated (`update_model`), or before
    `send_model_and_wait` returns; for a loop of one's own with neither, before the next
    `send_model` or, for the last, when `run` returns.

    Args:
      controller: its `send_model`, `send_model_and_wait` and `update_model` are replaced.
      recorder: of the transcript; to be finished by the caller.
      arrays_fn: a model's arrays by name -> those to record, e.g. `transcript.from_torch`.
      task_name: of the task whose results are recorded.

    Returns:
      The same controller. It raises TranscriptError, from within its `run`, when a round
      has two results of one client, and where `Recorder.record` does.
    """
    hooked: Any = controller
    hooked_task = task_name
    send, wait = hooked.send_model, hooked.send_model_and_wait
    update = hooked.update_model
    begin: Any = getattr(hooked, "run", None)
    pending: list[_Round] = []

    def opened(data) -> _Round:
        flush()
        number = data.current_round or 0
        return _Round(max(recorder.last_round + 1, number), _arrays(data), [])

    def flush() -> None:
        while pending:
            _write(pending.pop(), recorder, arrays_fn)

    # In the order of NVFlare's own arguments.
    def send_model(task_name=task_name, data=None, *args, callback=None, **more):
        if task_name != hooked_task or callback is None:  # which NVFlare refuses
            return send(task_name, data, *args, callback=callback, **more)
        current = opened(data)
        pending.append(current)

        def heard(result):
            _hear(current, result)
            return callback(result)

        return send(task_name, data, *args, callback=heard, **more)

    def send_model_and_wait(task_name=task_name, data=None, *args, **more):
        if task_name != hooked_task:
            return wait(task_name, data, *args, **more)
        current = opened(data)
        results = wait(task_name, data, *args, **more)
        for result in results:
            _hear(current, result)
        _write(current, recorder, arrays_fn)
        return results

    def update_model(*args, **more):
        flush()
        return update(*args, **more)

    def run(*args, **more):
        result = begin(*args, **more)
        flush()
        return result

    hooked.send_model, hooked.send_model_and_wait = send_model, send_model_and_wait
    hooked.update_model = update_model
    if begin is not None:
        hooked.run = run
    return controller


def _hear(current: _Round, result) -> None:
    """Keeps a copy of a result before it is aggregated, which may be in place."""
    if result.params:
        name = str(result.meta["client_name"])
        current.results.append((name, _is_difference(result), _arrays(result)))


def _is_difference(result) -> bool:
    return str(getattr(result.params_type, "value", result.params_type)) == "DIFF"


def _arrays(model) -> Named:
    return {name: np.array(array) for name, array in model.params.items()}


def _write(current: _Round, recorder: Recorder, arrays_fn) -> None:
    if not current.results:
        return
    numbers: dict[str, int] = dict(recorder.about.get(_NAMES, {}))
    returned: dict[int, Named] = {}
    for name, difference, arrays in sorted(current.results, key=lambda found: found[0]):
        client = numbers.setdefault(name, max(numbers.values(), default=-1) + 1)
        if client in returned:
            raise TranscriptError(
                f"NVFlare's round {current.number}: two results of client {name!r}"
            )
        whole = _added(current.sent, arrays) if difference else arrays
        returned[client] = arrays_fn(whole)
    if recorder.about.get(_NAMES) != numbers:
        recorder.describe(**{_NAMES: numbers})
    recorder.record(current.number, arrays_fn(current.sent), returned)


def _added(sent: Named, difference: Named) -> Named:
    """The model that a client returned the difference of."""
    return {
        name: array + difference[name] if name in difference else array
        for name, array in sent.items()
    }
