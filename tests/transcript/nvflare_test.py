"""A federation of NVFlare's own workflow, tasks and filters, in one process."""

import copy

import numpy as np
import pytest

from fljax import transcript
from fljax.transcript import nvflare as recording

pytest.importorskip("nvflare", reason="the extra `nvflare` is not installed")

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask
from nvflare.apis.fl_constant import ReservedKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.filters import ExcludeVars, PercentilePrivacy
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.app_common.workflows.fedavg import FedAvg

_NAMES = ("site-1", "site-2", "site-3")
_START = {"fc.weight": np.arange(6.0).reshape(2, 3), "fc.bias": np.ones(2)}


class _InProcess:
    """Tasks go to the clients and back at once, as the Shareables that they are."""

    def __init__(self, *args, client_filters=(), fails=(), returns="DIFF", **more):
        super().__init__(*args, persistor_id="", save_filename="", **more)
        self.fl_ctx, self.abort_signal, self.engine = FLContext(), Signal(), None
        self.fl_ctx.set_prop(ReservedKey.RUN_NUM, "job", private=True, sticky=True)
        self.carried = {}  # (round, name) -> (sent, returned) weights
        self._filters, self._fails, self._returns = client_filters, fails, returns

    def sample_clients(self, num_clients=None):
        return [Client(name, name) for name in reversed(_NAMES)]

    def broadcast(self, task, fl_ctx, targets=None, **more):
        for name in targets:
            own = ClientTask(Client(name, name), task)
            own.result = self._answer(name, copy.deepcopy(task.data))
            task.result_received_cb(own, fl_ctx)

    broadcast_and_wait = broadcast

    def get_num_standing_tasks(self):
        return 0

    def event(self, event_type):
        pass

    def fire_event_with_data(self, *args):
        pass

    def _answer(self, name, shareable):
        sent = FLModelUtils.from_shareable(shareable)
        if (sent.current_round, name) in self._fails:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        step = np.random.default_rng([sent.current_round, _NAMES.index(name)])
        moved = {k: step.normal(size=v.shape) for k, v in sent.params.items()}
        full = {k: v + moved[k] for k, v in sent.params.items()}
        params = moved if self._returns == "DIFF" else full
        model = FLModel(params_type=ParamsType(self._returns), params=params)
        made = FLModelUtils.to_shareable(model)
        for filtering in self._filters:
            made = filtering.process(made, self.fl_ctx)
        heard = FLModelUtils.from_shareable(copy.deepcopy(made)).params
        if self._returns == "DIFF":
            heard = {k: v + heard.get(k, 0) for k, v in sent.params.items()}
        self.carried[sent.current_round, name] = sent.params, heard
        return made


class _FedAvg(_InProcess, FedAvg):
    pass


class _Waiting(_FedAvg):
    """A loop of one's own, with `send_model_and_wait` alone."""

    def run(self):
        for number in range(self.num_rounds):
            model = FLModel(params=self.model, current_round=number)
            self.send_model_and_wait(targets=list(_NAMES), data=model)
            self.send_model_and_wait("validate", model, list(_NAMES))


def _train(stem, kind=_FedAvg, rounds=2, **more):
    controller = kind(num_clients=3, num_rounds=rounds, model=dict(_START), **more)
    with transcript.Recorder(stem, {"batch_size": None}) as recorder:
        kept = recording.record(controller, recorder, arrays_fn=transcript.from_torch)
        assert kept is controller
        controller.run()
    return controller, *transcript.load(stem)


def _assert_carried(seen, about, carried):
    names = {number: name for name, number in about["client_names"].items()}
    heard = {
        (int(number), names[client]): (row, slot)
        for row, number in enumerate(seen.round)
        for slot, client in enumerate(seen.client[row])
        if client >= 0
    }
    assert heard.keys() == carried.keys()
    for place, (row, slot) in heard.items():
        sent, returned = carried[place]
        kernel = seen.params["fc"]["kernel"][row]
        np.testing.assert_allclose(kernel.T, sent["fc.weight"], atol=1e-12)
        found = kernel - seen.delta["fc"]["kernel"][row, slot]
        np.testing.assert_allclose(found.T, returned["fc.weight"], atol=1e-12)


@pytest.mark.parametrize("returns", ["DIFF", "FULL"])
def test_a_transcript_is_what_reached_the_controller(returns, tmp_path):
    controller, seen, about = _train(tmp_path / "seen", returns=returns)
    assert about["client_names"] == {name: k for k, name in enumerate(_NAMES)}
    assert about["batch_size"] is None
    np.testing.assert_array_equal(seen.round, [0, 1])
    _assert_carried(seen, about, controller.carried)


def test_the_training_is_the_same_as_without(tmp_path):
    recorded, *_ = _train(tmp_path / "seen")
    plain = _FedAvg(num_clients=3, num_rounds=2, model=dict(_START))
    plain.run()
    for place, (sent, _) in plain.carried.items():
        np.testing.assert_array_equal(
            sent["fc.weight"], recorded.carried[place][0]["fc.weight"]
        )


def test_what_a_filter_of_the_clients_took_away_is_not_recorded(tmp_path):
    stock = PercentilePrivacy()
    controller, seen, about = _train(tmp_path / "seen", client_filters=[stock])
    _assert_carried(seen, about, controller.carried)
    for leaf in seen.delta["fc"].values():
        assert np.abs(leaf).max() <= stock.gamma + 1e-12
    assert any((leaf == 0).any() for leaf in seen.delta["fc"].values())


def test_a_layer_that_is_left_out_counts_as_unchanged(tmp_path):
    filters = [ExcludeVars(exclude_vars=["fc.bias"])]
    _, seen, _ = _train(tmp_path / "seen", client_filters=filters)
    assert not seen.delta["fc"]["bias"].any()
    assert seen.delta["fc"]["kernel"].all()


def test_who_fails_has_an_empty_slot(tmp_path):
    fails = {(0, "site-1")}
    _, seen, about = _train(tmp_path / "seen", fails=fails, ignore_result_error=True)
    np.testing.assert_array_equal((seen.client == -1).sum(axis=1), [1, 0])
    assert about["client_names"] == {"site-2": 0, "site-3": 1, "site-1": 2}


def test_a_loop_of_ones_own_records_its_task_alone(tmp_path):
    controller, seen, about = _train(tmp_path / "seen", kind=_Waiting)
    np.testing.assert_array_equal(seen.round, [0, 1])
    _assert_carried(seen, about, controller.carried)


def test_two_results_of_one_client_are_refused(tmp_path):
    class Twice(_FedAvg):
        def broadcast(self, task, fl_ctx, targets=None, **more):
            super().broadcast(task, fl_ctx, [*targets, targets[0]], **more)

    with pytest.raises(transcript.TranscriptError, match="two results .* 'site-3'"):
        _train(tmp_path / "seen", kind=Twice)
