"""One client's messages, taken from a transcript."""

import numpy as np
import pytest

from fljax import transcript


def test_exchange_takes_the_rounds_in_which_she_took_part(original):
    found = transcript.exchange(original(), 4)
    whole = original()
    np.testing.assert_array_equal(
        found.params["dense"]["kernel"], whole.params["dense"]["kernel"][[0, 1]]
    )
    np.testing.assert_array_equal(
        found.delta["dense"]["kernel"], whole.delta["dense"]["kernel"][[0, 1], [1, 0]]
    )
    once = transcript.exchange(whole, 3)
    assert once.params["dense"]["bias"].shape == (1, 1)
    np.testing.assert_array_equal(
        once.delta["dense"]["kernel"], whole.delta["dense"]["kernel"][[0], [0]]
    )


def test_exchange_with_a_client_who_sent_nothing_is_an_error(original):
    with pytest.raises(transcript.TranscriptError, match="client 7"):
        transcript.exchange(original(), 7)
