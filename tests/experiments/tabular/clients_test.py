"""From flags to clients: which rows they get, and what they are to predict."""

import warnings

import numpy as np
import pytest

from experiments.tabular import clients, settings
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
    with pytest.raises(
        ConfigError, match="--data_seed: diabetes has no such option, it has"
    ):
        clients.load_table(settings.DataConfig(seed=1))
    with pytest.raises(ConfigError, match="--data_path: .* choose --data_name=csv"):
        clients.load_table(settings.DataConfig(path="people.csv"))


def test_more_sampled_rows_than_there_are_is_one_line():
    split = settings.PartitionConfig(kind="sampled", clients=4, rows=10**6)
    with pytest.raises(ConfigError, match="--partition_rows: expected an integer in"):
        _deal(split, seeds=(0,))


def _hospitals(tmp_path, **options):
    """60 rows of three hospitals, which are no input."""
    rng = np.random.default_rng(0)
    lines = [
        f"{h};{rng.integers(20, 60)};{rng.integers(2)};{rng.normal():.2f}"
        for h in ["Süd"] * 30 + ["Nord"] * 20 + [""] + ["Ost"] * 9
    ]
    path = tmp_path / "sites.csv"
    path.write_text("\n".join(["hospital;age;ill;pay", *lines]), encoding="latin-1")
    config = settings.DataConfig(
        name="csv", path=str(path), target="pay", sensitive="ill", drop=("hospital",),
        separator=";", encoding="latin-1",
    )  # fmt: skip
    split = settings.PartitionConfig(kind="by_column", column="hospital", **options)
    table = clients.load_table(config)
    return clients.deal(table, config, settings.ModelConfig(), split, (3, 4)).clients


def test_clients_of_a_column_have_its_values_as_names_and_not_as_inputs(tmp_path):
    with pytest.warns(UserWarning, match="--partition_column=hospital: 1 rows without"):
        dealt = _hospitals(tmp_path)  # every value, unless --partition_clients
    assert dealt.names == (("hospital: Süd", "hospital: Nord", "hospital: Ost"),) * 2
    assert dealt.datasets[0].numeric_names == ("age", "ill_1")
    for dataset, sizes in zip(dealt.datasets, dealt.sizes, strict=True):
        counts = dataset.train.frame["hospital"].value_counts()
        np.testing.assert_array_equal(sizes, counts[["Süd", "Nord", "Ost"]])
    assert _deal(settings.PartitionConfig(), seeds=(0,)).clients.names == ()


def test_rows_of_other_values_than_the_named_ones_are_nobodys(tmp_path):
    with pytest.warns(UserWarning, match="1 rows without"):
        dealt = _hospitals(tmp_path, values=("Ost", "Süd"))
    assert dealt.names == (("hospital: Süd", "hospital: Ost"),) * 2
    with (
        pytest.raises(ConfigError, match="--partition_values: expected values of hosp"),
        warnings.catch_warnings(action="ignore"),
    ):
        _hospitals(tmp_path, values=("West",))


def test_clients_that_are_dealt_by_what_is_inferred_are_warned_of():
    config = settings.DataConfig()
    table = clients.load_table(config)
    sensitive = data.prepare(table, data.preset("diabetes", "neural"), seed=0).attribute
    split = settings.PartitionConfig(kind="by_column", column=sensitive.name)
    with pytest.warns(UserWarning, match=f"={sensitive.name} is the sensitive column"):
        clients.deal(table, config, settings.ModelConfig(), split, (0,))


def test_values_without_a_client_are_told(tmp_path):
    said = "rows have no client: hospital has 3 values, --partition_clients=2"
    with (
        pytest.warns(UserWarning, match="1 rows without"),
        pytest.warns(UserWarning, match=said),
    ):
        _hospitals(tmp_path, clients=2)


def test_clients_without_a_value_are_told(tmp_path):
    said = "--partition_clients=9: hospital has 3 values, of which each makes a client"
    with (
        pytest.warns(UserWarning, match="1 rows without"),
        pytest.warns(UserWarning, match=said),
    ):
        assert len(_hospitals(tmp_path, clients=9).names[0]) == 3
