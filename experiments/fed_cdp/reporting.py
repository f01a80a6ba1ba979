"""What a Fed-CDP run leaves behind: rows, what its manifest says, and figures."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from experiments import epsilons
from experiments.epsilons import EPSILON
from experiments.fed_cdp import clients, methods, propositions
from experiments.fed_cdp.clients import Task
from experiments.fed_cdp.methods import Trial, Variant
from experiments.fed_cdp.published import ACCURACY, FINAL, TUNED
from experiments.fed_cdp.settings import Settings
from experiments.fed_cdp.training import Trained
from experiments.report.figures import drawing
from fljax.defenses import specs
from fljax.privacy import Promise, Statement
from fljax.results import Labels, Row, summarise

VALIDATION = "validation_accuracy_percent"
NORM = "gradient_norm"
_CHOSEN = (
    "; the choice among learning rates, whose trainings share noise, is not charged"
)
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
        setting = epsilons.drawn(each.noise.unit)
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
        more = _CHOSEN if len(point.tried) > 1 else ""
        said = {
            f"{each.way}, {each.unit}: {each.name}": {
                "epsilon": epsilons.as_json(each.epsilon),
                "assumption": each.assumption + more,
            }
            for each in point.statements
        }
        for each in point.promises:
            said[epsilons.drawn(each.noise.unit)] = {
                "epsilon": epsilons.as_json(methods.largest_epsilon(each)),
                "assumption": each.guarantee.assumption + more,
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


def times(
    settings: Settings, points: Sequence[Point]
) -> dict[str, dict[str, float | None]]:
    """Milliseconds per local iteration by seed, for the manifest: no result."""
    return {
        _name(point): {
            str(seed): trained.milliseconds
            for seed, trained in zip(settings.run.seeds, point.trained, strict=True)
        }
        for point in points
    }


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


def _name(point: Point) -> str:
    return " ".join(filter(None, [str(point.trial.spec), point.label]))
