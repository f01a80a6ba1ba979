"""Flags of several processes that do not fit each other."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--num_processes=2"], "need --coordinator=HOST:PORT"),
        (["--coordinator=auto", "--process_id=0"], "need --coordinator=HOST:PORT"),
        (["--coordinator=127.0.0.1:1"], "needs --num_processes"),
        (
            ["--coordinator=127.0.0.1:1", "--num_processes=2", "--process_id=2"],
            "a smaller --process_id, got 2 and 2",
        ),
    ],
)
def test_flags_that_do_not_fit_are_refused_in_one_line(run, arguments, message):
    code, _, said = run(*arguments)
    assert code == 2
    assert message in said
    assert said.count("\n") == 1
