"""One kept result: what was run, and its scores beside the published numbers."""

from experiments.report import kept, markdown, tables
from experiments.report.cards import Card
from experiments.report.documents import writing
from experiments.report.tables import Table


def text(name: str) -> str:
    """A result with its command; of a flagfile without one, why it has none.

    Args:
      name: of the result or the flagfile.

    Raises:
      ConfigError: there is neither.
    """
    if name in kept.reasons():
        return missing(name)
    card = kept.shown(name)
    return "\n\n".join(
        [writing.command(card.manifest["command"]), *(_written(t) for t in _of(card))]
        + [made(card)]
    )


def missing(name: str) -> str:
    """Why a flagfile has no result."""
    told = markdown.escape(kept.reasons()[name])
    return f"No result of `experiments/flags/{name}.flags` is kept. {told}"


def scores(card: Card) -> str:
    """Its scores alone; other measurements where it has no score."""
    return _written(_of(card)[0])


def made(card: Card) -> str:
    """By what it was made."""
    packages, seeds = card.manifest["packages"], {row.seed for row in card.rows}
    return (
        f"{len(seeds)} seed{'s' * (len(seeds) > 1)}; fljax {packages['fljax']}, code "
        f"{card.manifest['code']['fljax'][:8]}, jax {packages['jax']}, "
        f"{card.manifest['machine']}."
    )


def _of(card: Card) -> list[Table]:
    found = tables.results(card)
    return [each for each in (found[0] or found[1], tables.defense(card)) if each]


def _written(each: Table) -> str:
    return writing.table(each.header, each.body, each.numbers)
