"""What a run leaves behind: rows, tables for the screen, and the figures of Figure 1."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from experiments.lmra import published, scores
from experiments.lmra.clients import Clients
from experiments.lmra.scores import Scores
from experiments.lmra.search import Trial, case_setting
from experiments.lmra.settings import ATTACKS, Settings, cases
from experiments.report.figures import drawing
from fljax import metrics, verdicts
from fljax.attacks.reconstruction.decoding import Decoded
from fljax.driver import screen_tables
from fljax.results import Labels, Row, finite, summarise

EXPERIMENT = "lmra"
MODEL = "logistic"
TRAIN, TEST = "train_accuracy_percent", "test_accuracy_percent"
LOSS = "mapping_loss"
AIA = verdicts.ACCURACY.metric


class Attacked(NamedTuple):
    """Everything measured.

    Attributes:
      scores: kind of model -> its scores.
      decoded: attack -> what was decoded.
      distances: `[seeds, C, C]` between local optima.
      messages: `[cases, seeds, A]` how many were decoded from.
    """

    scores: Mapping[str, Scores]
    decoded: Mapping[str, Decoded]
    distances: np.ndarray
    messages: np.ndarray


def rows(settings: Settings, clients: Clients, attacked: Attacked) -> list[Row]:
    """Every number: client by client, then the mean over clients, all equal."""
    run, found = settings.run, []
    labels = Labels(EXPERIMENT, clients.task.name, MODEL)

    def keep(attack, case, metric, values, counts):
        counts = np.broadcast_to(counts, np.shape(values))
        for seed, each, count in zip(run.seeds, values, counts, strict=True):
            where = attack, case.setting(run), seed, metric
            found.extend(labels.by_client(*where, each, count))

    train = clients.sizes[: run.attacked]
    held = clients.held.mask[0].sum(axis=1)[: run.attacked]
    most_frequent = scores.label_majority(clients, run.attacked)
    majority = scores.attribute_majority(clients, run.attacked)
    for at, case in enumerate(cases(run)):
        for attack, each in attacked.scores.items():
            for metric, values in each._asdict().items():
                if metric != AIA or clients.task.candidates is not None:
                    counts = held if metric == TEST else train
                    keep(attack, case, metric, values[at], counts)
        for attack, each in attacked.decoded.items():
            seen = attacked.messages[at]
            keep(attack, case, LOSS, each.loss[at], seen)
            keep(attack, case, "rank", each.rank[at], seen)
            keep(attack, case, "determined", each.determined[at], seen)
        keep("majority", case, TRAIN, most_frequent, train)
        if majority is not None:
            keep("majority", case, AIA, majority, train)
    for (at, one, other), value in np.ndenumerate(attacked.distances):
        if one < other:
            between = labels._replace(point=f"client={one};client={other}")
            where = "local_optimum", "optima", run.seeds[at], "relative_distance"
            found.append(between.row(*where, value, clients.sizes[[one, other]].sum()))
    return found


def search_rows(
    settings: Settings, clients: Clients, found: Sequence[Trial]
) -> list[Row]:
    """Last returned accuracy of every pair of rounds and start."""
    kept, total = [], int(clients.sizes[: settings.run.attacked].sum())
    for each in found:
        point = f"num_rounds={each.num_rounds};start_scale={each.start_scale:g}"
        for steps, values in each.accuracy.items():
            setting = case_setting(steps, settings.run)
            labels = Labels(EXPERIMENT, clients.task.name, MODEL, point=point)
            for seed, accuracy in zip(
                settings.run.seeds, values.mean(axis=1), strict=True
            ):
                where = "last_returned", setting, seed, TRAIN
                kept.append(labels.row(*where, accuracy, total))
    return kept


def tables(settings: Settings, clients: Clients, found: Sequence[Row]) -> list[Table]:
    """One of accuracies by client, one of all other metrics by kind of model."""
    return [_by_client(settings, clients, found), _by_metric(found)]


def _by_client(settings: Settings, clients: Clients, found: Sequence[Row]) -> Table:
    shown = _empty(f"{clients.task.name}: accuracy on its training rows (%)")
    names = [f"c={c}" for c in range(settings.run.attacked)]
    beside = settings.run.paper_table is not None
    extra = ["paper c=0..", "paper mean"] if beside else []
    screen_tables.add_numbers(shown, *names, "mean [95 %]", *extra)
    means = {
        (s.row.setting, s.row.attack, s.row.client): s.shown
        for s in summarise([row for row in found if row.metric == TRAIN])
    }
    printed = published.numbers() if beside else {}
    for setting, attack in dict.fromkeys(key[:2] for key in means):
        each = [f"{means[setting, attack, c].mean:.1f}" for c in range(len(names))]
        paper = [printed.get((f"{setting};{where}", attack))
                 for where in (*(f"client{c}" for c in range(len(names))), "mean")]  # fmt: skip
        cells = []
        if beside:
            per = " ".join("" if p is None else f"{p:.0f}" for p in paper[:-1]).strip()
            cells = [per, "" if paper[-1] is None else f"{paper[-1]:.1f}"]
        mean = screen_tables.interval(means[setting, attack, "all"], ".1f")
        shown.add_row(setting, attack, *each, mean, *cells)
    return shown


def _by_metric(found: Sequence[Row]) -> Table:
    shown = _empty("means over attacked clients and seeds [95 %]")
    wanted = [
        TEST, "membership_auc", "optimum_distance", AIA, LOSS, "rank",
    ]  # fmt: skip
    means = {
        (s.row.setting, s.row.attack, s.row.metric): s.shown
        for s in summarise([row for row in found if row.client == "all"])
    }
    metrics_ = [m for m in wanted if any(key[2] == m for key in means)]
    for metric in metrics_:
        shown.add_column(metric.replace("_", " "), justify="right", overflow="fold")
    for setting, attack in dict.fromkeys(key[:2] for key in means):
        cells = [means.get((setting, attack, metric)) for metric in metrics_]
        if setting != "optima" and any(cell is not None for cell in cells):
            texts = [
                "" if cell is None else screen_tables.interval(cell, ".3g")
                for cell in cells
            ]
            shown.add_row(setting, attack, *texts)
    return shown


def search_table(found: Sequence[Trial]) -> Table:
    """The nearest pair first."""
    shown = _empty(
        "accuracy of the last returned models (%), mean over clients and seeds"
    )
    steps = list(found[0].accuracy)
    screen_tables.add_numbers(shown, *(f"{e} steps" for e in steps), "RMS gap")
    for each in found:
        cells = [f"{each.accuracy[e].mean():.1f}" for e in steps]
        start = f"start_scale={each.start_scale:g}"
        shown.add_row(f"num_rounds={each.num_rounds}", start, *cells, f"{each.gap:.2f}")
    return shown


def _empty(title: str) -> Table:
    shown = screen_tables.empty(title)
    shown.add_column("setting", overflow="fold", min_width=13)
    screen_tables.add_texts(shown, "model")
    return shown


def gains(found: Sequence[Row]) -> dict[str, dict[str, float | None]]:
    """Setting and attack -> gain over the last returned model, and share of the optimum.

    Gains are paired, seed by seed.
    """
    values: dict[tuple[str, str], dict[int, float]] = {}
    for row in found:
        if row.metric == TRAIN and row.client == "all":
            values.setdefault((row.setting, row.attack), {})[row.seed] = row.value
    kept = {}
    for (setting, attack), own in values.items():
        if attack in ATTACKS.values():
            last = values[setting, "last_returned"]
            best = values[setting, "local_optimum"]
            gain = metrics.interval([own[seed] - last[seed] for seed in own])
            share = np.mean(list(own.values())) / np.mean(list(best.values()))
            kept[f"{setting} {attack}"] = {
                "gain_points": gain.mean,
                "gain_low": finite(gain.low),
                "gain_high": finite(gain.high),
                "share_of_local_optimum": float(share),
            }
    return kept


def gain_lines(found: Mapping[str, Mapping[str, float | None]]) -> list[str]:
    """One line of `gains` each, for the screen."""
    return [
        f"{name}: gain {gain['gain_points']:+.1f} points, "
        f"{100 * gain['share_of_local_optimum']:.1f} % of the local optimum's"
        for name, gain in found.items()
    ]


def all_figures(
    settings: Settings, found: Sequence[Row], attacked: Attacked
) -> dict[str, Figure]:
    """Name -> figure."""
    drawn = {"optima_distances": _distances(attacked.distances.mean(axis=0))}
    by_batch = len(settings.run.batch_sizes) > 1
    for metric in (LOSS, TEST) if by_batch else (TRAIN,):
        drawn[metric] = _curves(settings, found, metric, by_batch)
    return drawn


def _distances(matrix: np.ndarray) -> Figure:
    """Figure 1a."""
    figure = Figure(figsize=(5, 4.2), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(matrix, cmap="viridis")
    axes.set_xlabel("client")
    axes.set_ylabel("client")
    axes.set_title("relative distance of local optima")
    figure.colorbar(picture, ax=axes)
    return figure


def _curves(
    settings: Settings, found: Sequence[Row], metric: str, by_batch: bool
) -> Figure:
    """Figures 1b and 1c: by batch size, one panel per client; else by local steps."""
    figure = Figure(
        figsize=(4.2 * min(settings.run.attacked, 5), 4), layout="constrained"
    )
    panels = figure.subplots(1, settings.run.attacked, sharey=True, squeeze=False)[0]
    name = "batch_size" if by_batch else "local_steps"
    for client, axes in enumerate(panels):
        lines: dict[str, list[tuple[float, metrics.Estimate]]] = {}
        kept = [r for r in found if r.metric == metric and r.client == client]
        for s in summarise(kept):
            parts = dict(p.split("=") for p in s.row.setting.split(";"))
            x = float(parts.pop(name))
            if len(settings.run.local_steps) == 1:
                parts.pop("local_steps", None)
            others = [f"{key}={value}" for key, value in parts.items()]
            label = drawing.plain(", ".join([s.row.attack, *others]))
            lines.setdefault(label, []).append((x, s.estimate))
        drawing.draw_bands(axes, lines)
        axes.set_title(f"client {client}")
        axes.set_xlabel(name.replace("_", " "))
        if metric == LOSS:
            axes.set_yscale("log")
    panels[0].set_ylabel(metric.replace("_", " "))
    drawing.name_lines(panels[-1], beside=True)
    return figure
