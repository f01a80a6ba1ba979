"""Reproduction cards: rows and a manifest beside published numbers, as documents.

    blocks = report.compose_blocks([report.card(name, rows, manifest, reference)])
    page = report.to_html(blocks)
    text = report.to_markdown(blocks, folder="figures")

`lines` and `verdict` hold the rules, `compose` the order of a report, `web` and
`markdown` the two file formats.
"""

from experiments.report.cards import Card, Judged, Reference, card
from experiments.report.compose import counts
from experiments.report.compose import report as compose_blocks
from experiments.report.document import pictures
from experiments.report.markdown import render as to_markdown
from experiments.report.verdict import NOT_COMPARABLE, Number
from experiments.report.web import render as to_html

__all__ = [
    "NOT_COMPARABLE",
    "Card",
    "Judged",
    "Number",
    "Reference",
    "card",
    "compose_blocks",
    "counts",
    "pictures",
    "to_html",
    "to_markdown",
]
