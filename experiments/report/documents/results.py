"""One kept result: what was run, and its scores beside the published numbers."""

from experiments.report import gains, kept, markdown, tables
from experiments.report.cards import Card, Judged
from experiments.report.documents import writing
from experiments.report.programs import PROGRAMS


def text(name: str) -> str:
    """A result with its command; of a flagfile without one, why it has none.

    Args:
      name: of the result or the flagfile.

    Raises:
      ConfigError: there is neither.
    """
    if name in kept.reasons():
        return missing(name)
    return of_card(kept.shown(name))


def of_card(card: Card) -> str:
    """Command, scores, what its defense promises, and by what it was made."""
    scores, others = tables.results(card._replace(judged=_told(card)))
    found = [each for each in (scores or others, tables.defense(card)) if each]
    shown = [writing.table(t.header, t.body, t.numbers) for t in found]
    return "\n\n".join([writing.command(card.manifest["command"]), *shown, _made(card)])


def missing(name: str) -> str:
    """Why a flagfile has no result."""
    told = markdown.escape(kept.reasons()[name])
    return f"No result of `experiments/flags/{name}.flags` is kept. {told}"


def _told(card: Card) -> list[Judged]:
    """What has a published number or by which an attack is judged; all if nothing."""
    program = PROGRAMS[card.manifest["experiment"]]
    metrics = {gain.measure.metric for gain in program.gains}
    metrics |= {each.line.row.metric for each in card.compared}
    found = [
        each
        for each in card.judged
        if each.line.row.metric in metrics
        and not each.line.row.point.startswith(gains.PART)
    ]
    return found or list(card.judged)


def _made(card: Card) -> str:
    packages = card.manifest["packages"]
    seeds = len(card.manifest["flags"].get("seeds") or [0])
    return (
        f"{seeds} seed{'s' * (seeds > 1)}; fljax {packages['fljax']}, code "
        f"{card.manifest['code']['fljax'][:8]}, jax {packages['jax']}, "
        f"{card.manifest['machine']}."
    )
