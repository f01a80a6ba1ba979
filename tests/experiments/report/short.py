"""What a report says in short of rows."""

from experiments.report import in_short
from experiments.report.cards import card


def a_card(name, made, **manifest):
    """A run beside no paper."""
    return card(name, made, manifest, None)


def sentences(*cards):
    """Subject -> text."""
    return {each.about: each.text for each in in_short.sentences(cards)}


def only(*cards):
    """What is said of their one subject."""
    (said,) = sentences(*cards).values()
    return said
