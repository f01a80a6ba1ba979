"""Rows and tables: under the name of what was attacked, beside what was published."""

import numpy as np
import pytest
from rich.console import Console

from experiments.gradient_leakage import reporting, scores, settings, views
from fljax.defenses import specs


@pytest.mark.parametrize(
    ("name", "above"), [("lfw", "paper: %"), ("lfw_deepfunneled", "lfw: %")]
)
def test_results_carry_the_name_of_the_images(told, name, above):
    """LFW in another alignment is other data, beside which the paper's stand."""
    run = settings.complete(told("--data_name=lfw", "--paper_table=table7"))
    values = dict.fromkeys(reporting._CHANCE_COLUMNS, 0.5) | {"attack_iterations": 7}
    one = scores.Score(values, np.zeros((1, 4, 4, 1)), np.zeros((1, 4, 4, 1)))
    view = views.View(specs.parse("fed_sdp(clip=4, sigma=6)"), (2,), True)
    cells = [reporting.Cell(name, "lenet", view, 0.0, [one, one])]
    chance = {"lenet": {"majority_class": {"label_accuracy": np.array([1, 0])}}}
    rows = reporting.rows(run, cells, chance)
    assert {row.data for row in rows} == {name}
    assert {row.attack for row in rows} == {"fed_sdp", "majority_class"}
    halves = {r.metric: r.value for r in rows if r.metric.endswith("_half_width")}
    assert halves["attack_iterations_half_width"] == 0  # both clients have seven
    assert "attack_success_half_width" not in halves  # a share has Wilson's interval
    screen = Console(width=150, record=True)
    screen.print(*reporting.tables(run, cells, chance))
    shown = screen.export_text()
    assert f"{name}, lenet" in shown
    assert above in shown
    assert "100, 0.0014, 25" in shown
    assert "majority_class" in shown.splitlines()[-1]


def _cdp(more):
    return specs.parse(f"fed_cdp(clip=6, sigma=6, {more})")


def test_the_widest_table_fits_into_120_characters(told):
    run = settings.complete(told("--data_name=lfw", "--paper_table=table7"))
    high, low = (
        scores.Score(
            dict.fromkeys(reporting._CHANCE_COLUMNS, 0.00123)
            | {scores.DISTANCE: distance, scores.SUCCESS: 1.0}
            | {scores.ITERATIONS: 300.0},
            np.zeros((1, 4, 4, 1)), np.zeros((1, 4, 4, 1)),
        )
        for distance in (0.00123, 0.00111)
    )  # fmt: skip
    cells = [
        reporting.Cell("lfw_deepfunneled", "lenet", view, pruned, [high, low] * 2)
        for view, pruned in (
            (views.View(_cdp("mode=recommended"), (2,), True, before_sum=True), 0.3),
            (views.View(_cdp("decay_to=2"), (2,), True), 0.0),
        )
    ]
    screen = Console(width=120, record=True)
    screen.print(*reporting.tables(run, cells, {"lenet": {}}))
    shown = screen.export_text()
    assert "…" not in shown
    assert "mode=recommended) " in shown
    assert "0, 0.945, 300" in shown
