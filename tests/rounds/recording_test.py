"""Who takes part in a round, and what of it the transcript keeps."""

import jax
import numpy as np

from fljax import participation, schedule


def test_a_round_averages_its_participants_only(federation):
    chosen = participation.uniform(np.random.default_rng(0), 5, 4, 0.4)
    plan = schedule.build(
        federation.sizes, num_rounds=4, batch_size=2, participants=chosen, shuffle=False
    )
    run = federation.train(plan)
    np.testing.assert_array_equal(run.transcript.client, chosen)
    sent = [*federation.flat(run.transcript.params), federation.flat(run.server.params)]
    for t, members in enumerate(chosen):
        mean = federation.mean_delta(run, t, np.array(federation.sizes)[members])
        np.testing.assert_allclose(sent[t + 1], sent[t] - mean, atol=1e-6)


def test_an_empty_round_leaves_the_model_as_it_is(federation):
    chosen = [np.array([0, 3]), np.array([], int), np.array([2])]
    plan = schedule.build(
        federation.sizes, num_rounds=3, batch_size=2, participants=chosen, shuffle=False
    )
    run = federation.train(plan)
    np.testing.assert_array_equal(run.transcript.client, [[0, 3], [-1, -1], [2, -1]])
    sent = federation.flat(run.transcript.params)
    delta = federation.flat(run.transcript.delta)
    np.testing.assert_array_equal(sent[2], sent[1])
    assert (sent[1] != sent[0]).all()
    assert not delta[1].any() and not delta[2, 1].any()
    assert delta[0].all() and delta[2, 0].all()
    assert run.loss[1] == 0.0


def test_a_training_in_which_nobody_takes_part_changes_nothing(federation):
    plan = schedule.build(
        federation.sizes, num_rounds=2, batch_size=2, participants=[np.array([], int)]
    )
    run = federation.train(plan)
    np.testing.assert_array_equal(
        federation.flat(run.server.params), federation.flat(federation.params())
    )


def test_the_transcript_keeps_what_was_asked_for(federation):
    how = {"num_rounds": 4, "batch_size": 2, "shuffle": False}
    whole = federation.train(schedule.build(federation.sizes, **how)).transcript
    part = federation.train(
        schedule.build(
            federation.sizes, record_rounds=[1, 3], record_clients=[4, 0], **how
        )
    ).transcript
    np.testing.assert_array_equal(part.round, [1, 3])
    np.testing.assert_array_equal(part.client, [[0, 4], [0, 4]])
    np.testing.assert_allclose(
        federation.flat(part.params), federation.flat(whole.params)[[1, 3]], atol=1e-6
    )
    np.testing.assert_allclose(
        federation.flat(part.delta),
        federation.flat(whole.delta)[[1, 3]][:, [0, 4]],
        atol=1e-6,
    )


def test_rounds_not_yet_done_are_zeros(federation):
    plan = schedule.build(federation.sizes, num_rounds=4, batch_size=2, shuffle=False)
    run = federation.train(plan, stop=2)
    assert run.server.round == 2
    assert not federation.flat(run.transcript.params)[2:].any()
    assert not federation.flat(run.transcript.delta)[2:].any()
    assert not run.loss[2:].any()
    assert run.loss[:2].all()


def test_a_stop_beyond_the_last_round_is_the_last_round(federation):
    plan = schedule.build(federation.sizes, num_rounds=4, batch_size=2, shuffle=False)
    found, expected = federation.train(plan, stop=9), federation.train(plan)
    assert found.server.round == 4
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_a_training_of_which_nothing_is_recorded_ends_at_the_same_model(federation):
    how = {"num_rounds": 3, "batch_size": 2, "shuffle": False}
    found = federation.train(
        schedule.build(federation.sizes, record_rounds=[], record_clients=[], **how)
    )
    expected = federation.train(schedule.build(federation.sizes, **how))
    np.testing.assert_allclose(
        federation.flat(found.server.params),
        federation.flat(expected.server.params),
        atol=1e-6,
    )
