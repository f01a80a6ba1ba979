"""What a Fed-CDP run leaves behind: rows, a table for the screen, and figures."""

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from experiments.fed_cdp import clients, methods, propositions, published
from experiments.fed_cdp.clients import Task
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.published import (
    ACCURACY,
    EPSILON,
    FINAL,
    MILLISECONDS,
    TUNED,
)
from experiments.fed_cdp.settings import Settings
from experiments.fed_cdp.training import Trained
from experiments.report.figures import drawing
from fljax.defenses import specs
from fljax.driver import screen_tables
from fljax.privacy import Promise, Statement
from fljax.results import Labels, Row, Summary, summarise

VALIDATION = "validation_accuracy_percent"
NORM = "gradient_norm"
_EXPERIMENT = "fed_cdp"


class Point(NamedTuple):
    """One cell of a table: a variant with one defense.

    Attributes:
      variant: what was trained.
      trial: the defense, and the learning rate that was chosen.
      label: of the point.
      tried: learning rate -> mean validation accuracy over the tuning seeds.
      trained: one per seed.
      statements: epsilons of the training's numbers.
      promises: epsilons of the noise itself.
    """

    variant: Variant
    trial: Trial
    label: str
    tried: dict[float, float]
    trained: Sequence[Trained]
    statements: Sequence[Statement]
    promises: Sequence[Promise]


def rows(settings: Settings, task: Task, points: Sequence[Point]) -> list[Row]:
    """Every number, point by point."""
    found = []
    for point in points:
        for seed, trained in zip(settings.run.seeds, point.trained, strict=True):
            found += _of_training(task, point, seed, trained)
        found += _of_accounts(settings, task, point)
    if settings.run.propositions:
        for variant in {p.variant[1:]: p.variant for p in points}.values():
            found += _of_sampling(settings, task, variant)
    return found


def _labels(task: Task, point: Point) -> Labels:
    text = str(point.trial.spec)
    return Labels(_EXPERIMENT, task.name, task.model_name, text, point.label)


def _of_training(task: Task, point: Point, seed: int, trained: Trained) -> list[Row]:
    name = point.variant.name
    labels = _labels(task, point)
    found = []

    def keep(attack, setting, metric, value, count):
        found.append(labels.row(attack, setting, seed, metric, value, count))

    tested, participants = len(task.test), point.variant.per_round
    keep(name, FINAL, ACCURACY, 100 * trained.accuracy, tested)
    keep("majority", "baseline", ACCURACY, 100 * task.majority, tested)
    keep(name, FINAL, "learning_rate", point.trial.rate, 1)
    if specs.clips_examples(point.trial.spec):
        dropped = trained.evaluations.dropped[-1] * participants
        keep(name, FINAL, "dropped_examples", dropped, 1)
    if trained.tolerance is not None:
        found += propositions.rows(
            labels, name, seed, trained.tolerance, len(task.validation)
        )
    measured = trained.evaluations
    for at, done in enumerate(trained.rounds):
        keep(name, f"round_{done}", VALIDATION, 100 * measured.accuracy[at],
             len(task.validation))  # fmt: skip
        keep(name, f"round_{done}", NORM, measured.gradient_norm[at], 1)
        keep(
            name,
            f"round_{done}",
            "example_gradient_norm",
            measured.example_norm[at],
            1,
        )
        if done:
            keep(name, f"round_{done}", "local_loss", trained.losses[done - 1], 1)
    return found


def _of_accounts(settings: Settings, task: Task, point: Point) -> list[Row]:
    name = point.variant.name
    labels = _labels(task, point)
    seed = settings.run.seeds[0]
    found = [
        labels.row(
            name, f"rate_{rate:g}", seed, TUNED, 100 * value, len(task.validation)
        )
        for rate, value in point.tried.items()  # means over the seeds of tuning
    ]
    for said in point.statements:
        if said.epsilon is not None:
            setting = f"{said.way}, {said.unit}: {said.name}"
            found.append(labels.row(name, setting, seed, EPSILON, said.epsilon, 1))
    for each in point.promises:
        epsilon = methods.largest_epsilon(each)
        setting = published.drawn(each.noise.unit)
        found.append(labels.row(name, setting, seed, EPSILON, epsilon, 1))
    return found


