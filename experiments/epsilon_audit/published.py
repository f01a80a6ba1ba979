"""What others proved of what they account, see docs/epsilon.md for their settings."""

from typing import NamedTuple


class Published(NamedTuple):
    """An audit of others.

    Attributes:
      who: and where it stands.
      what: is audited, and with which canaries.
      audited: epsilon from below.
      accounted: epsilon from above.
    """

    who: str
    what: str
    audited: float
    accounted: float


PUBLISHED = (
    Published("Privacy Meter", "one training, mislabelled rows", 0.418, 68.5),
    Published("Privacy Meter", "one training, rows as they are", 0.126, 68.5),
    Published("one_round_auditing", "one training", 0.142, 100.0),
    Published(
        "Annamalai & De Cristofaro 2024 (arXiv 2405.14106)",
        "many trainings from a worst-case start, 1,000 rows of MNIST; second-hand",
        7.21, 10.0,
    ),
    Published(
        "Annamalai & De Cristofaro 2024 (arXiv 2405.14106)",
        "the same, all rows of CIFAR-10; second-hand", 4.96, 10.0,
    ),
)  # fmt: skip
