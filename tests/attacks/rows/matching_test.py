"""Gradient matching: what it reads, and that the rows of its searches are put in order."""

import jax
import numpy as np
import pytest

from fljax.attacks.rows import matching
from fljax.attacks.rows.matching import Pool, recover

_POOL = Pool(members=6, iterations=400)


def _agreement(asked, raw: np.ndarray) -> float:
    """Percent of categories in which rows agree, matched as well as they can be."""
    columns = [list(group.columns) for group in asked.schema.groups]
    same = [(raw[:, None, at] == asked.raw[None, :, at]).all(axis=2) for at in columns]
    share = np.mean(same, axis=0)
    pairs = matching.optimize.linear_sum_assignment(-share)
    return 100 * share[pairs].mean()


@pytest.mark.slow
@pytest.mark.parametrize("network", [{}, {"activation": "gelu", "norm": "layernorm"}])
def test_categories_are_read_from_networks_of_any_kind(problem, network):
    asked = problem((64, 64), 2, 0, **network)
    sent = asked.params, asked.message(), asked.loss_fn, asked.schema
    found = recover(*sent, asked.y, pool=_POOL)
    others = problem((8,), 2, 1).raw
    assert found.raw.shape == asked.raw.shape and list(found.y) == list(asked.y)
    assert _agreement(asked, found.raw) > 95 and _agreement(asked, others) < 75
    assert found.explained > 0.9


def test_rows_of_searches_are_pooled_in_one_order(problem):
    schema = problem((8,), 1, 0).schema
    raw = problem((8,), 1, 0).raw
    x = schema.encode(raw).astype(float)
    members = np.stack([x, x[::-1], x[[1, 0, 3, 2]]])
    wrong = members.copy()
    for member, row in enumerate([0, 1, 2]):  # another one in each
        wrong[member, row, 10:] = [2, 3]
    np.testing.assert_allclose(matching._pooled(schema, wrong, wrong[0]), x)


@pytest.mark.slow
def test_a_search_starts_where_its_seed_says(problem):
    asked = problem((16, 16), 2, 1)
    sent = asked.params, asked.message(), asked.loss_fn, asked.schema, asked.y
    some = Pool(members=2, iterations=20)
    first, again, other = (recover(*sent, seed=s, pool=some).raw for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_message_that_says_nothing_or_is_none_gives_no_rows(problem):
    asked = problem((8,), 2, 0)
    about = asked.loss_fn, asked.schema, asked.y
    nothing = jax.tree.map(np.zeros_like, asked.message())
    assert len(recover(asked.params, nothing, *about, pool=_POOL).raw) == 0
    broken = jax.tree.map(lambda leaf: leaf * np.nan, asked.message())
    with pytest.raises(ValueError, match="message: expected finite numbers"):
        recover(asked.params, broken, *about, pool=_POOL)


def test_a_pool_of_none_is_refused(problem):
    asked = problem((8,), 2, 0)
    sent = asked.params, asked.message(), asked.loss_fn, asked.schema, asked.y
    with pytest.raises(ValueError, match="pool: expected counts of 1 or more"):
        recover(*sent, pool=Pool(members=0))
