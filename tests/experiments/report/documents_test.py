"""Generated blocks of documents: filled between their markers, and up to date."""

import pytest

from experiments.report import commands, documents, kept
from experiments.report.documents import blocks, paper_items
from fljax.driver.config import ConfigError

_BLOCK = "<!-- generated: headline -->\n{}<!-- end -->\n"


def test_only_what_stands_between_markers_is_written():
    page = "# Title\n\n" + _BLOCK.format("old\n") + "\ntext\n"
    now = documents.filled(page, lambda name: f"made of {name}\n")
    assert now == "# Title\n\n" + _BLOCK.format("made of headline\n") + "\ntext\n"
    assert documents.filled(now, lambda name: f"made of {name}") == now
    assert documents.filled("no block", blocks.make) == "no block"


_ALONE = {
    "no end": "<!-- generated: headline -->\n",
    "no begin": "text\n<!-- end -->\n",
    "two begins": "<!-- generated: headline -->\n" * 2 + "<!-- end -->\n",
    "no name": "<!-- generated -->\n<!-- end -->\n",
}


@pytest.mark.parametrize("page", _ALONE.values(), ids=_ALONE)
def test_a_marker_alone_is_refused(page):
    with pytest.raises(ConfigError, match="to be followed by one <!-- end -->"):
        documents.filled(page, str)


@pytest.mark.parametrize("name", ["nothing", "paper.nothing", "results.nothing"])
def test_a_name_that_no_block_has_is_refused(name):
    with pytest.raises(ConfigError, match="nothing"):
        blocks.make(name)


def test_a_stale_page_is_found_and_written(tmp_path):
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    page = tmp_path / "docs" / "deep" / "page.md"
    page.write_text("<!-- generated: results.accounting.table6 -->\n<!-- end -->\n")
    (tmp_path / "README.md").write_text("nothing generated\n")
    assert documents.write(tmp_path) == [page]
    assert "| 0.8228 |" in page.read_text()
    assert documents.write(tmp_path) == []
    page.write_text(page.read_text().replace("0.8228", "0.8229", 1))
    assert [path for path, _ in documents.stale(tmp_path)] == [page]
    page.write_text("<!-- end -->\n")
    with pytest.raises(ConfigError, match=r"^docs/deep/page.md: expected each"):
        documents.write(tmp_path)


@pytest.mark.long("every page is made anew")
def test_committed_documents_say_what_the_results_give():
    stale = [path.name for path, _ in documents.stale()]
    assert not stale, f"python -m experiments.report --docs writes {', '.join(stale)}"


@pytest.mark.parametrize("paper", paper_items.PAPERS)
def test_every_item_of_a_paper_has_a_result_or_a_reason(paper):
    items = paper_items.PAPERS[paper]
    told = blocks.make(f"paper.{paper}").split("\n\n")[0].splitlines()[2:]
    assert len(told) == len(items)
    have = {commands.flagfile(name) for name in kept.names()}
    for line, item in zip(told, items, strict=True):
        _, command, verdicts, why = line.strip("| ").replace("\\|", "").split(" | ")
        assert f"/{item.result}.flags" in command and why
        assert verdicts and (verdicts != "not run") == (item.result in have)


def test_flagfiles_of_papers_are_items():
    stems = {path.name.removesuffix(".flags") for path in commands.FLAGFILES.iterdir()}
    items = [item.result for paper in paper_items.PAPERS.values() for item in paper]
    ours = {"aia.defenses.diabetes", "aia.diabetes.mlp", "audit.diabetes"}
    ours |= {"aia.trajectory.medical", "aia.knowledge.medical", "aia.clients.medical"}
    data = "medical", "diabetes", "pums2016"
    ours |= {"aia.breast_cancer", *(f"aia.sums.{each}" for each in data)}
    ours |= {"aia.knowledge.diabetes", "choose_defense.diabetes"}
    ours |= {"label_distribution.digits.epochs", "rows_of_sums.cifar10"}
    ours |= {"rows.adult", "rows.adult.large", "rows.adult.steps", "rows.adult.epoch"}
    ours |= {"rows.diabetes.rounds", "rows.california", "rows.adult.layernorm"}
    data = "diabetes", "breast_cancer", "digits", "medical"
    ours |= {f"membership.{each}" for each in data}
    audited = "diabetes", "medical", "canaries", "rows"
    ours |= {f"epsilon_audit.{each}" for each in audited}
    assert stems - set(items) == ours
    assert len(set(items)) == len(items)


def test_a_flagfile_without_a_result_says_why():
    said = blocks.make("results.aia.table1.income_a")
    assert said.startswith(
        "There is no result of `aia.table1.income_a.flags` as it stands"
    )
    assert kept.reasons()["aia.table1.income_a"].strip() in said


@pytest.mark.parametrize("name", ["headline", "defenses"])
def test_tables_of_several_attacks_are_small(name):
    lines = [line for line in blocks.make(name).splitlines() if line[:1] == "|"]
    assert 5 < len(lines) <= 15
