"""An item of a paper that a kept result stands beside."""

from typing import NamedTuple

SMALL = "Other data, few clients and rounds: a quick check, not the paper's setting."
PICTURES = "The paper has pictures, no numbers."


class Item(NamedTuple):
    """A table, figure or theorem of a paper.

    Attributes:
      title: its heading.
      result: name of the result, which is that of its flagfile.
      why: what a reader must know of the comparison, in a sentence or two; of a
        flagfile without a result its reason is said, too.
    """

    title: str
    result: str
    why: str = ""
