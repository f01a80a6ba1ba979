"""Generated blocks by their names: the one list of them."""

from experiments.report.documents import (
    by_alpha,
    choosing,
    costs,
    defended,
    epsilons,
    example_clients,
    gaps,
    headline,
    knowing,
    means_of_five,
    members,
    overview,
    paper_items,
    papers,
    pictures,
    posteriors,
    readings,
    recovered,
    results,
    slopes,
    speed,
    stand_in,
    summed,
)
from fljax.driver.config import ConfigError

_ALONE = {
    "headline": headline.text,
    "defenses": defended.text,
    "overview": overview.text,
    "readings": readings.text,
    "stand_in": stand_in.text,
}
_FAMILIES = {
    "paper": (papers.text, paper_items.PAPERS),
    "results": (results.text, None),
    "benchmark": (speed.text, None),
    "knowledge": (knowing.text, None),
    "choice": (choosing.text, None),
    "membership": (members.text, None),
    "epsilon": (epsilons.text, None),
    "posterior": (posteriors.text, None),
    "rows": (recovered.text, None),
    "gaps": (gaps.text, pictures.PICTURES),
    "cost": (costs.text, None),
    "slopes": (slopes.text, None),
    "examples": (example_clients.text, None),
    "alphas": (by_alpha.text, None),
    "sums": (summed.text, None),
    "means_of_five": (means_of_five.text, None),
}


def make(name: str) -> str:
    """The Markdown of a block.

    Args:
      name: `headline`, `defenses`, `overview`, `readings`, `stand_in`, `paper.NAME`,
        `results.NAME`, `knowledge.NAME`, `choice.NAME`, `membership.NAME`,
        `epsilon.NAME`, `rows.NAME`, `sums.NAME`, `gaps.NAME`, `cost.NAME`,
        `slopes.NAME`, `examples.NAME`, `alphas.NAME`, `posterior.NAME`,
        `means_of_five.NAME` or `benchmark.NAME`, the name being that of a paper, a
        result, a picture or a benchmark.

    Raises:
      ConfigError: there is no such block.
    """
    if name in _ALONE:
        return _ALONE[name]()
    family, _, of = name.partition(".")
    if family not in _FAMILIES:
        raise ConfigError(
            f"expected a block named {', '.join(_ALONE)}, "
            f"{' or '.join(f'{each}.NAME' for each in _FAMILIES)}, got {name!r}"
        )
    text, known = _FAMILIES[family]
    if known is not None and of not in known:
        raise ConfigError(f"{name}: expected one of {', '.join(known)}, got {of!r}")
    return text(of)
