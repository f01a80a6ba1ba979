"""The overview of tables and figures says no more than the kept results do."""

import pytest

from experiments.report import commands
from experiments.report.documents import overview, paper_items
from experiments.report.documents.overview import Item
from fljax.driver.config import ConfigError


def test_items_are_those_of_the_papers_and_name_their_flagfiles():
    told = overview.items()
    assert set(told) == set(paper_items.PAPERS) == set(overview.PAGES)
    assert sum(map(len, told.values())) == 27
    for paper, items in told.items():
        known = {item.result for item in paper_items.PAPERS[paper]}
        for item in items:
            assert set(item.results) <= known, item
            assert all(
                (commands.FLAGFILES / f"{r}.flags").is_file() for r in item.results
            )


@pytest.mark.parametrize(
    ("changes", "status", "measured"),
    [
        ({}, overview.DONE, 30),
        ({"left": "some"}, overview.PARTLY, 30),
        ({"lacking": "some"}, overview.REST, 30),
        ({"lacking": "some", "less": "some"}, overview.LESS, 30),
        ({"less": "some", "left": "some"}, overview.PARTLY, 30),
        ({"lacking": "some", "stands_in": "others"}, overview.OTHER, 30),
        ({"left": "some", "stands_in": "others"}, overview.PARTLY, 30),
        ({"results": []}, overview.MISSING, 0),
        ({"results": [], "elsewhere": "there", "left": "some"}, overview.PARTLY, 0),
    ],
)
def test_how_far_an_item_is_follows_from_what_is_kept(changes, status, measured):
    item = Item("Table VI", ["accounting.table6"], "table6")._replace(**changes)
    found = overview.standing("wei2021", item)
    assert found[:3] == (status, 30, measured)


def test_an_item_is_without_no_more_than_it_says():
    item = Item("Table I", ["fed_cdp.table1"], "table1", lacking="some")
    with pytest.raises(ConfigError, match="of 10 numbers that could be had: 4 are"):
        overview.standing("wei2021", item)
    found = item._replace(without=["lfw", "ms_per_local_iteration"])
    assert overview.standing("wei2021", found)[:3] == (overview.REST, 10, 4)
    with pytest.raises(ConfigError, match="of 3 numbers that could be had: 4 are"):
        overview.standing("wei2021", found._replace(without=[*found.without, "mnist"]))


def test_no_item_is_done_that_lacks_a_published_number():
    item = Item("Table IV", ["fed_cdp.table4.breast_cancer"], "table4")
    with pytest.raises(
        ConfigError, match=r"Table IV: expected what is left.* of 30 .*: 6 are"
    ):
        overview.standing("wei2021", item)


def test_a_number_that_two_readings_stand_beside_counts_once():
    def measured(*results):
        item = Item("Table II", results, "table2", left="some")
        return overview.standing("wei2021", item).measured

    printed, coded = "fed_cdp.table2", "fed_cdp.committed"
    assert measured(printed) and measured(coded)
    assert measured(printed, coded) < measured(printed) + measured(coded)


def test_a_result_of_several_seeds_counts_before_one_of_a_single_one(monkeypatch):
    one, three = "fed_cdp.table2.thousand", "fed_cdp.table2.thousand_ten"
    item = Item("Table II", ["fed_cdp.table2"], "table2", left="some")

    def single(*names):
        monkeypatch.setattr(overview.kept, "names", lambda: [*names])
        found = overview.standing("wei2021", item)
        return found.measured, found.verdicts["single seed"]

    measured, ones = single(one)
    assert single(one, three) == single(three, one) == (measured, ones - 1)


def test_the_multiplier_of_the_code_makes_no_second_number_of_a_clip(monkeypatch):
    both = ["fed_cdp.table4.adult", "fed_cdp.committed.table4.adult"]
    monkeypatch.setattr(overview.kept, "names", lambda: both)
    results = ["fed_cdp.table4.adult", "fed_cdp.committed"]
    item = Item("Table IV", results, "table4", left="some")
    assert overview.standing("wei2021", item).measured == 6


def test_numbers_beside_another_table_do_not_count():
    item = Item("Table III", ["fed_cdp.table2"], "table3", left="some")
    assert overview.standing("wei2021", item).measured == 0
