"""What an attacked federation leaves behind: rows, a table for the screen, pictures."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from experiments.fed_cdp.published import heading
from experiments.gradient_leakage import published, scores
from experiments.gradient_leakage.settings import Settings
from experiments.gradient_leakage.truth import Truth
from experiments.gradient_leakage.views import View
from experiments.report.figures import drawing
from experiments.report.figures.pictures import pictures
from fljax import image_metrics, metrics
from fljax.driver import screen_tables
from fljax.results import HALF_WIDTH, Labels, Row, finite

EXPERIMENT = "gradient_leakage"
_COLUMNS = 6  # images of a search by iteration
_CHANCE_COLUMNS = {  # of the table that have a level of chance, and how it is written
    scores.SUCCESS: ".2f",
    scores.DISTANCE: ".2g",
    scores.READ: ".2g",
    scores.SSIM: ".2f",
    scores.LABEL: ".2f",
}
Chance = Mapping[str, Mapping[str, np.ndarray]]
# what needs no message -> metric -> [clients]


class Cell(NamedTuple):
    """One network, one view, one fraction pruned.

    Attributes:
      data: name under which results are reported.
      network: `lenet` or `cnn`.
      view: what was seen.
      pruned: fraction.
      scores: one per client.
    """

    data: str
    network: str
    view: View
    pruned: float
    scores: Sequence[scores.Score]

    @property
    def point(self) -> str:
        """Empty for what is not pruned."""
        return f"pruned={self.pruned:g}" if self.pruned else ""

    @property
    def name(self) -> str:
        """Defense and point."""
        return " ".join(filter(None, [str(self.view.spec), self.point]))

    def values(self, metric: str) -> list[float]:
        """Of every client."""
        return [each.values[metric] for each in self.scores]

    def estimate(self, metric: str) -> metrics.Estimate:
        """Over the clients."""
        return scores.over_clients(metric, self.values(metric))


def rows(
    settings: Settings, cells: Sequence[Cell], chance: Mapping[str, Chance]
) -> list[Row]:
    """Every number: means over clients, then client by client, then what chance does.

    Args:
      settings: what the program was told.
      cells: what was attacked.
      chance: of each network, `scores.baselines`.
    """
    found, seed, data = [], settings.run.seed, cells[0].data
    for cell in cells:
        method = cell.view.method
        labels = Labels(EXPERIMENT, data, cell.network, str(cell.view.spec), cell.point)
        for metric in cell.scores[0].values:
            values, estimate = cell.values(metric), cell.estimate(metric)
            where = (method, cell.view.setting, seed, metric)
            found.append(labels.row(*where, estimate.mean, len(values)))
            if metric != scores.SUCCESS:  # a share, which says its interval itself
                half = (estimate.high - estimate.low) / 2
                where_half = (*where[:3], metric + HALF_WIDTH)
                found.append(labels.row(*where_half, half, len(values)))
            images = len(cell.scores[0].x)
            found += [
                labels.row(*where, value, images, client)
                for client, value in enumerate(values)
            ]
    for network, baselines in chance.items():
        for name, measured in baselines.items():
            labels = Labels(EXPERIMENT, data, network)
            found += [
                labels.row(name, "baseline", seed, metric, np.mean(values), len(values))
                for metric, values in measured.items()
            ]
    return found


def paper(settings: Settings, cell: Cell, metric: str) -> float | None:
    """What Wei et al. (2021) print for a cell."""
    if settings.run.paper_table != published.TABLE or cell.point:
        return None
    return published.printed(cell.data, cell.view.setting, cell.view.method, metric)


def tables(
    settings: Settings, cells: Sequence[Cell], chance: Mapping[str, Chance]
) -> list[Table]:
    """One per network, one line per cell, with what the paper prints beside ours."""
    return [
        _table(settings, [cell for cell in cells if cell.network == name], baselines)
        for name, baselines in chance.items()
    ]


def _table(settings: Settings, cells: Sequence[Cell], chance: Chance) -> Table:
    some = any(name.endswith(scores.OF_ONE) for name in chance)
    of_one = f"; {scores.OF_ONE[1:]}, where one is" if some else ""
    shown = screen_tables.empty(
        f"{cells[0].data}, {cells[0].network}, {settings.run.attack} against "
        f"{len(cells[0].scores)} clients; success: RMSE < {settings.run.success_rmse:g}\n"
        f"last lines: what needs no message, of all images that are sought{of_one}"
    )
    screen_tables.add_texts(shown, "type", "defense")
    names = ["success % [95 %]", "RMSE [95 %]", "where\nread, cut\nto [0, 1]", "SSIM"]
    names += ["label", "iter."]
    if settings.run.paper_table is not None:
        names.append(f"{heading(cells[0].data)}: %,\nRMSE, iter.")
    screen_tables.add_numbers(shown, *names)
    for cell in cells:
        distance = cell.estimate(scores.DISTANCE)
        beside = [_beside(settings, cell)] if settings.run.paper_table else []
        shown.add_row(
            _types(cell).replace("before ", "before\n"),
            cell.name.replace(" ", "\n"),
            screen_tables.interval(_percent(cell.estimate(scores.SUCCESS)), ".0f"),
            screen_tables.interval(distance._replace(low=max(distance.low, 0)), ".2g"),
            f"{cell.estimate(scores.READ).mean:.2g}",
            f"{cell.estimate(scores.SSIM).mean:.2f}",
            f"{cell.estimate(scores.LABEL).mean:.2f}",
            f"{cell.estimate(scores.ITERATIONS).mean:.1f}",
            *beside,
        )
    shown.add_section()
    for name, measured in chance.items():
        levels = [
            f"{np.mean(measured[metric]):{form}}" if metric in measured else ""
            for metric, form in _CHANCE_COLUMNS.items()
        ]
        shown.add_row("", name, *levels)
    return shown


def _beside(settings: Settings, cell: Cell) -> str:
    metrics_ = scores.SUCCESS, scores.DISTANCE, scores.ITERATIONS
    numbers = [paper(settings, cell, metric) for metric in metrics_]
    if numbers[0] is not None:
        numbers[0] *= 100
    return ", ".join(f"{number:.4g}" for number in numbers if number is not None)


def _percent(e: metrics.Estimate) -> metrics.Estimate:
    return e._replace(mean=100 * e.mean, low=100 * e.low, high=100 * e.high)


def summary(cells: Sequence[Cell]) -> dict[str, Any]:
    """Means with intervals over the clients, for the manifest."""
    return {
        f"{cell.network}, {cell.view.setting}, {cell.name}": {
            metric: {
                "mean": finite(cell.estimate(metric).mean),
                "low": finite(cell.estimate(metric).low),
                "high": finite(cell.estimate(metric).high),
                "median": finite(cell.estimate(metric).median),
            }
            for metric in cell.scores[0].values
        }
        for cell in cells
    }


def all_figures(
    settings: Settings, truth: Truth, cells: Sequence[Cell]
) -> dict[str, Figure]:
    """Name -> figure: reconstructions, the search by iteration, success by pruning."""
    found = {}
    cases = dict.fromkeys((cell.network, cell.view.example) for cell in cells)
    for network, example in cases:
        some = [c for c in cells if (c.network, c.view.example) == (network, example)]
        kind = "example" if example else "message"
        title = f"{cells[0].data}, {network}, {settings.run.attack}, {kind}"
        found[f"reconstructions.{network}.{kind}"] = _grid(settings, truth, some, title)
        found[f"search.{network}.{kind}"] = _search(settings, truth, some, title)
    if len(settings.run.pruned) > 1:
        found["success_by_pruning"] = _by_pruning(settings, cells)
    return found


def _grid(
    settings: Settings, truth: Truth, cells: Sequence[Cell], title: str
) -> Figure:
    """Truth above reconstructions; of a batch every image (Figures 1, 4 and 5)."""
    each = len(cells[0].scores[0].x)
    count = min(max(settings.run.pictures // each, 1), len(truth.x))
    shown, captions = {"truth": _flat(truth.x[:count, :each])}, {}
    for cell in cells:
        name = _row_name(cell)
        shown[name] = _flat(np.stack([s.x for s in cell.scores[:count]]))
        captions[name] = [
            f"{distance:.2g}"
            for distance in image_metrics.rmse(shown[name], shown["truth"])
        ]
    return pictures(shown, captions=captions, title=f"{title}; RMSE below")


def _search(
    settings: Settings, truth: Truth, cells: Sequence[Cell], title: str
) -> Figure:
    """The first client's first image by attack iteration."""
    steps = len(cells[0].scores[0].path)
    at = np.unique(np.geomspace(1, steps, _COLUMNS).round().astype(int)) - 1
    number = np.minimum((at + 1) * settings.run.record_every, settings.run.iterations)
    shown = {
        _row_name(cell): np.concatenate(
            [cell.scores[0].path[at], truth.x[:1, 0]], axis=0
        )
        for cell in cells
    }
    names = [*(f"iteration {n}" for n in number), "truth"]
    return pictures(shown, columns=names, title=f"{title}: client 0")


def _by_pruning(settings: Settings, cells: Sequence[Cell]) -> Figure:
    """Figure 5's question: how much may be pruned before an attack fails."""
    lines: dict[str, list[tuple[float, metrics.Estimate]]] = {}
    for cell in cells:
        name = drawing.plain(f"{cell.network} {cell.view.spec} {cell.view.setting}")
        entry = 100 * cell.pruned, cell.estimate(scores.SUCCESS)
        lines.setdefault(name, []).append(entry)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    drawing.draw_bands(axes, lines)
    axes.set_xlabel("gradient entries set to zero (%)")
    axes.set_ylabel(f"clients with RMSE below {settings.run.success_rmse:g}")
    axes.set_ylim(-0.02, 1.02)
    drawing.name_lines(axes, beside=True)
    return figure


def _row_name(cell: Cell) -> str:
    return f"{cell.name} (type {_types(cell)})"


def _types(cell: Cell) -> str:
    return cell.view.setting.partition("=")[2].replace("_", ", ")


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(-1, *images.shape[-3:])
