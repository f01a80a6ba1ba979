"""The calibration plot."""

import numpy as np

from experiments.report import figures
from fljax import certainty, metrics


def _rows(row, attack, *pairs):
    return [
        row._replace(
            attack=attack, metric=certainty.at_confidence(sure), value=value, seed=seed
        )
        for seed in (0, 1)
        for sure, value in pairs
    ]


def test_a_line_per_attack_from_the_least_sure_rows_to_the_surest(row):
    rows = _rows(row, "one", (0.975, 90.0), (0.525, 50.0)) + _rows(
        row, "one_strangers", (0.525, 50.0)
    )
    figure = figures.calibration(rows)
    (line,) = [e for e in figure.axes[0].lines if e.get_label().startswith("one")]
    assert line.get_xydata().tolist() == [[52.5, 50.0], [97.5, 90.0]]
    said = figures.alt_text(figures.svg(figure))
    assert "one (passive): 50 at 52.5, 90 at 97.5" in said and "how sure" in said


def test_intervals_are_those_of_one_seed(row):
    rows = [each._replace(n=100) for each in _rows(row, "one", (0.75, 80.0))]

    def ends(rows):
        (bars,) = figures.calibration(rows).axes[0].collections[:1]
        return bars.get_segments()[0][:, 1]

    np.testing.assert_allclose(
        ends(rows), ends([each for each in rows if not each.seed])
    )
    np.testing.assert_allclose(ends(rows), metrics.of_rows(80.0, 100))
