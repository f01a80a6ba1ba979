"""The table of a Fed-CDP run for the screen."""

import math
import statistics
from collections.abc import Sequence

from rich.table import Table

from experiments.fed_cdp import methods, published
from experiments.fed_cdp.published import ACCURACY, MILLISECONDS
from experiments.fed_cdp.reporting import Point
from experiments.fed_cdp.settings import Settings
from fljax.driver import screen_tables
from fljax.results import Row, Summary, summarise


def table(settings: Settings, found: Sequence[Row], points: Sequence[Point]) -> Table:
    """One line per point: accuracy beside majority and paper, and epsilons."""
    shown = screen_tables.empty()
    screen_tables.add_texts(shown, "method")
    shown.add_column("point", overflow="fold", min_width=13)
    beside = published.heading(found[0].data)
    screen_tables.add_numbers(
        shown, "rate", "accuracy % [95 %]", "major.", beside, "eps as\nprinted",
        "eps of\nnoise", "eps re-\ncomm.", "ms per\niter.\n(paper)", "drop-\nped",
    )  # fmt: skip
    means = {
        (s.row.defense, s.row.attack, s.row.point, s.row.metric): s
        for s in summarise(found)
    }
    for point in points:
        name = point.variant.name

        def mean(metric, attack=name, point=point) -> Summary | None:
            return means.get((str(point.trial.spec), attack, point.label, metric))

        drawn = [methods.largest_epsilon(each) for each in point.promises]
        dropped = mean("dropped_examples")
        shown.add_row(
            name,
            point.label.replace(";", " "),  # breaks there
            f"{point.trial.rate:g}",
            _interval(mean(ACCURACY)),
            _number(mean(ACCURACY, "majority")),
            _text(paper(settings, point, ACCURACY), ".1f"),
            _text(_said(point, "printed"), ".4g"),
            _text(drawn[0] if drawn else None, ".4g"),
            _text(_said(point, "recommended"), ".4g"),
            _beside(
                _mean([t.milliseconds for t in point.trained]),
                paper(settings, point, MILLISECONDS),
            ),
            "" if dropped is None else f"{dropped.estimate.mean:g}",
        )
    return shown


def paper(settings: Settings, point: Point, metric: str) -> float | None:
    """What Wei et al. (2021) print for a point, if anything."""
    run = settings.run
    flags = {"paper_table": run.paper_table, "defense": run.defense}
    found = published.beside(flags, settings.data.name)
    return found.get((point.label, point.variant.name, metric))


def _mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _said(point: Point, way: str) -> float | None:
    """The first epsilon of a way, which is that of all rounds."""
    chosen = (s.epsilon for s in point.statements if s.way == way)
    return next(chosen, None)


def _interval(s: Summary | None) -> str:
    return "" if s is None else screen_tables.interval(s.shown, ".1f")


def _number(s: Summary | None) -> str:
    return "" if s is None else f"{s.estimate.mean:.1f}"


def _beside(ours: float | None, theirs: float | None) -> str:
    return _text(ours, ".3g") + ("" if theirs is None else f" ({theirs:g})")


def _text(value: float | None, form: str) -> str:
    if value is None:
        return ""
    return format(value, form) if math.isfinite(value) else "infinite"