def _of_sampling(settings: Settings, task: Task, variant: Variant) -> list[Row]:
    """Proposition 1, of one federation under any defense."""
    run, everyone = settings.run, task.labels[task.train]
    point = methods.label(run, variant, specs.parse("none"))
    labels = Labels(_EXPERIMENT, task.name, task.model_name, point=point)
    found = []
    for seed in run.seeds:
        rows, size = clients.deal(task, run, variant.clients, seed)
        measured = propositions.sampling(
            np.random.default_rng([seed, 3]),
            rows.y.reshape(variant.clients, size),
            everyone,
            variant.per_round,
            run.batch_size,
        )
        found += [
            labels.row(who, what, seed, "total_variation", value, len(everyone))
            for (who, what), value in measured.items()
        ]
    return found


def accounts(points: Sequence[Point]) -> dict[str, Any]:
    """What every epsilon rests on, for the manifest."""
    found = {}
    for point in points:
        said = {
            f"{each.way}, {each.unit}: {each.name}": {
                "epsilon": _finite(each.epsilon),
                "assumption": each.assumption,
            }
            for each in point.statements
        }
        for each in point.promises:
            said[published.drawn(each.noise.unit)] = {
                "epsilon": _finite(methods.largest_epsilon(each)),
                "assumption": each.guarantee.assumption,
            }
        if said:
            found[_name(point)] = said
    return found


def tuning(points: Sequence[Point]) -> dict[str, Any]:
    """Mean validation accuracy in percent of every rate, for the manifest."""
    return {
        _name(point): {f"{rate:g}": 100 * value for rate, value in point.tried.items()}
        for point in points
    }


def times(settings: Settings, points: Sequence[Point]) -> dict[str, dict[str, float]]:
    """Milliseconds per local iteration by seed, for the manifest: no result."""
    return {
        _name(point): {
            str(seed): trained.milliseconds
            for seed, trained in zip(settings.run.seeds, point.trained, strict=True)
        }
        for point in points
    }


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
                statistics.fmean(t.milliseconds for t in point.trained),
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


def all_figures(found: Sequence[Row]) -> dict[str, Figure]:
    """Name -> figure: accuracy and gradient norm by round (Figure 3)."""
    return {
        "accuracy_by_round": _by_round(found, VALIDATION, "validation accuracy (%)"),
        "gradient_norm_by_round": _by_round(
            found, NORM, "mean norm of the first batch's gradient"
        ),
    }


def _by_round(found: Sequence[Row], metric: str, axis: str) -> Figure:
    curves: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for s in summarise([row for row in found if row.metric == metric]):
        key = s.row.attack, s.row.point, s.row.defense
        done = int(s.row.setting.removeprefix("round_"))
        curves.setdefault(key, []).append((done, s.estimate.mean))
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for (key, line), style in zip(curves.items(), drawing.styles(), strict=False):
        label = " ".join(filter(None, key[:2]))
        axes.plot(*zip(*line, strict=True), label=drawing.plain(label), **style)
    axes.set_xlabel("rounds done")
    axes.set_ylabel(axis)
    axes.set_title(drawing.title(found))
    drawing.name_lines(axes)
    return figure


def _said(point: Point, way: str) -> float | None:
    """The first epsilon of a way, which is that of all rounds."""
    chosen = (s.epsilon for s in point.statements if s.way == way)
    return next(chosen, None)


def _name(point: Point) -> str:
    return " ".join(filter(None, [str(point.trial.spec), point.label]))


def _interval(s: Summary | None) -> str:
    return "" if s is None else screen_tables.interval(s.shown, ".1f")


def _number(s: Summary | None) -> str:
    return "" if s is None else f"{s.estimate.mean:.1f}"


def _beside(ours: float, theirs: float | None) -> str:
    return f"{ours:.3g}" + ("" if theirs is None else f" ({theirs:g})")


def _text(value: float | None, form: str) -> str:
    if value is None:
        return ""
    return format(value, form) if math.isfinite(value) else "infinite"


def _finite(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else str(value)
