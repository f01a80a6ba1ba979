"""Rows of small runs, to draw figures of."""

import pytest


class Make:
    """Rows of a kind that some figure is drawn of, each a change of one row."""

    def __init__(self, row):
        self.row = row

    def accuracies(self, seeds):
        """Rows of two attacks and a baseline, over all clients."""
        values = {"grad": 80.0, "model": 90.0, "majority": 60.0}
        return [
            self.row._replace(attack=attack, seed=seed, value=value + seed)
            for attack, value in values.items()
            for seed in range(seeds)
        ]

    def losses(self, *values):
        return [
            self.row._replace(setting=f"round_{t}", metric="test_loss", value=value)
            for t, value in enumerate(values)
        ]

    def clients(self, *sizes):
        return [self.row._replace(client=i, n=size) for i, size in enumerate(sizes)]

    def sweep(self, name, values, **fields):
        return [
            row._replace(point=f"{name}={value}", value=row.value + index, **fields)
            for index, value in enumerate(values)
            for row in self.accuracies(2)
        ]

    def defended(self, point, loss, defense="dp_sgd"):
        losses = [
            row._replace(point=point, defense=defense, value=row.value + loss)
            for row in self.losses(9.0, 0.0)
        ]
        return losses + [
            row._replace(point=point, defense=defense) for row in self.accuracies(2)
        ]


@pytest.fixture
def make(row):
    return Make(row)
