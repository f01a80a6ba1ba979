"""The calibration plot."""

from experiments.report import figures
from fljax import certainty


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
