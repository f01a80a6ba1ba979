"""What is left of a transcript where single messages are not seen."""

import jax
import numpy as np
import pytest

from fljax import transcript
from fljax.transcript import sums, views
from fljax.transcript.sums import Server
from fljax.types import Transcript

_SERVER = Server(np.array([3, 5, 8]), np.array([1.0, 3.0, 4.0]))


def _seen() -> Transcript:
    """Two rounds of three clients, the last without client 5, of whom -7 is left."""
    return Transcript(
        round=np.array([4, 5]),
        client=np.array([[5, 3, 8], [8, -1, 3]]),
        params={"w": np.array([[10.0], [6.0]], np.float32)},
        delta={"w": np.array([[[4.0], [8.0], [2.0]], [[1.0], [-7.0], [6.0]]])},
    )


def test_a_sum_is_the_weighted_mean_of_those_who_took_part():
    found = sums.add_up(_seen(), _SERVER)
    mean = [(1 * 8 + 3 * 4 + 4 * 2) / 8, (4 * 1 + 1 * 6) / 5]
    np.testing.assert_allclose(found.delta["w"][:, 0, 0], mean)
    np.testing.assert_array_equal(found.client, [[0], [0]])
    np.testing.assert_array_equal(found.member[:, 0], [[5, 3, 8], [8, 3, -1]])
    np.testing.assert_allclose(
        found.share[:, 0], [[3 / 8, 1 / 8, 1 / 2], [4 / 5, 1 / 5, 0]]
    )


def test_groups_are_of_neighbours_and_of_so_many_at_least():
    ids = np.array([[7, 3, 8, 5, 9], [-1, 9, 3, 8, 7], [3, -1, -1, -1, -1], [-1] * 5])
    server = Server(np.array([3, 5, 7, 8, 9]), np.ones(5))
    delta = {"w": 1.0 * ids[..., None]}
    params = {"w": np.zeros((4, 1))}
    seen = Transcript(np.arange(4), ids, params, delta)
    found = sums.add_up(seen, server, 2)
    np.testing.assert_array_equal(found.client, [[0, 1], [0, 1], [0, -1], [-1, -1]])
    np.testing.assert_allclose(
        found.delta["w"][..., 0], [[5, 8.5], [5, 8.5], [3, 0], [0, 0]]
    )
    np.testing.assert_array_equal(np.sort(found.member[0]), [[3, 5, 7], [-1, 8, 9]])
    np.testing.assert_array_equal(np.sort(found.member[1]), [[-1, 3, 7], [-1, 8, 9]])
    np.testing.assert_array_equal(found.member[2], [[3, -1, -1], [-1, -1, -1]])


def test_a_clients_view_of_sums_are_those_that_it_is_in():
    view = views.client_view(sums.add_up(_seen(), _SERVER), [3, 5, 9])
    np.testing.assert_array_equal(view.count, [2, 1, 0])
    two = jax.tree.map(
        lambda *leaves: np.stack(leaves), *[sums.add_up(_seen(), _SERVER)] * 2
    )
    again = views.client_view(two, [3, 5, 9])
    np.testing.assert_array_equal(again.row, np.stack([view.row] * 2))


def test_sums_of_single_clients_are_their_messages():
    found = sums.add_up(_seen(), _SERVER, 1)
    for client in _SERVER.clients:
        alone, whole = (transcript.exchange(each, client) for each in (found, _seen()))
        np.testing.assert_array_equal(alone.delta["w"], whole.delta["w"])


def test_global_models_tell_the_sums_of_plain_averaging():
    found = sums.models(_seen(), _SERVER._replace(learning_rate=0.5))
    np.testing.assert_array_equal(found.delta["w"], [[[8.0]]])
    np.testing.assert_allclose(found.share, [[[1 / 8, 3 / 8, 1 / 2]]])
    assert sums.are_known(found)


@pytest.mark.parametrize(
    "server",
    [_SERVER._replace(everybody=False), _SERVER._replace(learning_rate=None)],
    ids=["somebody absent", "another optimiser"],
)
def test_global_models_do_not_tell_who_made_them(server):
    found = sums.models(_seen(), server)
    assert np.isnan(found.share).all() and not sums.are_known(found)
    last = views.last_models(found, views.client_view(found, [5]))[0]
    np.testing.assert_array_equal(last["w"], [[6.0]])


def test_the_last_model_is_all_that_is_left_in_the_end():
    found = sums.final(_seen(), _SERVER)
    assert found.params["w"].tolist() == [[6.0]] and found.round.tolist() == [5]
    last = views.last_models(found, views.client_view(found, [3]))
    assert [each["w"].tolist() for each in last] == [[[6.0]]] * 2
    one = jax.tree.map(lambda leaf: leaf[:1], _seen())
    np.testing.assert_array_equal(sums.models(one, _SERVER).params["w"], [[10.0]])


def test_sums_come_back_from_a_file(tmp_path):
    whole = sums.add_up(_seen(), _SERVER)
    transcript.save(tmp_path / "sums", whole)
    found, _ = transcript.load(tmp_path / "sums")
    jax.tree.map(np.testing.assert_array_equal, found, whole)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"share": None}, "both 'member' and 'share'"),
        ({"member": np.zeros((2, 1), np.int32)}, "not a line for each sum"),
        ({"member": np.full((2, 1, 3), -2, np.int32)}, "neither an id"),
        ({"member": np.full((2, 1, 3), 2**63, np.uint64)}, "neither an id < 2.63"),
        ({"member": np.full((2, 1, 3), -1, np.int32)}, "no share"),
        ({"share": np.full((2, 1, 3), 2.0)}, "no share"),
        ({"share": np.full((2, 1, 3), 0.5)}, "no share"),
        ({"member": np.array([[[3, 5, 5]], [[3, 5, -1]]])}, "twice in a sum"),
        ({"share": np.array([[[0.3, 0.2, 0.3]], [[0.5, 0.5, 0]]])}, "add up to 1"),
    ],
)
def test_a_file_of_sums_that_cannot_be_is_refused(tmp_path, change, why):
    with pytest.raises(ValueError, match=why):
        transcript.save(
            tmp_path / "sums", sums.add_up(_seen(), _SERVER)._replace(**change)
        )


def test_seeds_with_other_numbers_of_members_are_stacked():
    few = _seen()._replace(client=np.array([[5, -1, 8], [8, -1, 3]]))
    found = sums.stacked([sums.add_up(each, _SERVER) for each in (_seen(), few)])
    assert found.member.shape == (2, 2, 1, 3)
    assert found.member[1, 0, 0].tolist() == [5, 8, -1]


def test_seeds_with_other_numbers_of_groups_are_stacked():
    few = _seen()._replace(client=np.array([[5, -1, -1], [8, -1, -1]]))
    found = sums.stacked([sums.add_up(each, _SERVER, 1) for each in (_seen(), few)])
    np.testing.assert_array_equal(found.client[1], [[0, -1, -1], [0, -1, -1]])
    np.testing.assert_array_equal(found.member[1, 0], [[5], [-1], [-1]])
    assert found.delta["w"].shape == (2, 2, 3, 1)
