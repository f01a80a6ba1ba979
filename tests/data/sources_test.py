import pathlib

import pytest

from fljax import data
from fljax.data.sources import SOURCES

ROOT = pathlib.Path(__file__).parents[2] / "third_party"

_DRAWN = {"acs_shaped", "csv", "leaf_synthetic", "toy"}  # or one's own


def blocks_of(dataset):
    text = (ROOT / dataset / "METADATA").read_text()
    for block in text.strip().split("\n\n"):
        yield dict(line.split(": ", 1) for line in block.splitlines())


@pytest.mark.parametrize("dataset", sorted({source.dataset for source in SOURCES}))
def test_metadata_and_code_say_the_same(dataset):
    expected = [
        {
            "name": source.dataset,
            "file": source.filename,
            "url": source.url,
            "sha256": source.sha256 or "unpinned",
            "licence": source.licence,
            "citation": source.citation,
        }
        for source in SOURCES
        if source.dataset == dataset
    ]
    assert list(blocks_of(dataset)) == expected


@pytest.mark.parametrize("dataset", sorted({source.dataset for source in SOURCES}))
def test_every_licence_has_its_text_and_an_address(dataset):
    assert "https://" in (ROOT / dataset / "LICENSE").read_text()


@pytest.mark.parametrize("dataset", sorted({*data.names()} - _DRAWN))
def test_every_data_set_of_others_says_whose_it_is(dataset):
    names = {path.name for path in (ROOT / dataset).iterdir()}
    assert {"METADATA", "LICENSE"} <= names


def test_every_download_has_a_size_limit_and_a_secure_address():
    for source in SOURCES:
        assert source.url.startswith("https://")
        assert 0 < source.max_bytes <= 1 << 32
