"""Numbers of the papers, from `published.csv`."""

import csv
import pathlib

_FILE = pathlib.Path(__file__).with_name("published.csv")


def stored(paper: str) -> list[dict[str, str]]:
    """All stored lines of a paper: table, dataset, setting, method, metric, value."""
    with _FILE.open() as file:
        return [line for line in csv.DictReader(file) if line["paper"] == paper]
