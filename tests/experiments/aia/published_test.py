"""Published numbers: under our names, and only beside what they were measured on."""

import pytest

from experiments.aia import published
from experiments.report.cards import Number
from fljax.driver.config import ConfigError

_ACCURACY = "aia_accuracy_percent"


def test_ours_of_table_2_is_the_subset_reconstruction_when_passive():
    beside = published.reference("table2", "medical", {})
    ours = beside.numbers["passive", "reconstruct_subset", _ACCURACY]
    assert ours == Number(94.13, 0.16)
    assert ("passive", "model", _ACCURACY) not in beside.numbers
    active = beside.numbers["active_10", "model", _ACCURACY]
    assert str(active) == "90.47 ± 5.12"


@pytest.mark.parametrize(
    ("table", "model", "defended"),
    [
        ("table1", "mlp", False),
        ("table2", "linear", False),
        ("table3", "mlp", True),
    ],
)
def test_a_table_says_what_it_was_measured_on(table, model, defended):
    beside = published.reference(table, "medical", {"data_name": "medical"})
    assert (beside.model, beside.defended) == (model, defended)
    assert beside.same_data
    assert (beside.table, beside.data) == (f"Table {table[-1]}", "Medical")


@pytest.mark.parametrize(
    ("data", "largest", "paper", "same"),
    [
        ("acs_income_LA_2018", None, "Income-L", True),
        ("acs_income_LA_2019", None, "Income-L", False),
        ("pums2016", None, "Income-L", False),
        ("acs_income_51_states_2018", 39133, "Income-A", True),
        ("acs_income_51_states_2018", None, "Income-A", False),
        ("acs_shaped", 39133, "Income-A", False),
    ],
)
def test_data_that_are_not_the_papers_only_stand_in(data, largest, paper, same):
    told = {"data_largest_state": largest}
    beside = published.reference("table1", data, told)
    assert (beside.data, beside.same_data) == (paper, same)
    assert beside.numbers["active_50", "model", _ACCURACY].mean in (94.31, 78.09)


def test_figure_2_is_found_by_the_point_of_the_sweep():
    beside = published.reference("figure2", "toy", {})
    number = beside.numbers["batch_size=64", "reconstruct_subset", _ACCURACY]
    assert number == Number(88.54, draws=5)


@pytest.mark.parametrize(
    ("table", "data", "flags"),
    [
        (None, "medical", {}),
        ("table1", "diabetes", {}),
        ("figure2", "medical", {}),
        ("table1", "medical", {"data_name": "csv"}),
    ],
    ids=["no table", "unlike data", "other column", "own file of that name"],
)
def test_there_may_be_nothing_to_compare_with(table, data, flags):
    assert published.reference(table, data, flags) is None


@pytest.mark.parametrize("table", ["table9", "table7", "", 7])
def test_a_table_that_the_paper_lacks_is_refused_with_those_it_has(table):
    for ask in (
        published.check_table,
        lambda name: published.reference(name, "medical", {}),
    ):
        with pytest.raises(ConfigError) as error:
            ask(table)
        assert str(error.value) == (
            "--paper_table: expected one of figure2, table1, table2, table3, "
            f"got {table!r}"
        )


def test_every_stored_table_has_a_title_and_every_column_a_name():
    for line in published.stored("diana2025"):
        assert line["table"] in published.TITLES
        assert line["dataset"] in published.NAMES
