"""One client's messages, cut out of a transcript."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import transcript
from fljax.transcript import views
from fljax.types import Exchange, Transcript


def _seen(delta_dtype=np.float32) -> Transcript:
    """Three rounds of one parameter; client 1 was absent from the second, 2 always."""
    delta = np.array([[1.0, 2.0], [3.0, 0.0], [5.0, 4.0]], delta_dtype)
    return Transcript(
        round=np.array([0, 1, 4]),
        client=np.array([[0, 1], [0, -1], [1, 0]]),
        params={"w": np.array([10.0, 20.0, 30.0], np.float32)},
        delta={"w": delta},
    )


def _two_seeds() -> Transcript:
    other = _seen()._replace(client=np.array([[1, 0], [0, -1], [0, 2]]))
    return jax.tree.map(lambda *leaves: np.stack(leaves), _seen(), other)


def test_a_view_says_where_each_clients_messages_lie():
    view = views.client_view(_seen(), [0, 1, 2])
    np.testing.assert_array_equal(view.count, [3, 2, 0])
    np.testing.assert_array_equal(view.has_messages, [True, True, False])
    np.testing.assert_array_equal(view.row, [[0, 1, 2], [0, 2, 2], [0, 0, 0]])
    np.testing.assert_array_equal(view.slot, [[0, 0, 1], [1, 0, 0], [0, 0, 0]])


def test_messages_that_may_not_be_used_are_left_out():
    usable = np.array([[True, True], [False, True], [True, True]])
    view = views.client_view(_seen(), [0], usable)
    np.testing.assert_array_equal(view.row, [[0, 2]])


@pytest.mark.parametrize("lead", [(), (2,)], ids=["one seed", "seeds"])
def test_models_and_messages_are_cut_alike_with_and_without_seeds(lead):
    seen = _two_seeds() if lead else _seen()
    view = views.client_view(seen, [0, 1])
    for of_seed in np.ndindex(lead):
        found = views.messages(seen, view)
        models = views.last_models(seen, view)
        before = views.sent_models(seen, view, behind=1)
        one, alone = jax.tree.map(lambda leaf, at=of_seed: leaf[at], (seen, view))
        for client in (0, 1):
            mine = transcript.exchange(one, client)
            at = (*of_seed, client, slice(alone.count[client]))
            np.testing.assert_array_equal(found.params["w"][at], mine.params["w"])
            np.testing.assert_array_equal(found.delta["w"][at], mine.delta["w"])
            last = mine.params["w"][-1] - mine.delta["w"][-1], mine.params["w"][-1]
            assert [each["w"][(*of_seed, client)] for each in models] == [*last]
            assert before["w"][(*of_seed, client)] == mine.params["w"][-2:][0]


def test_what_is_cut_is_traceable_in_the_client():
    seen, traced = _seen(), []
    view = views.client_view(seen, [0, 1, 2])

    @jax.jit
    def total(seen, view, client):
        mine = view.of(client)

        def attack():
            traced.append(client)
            return views.messages(seen, views.spread(mine, 2)).delta["w"].sum()

        return views.if_messages(mine, attack)

    found = [float(total(*jax.tree.map(jnp.asarray, (seen, view)), c)) for c in (0, 1)]
    assert found == [1 + 4, 2 + 5]
    assert float(total(*jax.tree.map(jnp.asarray, (seen, view)), 2)) == 0
    assert len(traced) == 1


def test_messages_travel_in_the_precision_of_the_model_and_flat_ones_in_their_own():
    seen = _seen(np.float64)
    seen.delta["w"][0, 0] = 1 + 2**-40
    view = views.client_view(seen, [0])
    assert views.messages(seen, view).delta["w"].dtype == np.float32
    sent, delta = views.flat(seen, views.first(view, 2))
    assert sent.shape == delta.shape == (1, 2, 1)
    assert delta[0, 0, 0] == 1 + 2**-40


def test_an_exchange_has_the_rounds_in_which_the_client_took_part(original):
    found, whole = transcript.exchange(original(), 4), original()
    for name, at in (("params", [0, 1]), ("delta", ([0, 1], [1, 0]))):
        np.testing.assert_array_equal(
            getattr(found, name)["dense"]["kernel"],
            getattr(whole, name)["dense"]["kernel"][at],
        )


def test_an_exchange_with_a_client_that_sent_nothing_is_an_error(original):
    with pytest.raises(transcript.TranscriptError, match="client 7"):
        transcript.exchange(original(), 7)


def test_the_returned_model_is_the_last_that_the_client_sent(original):
    seen = transcript.exchange(original(), 4)
    found = transcript.returned_model(original(), 4)["dense"]["kernel"]
    sent, delta = (each["dense"]["kernel"][-1] for each in seen)
    np.testing.assert_array_equal(found, sent - delta)
    with pytest.raises(transcript.TranscriptError, match="client 7"):
        transcript.returned_model(original(), 7)


def test_messages_before_a_round_are_those_of_earlier_rounds_only():
    number = np.array([[0, 2, 3, 7]])
    view = views.ClientView(
        row=np.array([[[0, 1, 2, 3], [1, 3, 3, 3]]]),
        slot=np.array([[[0, 0, 0, 0], [1, 1, 1, 1]]]),
        count=np.array([[4, 2]]),
    )
    early = views.before(view, number, 3)
    np.testing.assert_array_equal(early.count, [[2, 1]])
    np.testing.assert_array_equal(early.row[0], [[0, 1, 1, 1], [1, 1, 1, 1]])
    assert views.before(view, number, 2).count[0, 1] == 0
    np.testing.assert_array_equal(views.before(view, number, 9).row, view.row)


def test_an_array_without_numbers_has_ends_too():
    nothing = np.zeros((2, 3, 0, 4), np.float32)
    small, _ = views.apart(Exchange({"w": nothing}, {"w": nothing}), np.full(2, 3))
    assert small.params["w"].shape == (6, 0, 4)


def test_the_ends_of_messages_make_a_transcript_of_their_own():
    seen = _seen()
    view = views.client_view(seen, [0, 1, 2])
    ends = views.ends(view)
    np.testing.assert_array_equal(ends.count, [2, 2, 0])
    small, places = views.apart(views.messages(seen, ends), ends.count)
    np.testing.assert_array_equal(views.client_view(small, [0, 1]).row, places.row[:2])
    again = views.messages(small, places)
    np.testing.assert_array_equal(again.params["w"][:2], [[10, 30], [10, 30]])
    np.testing.assert_array_equal(again.delta["w"][:2], [[1, 4], [2, 5]])
    for one, other in zip(
        views.last_models(small, places), views.last_models(seen, view), strict=True
    ):
        np.testing.assert_array_equal(one["w"], other["w"])
