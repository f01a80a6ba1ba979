"""From flags to clients: which rows they get, and what they are to predict."""

import numpy as np
import pytest

from experiments.aia import clients, settings
from fljax import data
from fljax.driver.config import ConfigError

_DATA = settings.DataConfig(name="acs_shaped", task="binary", largest_state=600)


def _deal(split, seeds=(0, 1)):
    table = clients.load_table(_DATA)
    return clients.deal(table, _DATA, settings.ModelConfig(), split, seeds)


def test_sampled_clients_hold_their_rows_with_labels_of_the_median():
    split = settings.PartitionConfig(kind="sampled", clients=4, rows=30)
    dealt = _deal(split).clients
    np.testing.assert_array_equal(dealt.sizes, np.full((2, 4), 30))
    assert dealt.rows.y.shape == (2, 120)
    assert set(np.unique(dealt.rows.y)) == {0.0, 1.0}
    assert 0.3 < dealt.rows.y.mean() < 0.7
    assert not np.array_equal(dealt.rows.y[0], dealt.rows.y[1])


def test_the_seed_of_generated_data_is_a_flag():
    tables = [
        clients.load_table(settings.DataConfig(name="toy", seed=seed))
        for seed in (1, 2)
    ]
    assert not tables[0].frame.equals(tables[1].frame)
    with pytest.raises(data.DataError, match="diabetes: unknown option 'seed'"):
        clients.load_table(settings.DataConfig(seed=1))


def test_more_sampled_rows_than_there_are_is_one_line():
    split = settings.PartitionConfig(kind="sampled", clients=4, rows=10**6)
    with pytest.raises(ConfigError, match="--partition_kind=sampled: rows_per_client"):
        _deal(split, seeds=(0,))
