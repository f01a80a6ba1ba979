"""How much less than everything an adversary knows of clients' rows: flags."""

import dataclasses

from fljax.driver.option import option


@dataclasses.dataclass(frozen=True, kw_only=True)
class KnowledgeConfig:
    """Prefix `knowledge`. Clients train on their rows as they are."""

    noise: float = option(
        0.0, "share of public cells that have another row's value", min=0, max=1
    )
    missing: float = option(
        0.0,
        "share of public cells that are not known; the adversary puts the column's mean, "
        "or its most frequent category, in their place",
        min=0,
        max=1,
    )
    rows: float = option(
        1.0,
        "share of a client's rows that are known and scored; the adversary puts rows of "
        "the same population in the place of the others",
        above=0,
        max=1,
    )
    targets: float = option(
        1.0,
        "share of known rows whose target is known; the adversary puts what other "
        "people's rows say of it, by the public columns, in the place of the others",
        min=0,
        max=1,
    )
