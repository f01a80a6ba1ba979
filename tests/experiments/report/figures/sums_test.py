"""Accuracy against the clients whose messages are summed."""

from experiments.report import figures


def test_a_sum_is_drawn_at_its_number_of_clients(make):
    sums = [
        row._replace(setting=f"sum_of_{size}", value=row.value - size)
        for size in (10, 2)
        for row in make.accuracies(2)
        if row.attack != "majority"
    ]
    base = [row._replace(setting="baseline") for row in make.accuracies(2)]
    rows = sums + [row for row in base if row.attack == "majority"]
    (axes,) = figures.accuracy_by_sum(rows).axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines["grad"] == [[2, 78.5], [10, 70.5]]
    assert lines["majority"][0][1] == 60.5
    assert figures.accuracy_by_sum(rows[:4]) is None  # one size only
