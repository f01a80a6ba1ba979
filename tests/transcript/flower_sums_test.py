"""A strategy's rounds as somebody sees them who sees no single messages."""

import types

import numpy as np
import pytest

from fljax import transcript
from fljax.transcript import flower


class _Model(dict):
    """An array record: names and arrays that have `numpy()`."""

    def __init__(self, value):
        super().__init__(w=types.SimpleNamespace(numpy=lambda: np.array([value])))
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None


def _message(value, node=0, rows=None):
    metrics = {} if rows is None else {"metrics": {"num-examples": rows}}
    return types.SimpleNamespace(
        content=types.SimpleNamespace(
            array_records={"arrays": _Model(value)}, metric_records=metrics
        ),
        metadata=types.SimpleNamespace(src_node_id=node),
        has_error=lambda: False,
    )


class _Strategy:
    """Its mean is 3 whatever is returned."""

    def configure_train(self, server_round, arrays, config, grid):
        return [_message(10.0 * server_round)] * 2

    def aggregate_train(self, server_round, replies):
        return _Model(3.0), None


def _recorded(stem, replies, **arguments):
    strategy = _Strategy()
    with transcript.Recorder(stem) as recorder:
        flower.record(strategy, recorder, **arguments)
        for number in (1, 2):
            list(strategy.configure_train(number, None, None, None))
            strategy.aggregate_train(number, replies)
    return transcript.load(stem)


def test_sums_have_the_strategys_mean_and_the_weights_of_who_answered(tmp_path):
    replies = [_message(1.0, node=70, rows=30), _message(9.0, node=80, rows=10)]
    seen, about = _recorded(tmp_path / "seen", replies, sees="sum")
    assert about["flower_nodes"] == {"70": 0, "80": 1}
    np.testing.assert_array_equal(seen.member, [[[0, 1]]] * 2)
    np.testing.assert_allclose(seen.share[0, 0], [0.75, 0.25])
    returned = seen.params["w"] - seen.delta["w"][:, 0]
    np.testing.assert_array_equal(returned, [[3.0], [3.0]])


def test_who_counts_for_nothing_is_in_no_sum(tmp_path):
    replies = [_message(1.0, node=70, rows=30), _message(9.0, node=80, rows=0)]
    seen, _ = _recorded(tmp_path / "seen", replies, sees="sum")
    np.testing.assert_array_equal(seen.member, [[[0]]] * 2)


def test_global_models_are_what_was_sent(tmp_path):
    seen, about = _recorded(tmp_path / "seen", [_message(1.0)], sees="models")
    np.testing.assert_array_equal(seen.params["w"], [[10.0], [20.0]])
    assert seen.client.shape == (2, 0) and "flower_nodes" not in about


def test_the_last_global_model_is_there_in_the_end(tmp_path):
    class Whole(_Strategy):
        def start(self):
            list(self.configure_train(1, None, None, None))
            self.aggregate_train(1, [_message(1.0)])
            return "done"

    with transcript.Recorder(tmp_path / "seen") as recorder:
        assert flower.record(Whole(), recorder, sees="models").start() == "done"
    seen, _ = transcript.load(tmp_path / "seen")
    np.testing.assert_array_equal(seen.params["w"], [[10.0], [3.0]])


def test_a_reply_without_a_weight_is_refused(tmp_path):
    with pytest.raises(transcript.TranscriptError, match="'num-examples'"):
        _recorded(tmp_path / "seen", [_message(1.0)], sees="sum")


@pytest.mark.parametrize("sees", ["messages", "models"])
def test_a_job_that_began_anew_is_not_recorded_as_the_rest_of_another(tmp_path, sees):
    def job(rounds):
        strategy = _Strategy()
        recorder = transcript.Recorder(tmp_path / "seen")
        flower.record(strategy, recorder, sees=sees)
        for number in rounds:
            list(strategy.configure_train(number, None, None, None))
            strategy.aggregate_train(number, [_message(number + 1.0)])

    job([1, 2, 3])
    with pytest.raises(transcript.TranscriptError, match="round 0 again, another"):
        job([1])
    job([4])
    assert transcript.Recorder(tmp_path / "seen").last_round == 3
