"""A client's training does not depend on names, on padding or on other clients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fljax import schedule


def _assert_equal(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.slow
def test_relabelling_the_clients_relabels_the_transcript_and_nothing_else(
    training, assert_close
):
    order = [3, 0, 8, 2, 5, 7, 1, 6, 4]  # new client i is old client order[i]
    rows, starts = training.rows(), np.cumsum([0, *training.sizes])
    index = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in order])
    moved = jax.tree.map(lambda leaf: leaf[index], rows)
    found = training.train(
        schedule.build([training.sizes[c] for c in order], lanes=3, **training.stored),
        rows=moved,
    )
    expected = training.train(
        schedule.build(training.sizes, lanes=3, **training.stored)
    )
    assert_close(found.server, expected.server, rtol=1e-6)
    assert_close(found.loss, expected.loss, rtol=1e-6)
    relabelled = jax.tree.map(
        lambda leaf: leaf[:, np.array(order)], expected.transcript.delta
    )
    assert_close(found.transcript.delta, relabelled, rtol=1e-5)


def test_rows_that_belong_to_nobody_do_not_matter(training):
    plan = schedule.build(training.sizes, **training.shuffled)
    more = jax.tree.map(
        lambda leaf: jnp.concatenate([leaf, jnp.full((5, *leaf.shape[1:]), jnp.nan)]),
        training.rows(),
    )
    _assert_equal(training.train(plan, rows=more), training.train(plan))


def test_a_diverging_client_leaves_the_messages_of_the_others_alone(training):
    rows, start = training.rows(), sum(training.sizes[:3])
    broken = rows._replace(y=rows.y.at[start : start + training.sizes[3]].set(jnp.nan))
    how = {"num_rounds": 1, "batch_size": 4, "shuffle": False}
    plan = schedule.build(training.sizes, lanes=3, **how)
    found = training.train(plan, rows=broken).transcript.delta
    expected = training.train(plan).transcript.delta
    others = np.array([c for c in range(len(training.sizes)) if c != 3])
    _assert_equal(
        jax.tree.map(lambda leaf: leaf[:, others], found),
        jax.tree.map(lambda leaf: leaf[:, others], expected),
    )
    assert not np.isfinite(found["first"][0, 3]).any()
