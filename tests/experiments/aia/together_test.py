"""Several columns that are inferred together."""

import numpy as np

from experiments.aia import published, scoring
from experiments.tabular.targets import Targets
from fljax.results import Labels


def test_columns_inferred_together_are_scored_together_and_each():
    one, other = np.arange(4) // 2, np.arange(4) % 2
    targets = Targets(
        np.array([[[0, 1, 2, 3]]]), np.ones((1, 1, 4), bool), np.array([[4]]), False,
        np.ones(1), None, None, (7,), {"job": one, "sex": other},
    )  # fmt: skip
    guess = np.array([[[0, 0, 3, -1]]])
    labels = Labels("aia", "people", "mlp")
    rows = scoring.guesses(labels, "model", "passive", guess, targets)
    found = {row.metric: row.value for row in rows if row.client == "all"}
    assert found == {
        "aia_accuracy_percent": 25.0,
        "accuracy_of_job_percent": 75.0,
        "accuracy_of_sex_percent": 25.0,
    }


def test_only_the_papers_column_stands_beside_its_numbers():
    flags = {"data_name": "medical"}
    for told in ({}, {"data_sensitive": "smoker"}):
        assert published.reference("table1", "medical", flags | told)
    for told in ({"data_sensitive": "sex"}, {"data_also_sensitive": ["sex"]}):
        assert not published.reference("table1", "medical", flags | told)
