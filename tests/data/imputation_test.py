"""What other columns tell of a row, from rows of other people."""

import numpy as np

from fljax import imputation


def test_nobodys_rows_are_imputed_from_its_own(monkeypatch):
    number = np.arange(12)
    people = imputation.Population(
        number[:, None].astype(float), number % 2, np.zeros(1, bool), False
    )
    seen = []

    def impute(known, x, seed, method=None):
        seen.append((set(known.x[:, 0]), set(x[:, 0])))
        return np.zeros(len(x))

    monkeypatch.setattr(imputation, "impute", impute)
    owner, own = np.repeat([-1, 0, 1], [3, 4, 5]), [number[3:7], number[7:]]
    imputation.of_clients(people, owner, own, 0)
    for (known, asked), rows in zip(seen, own, strict=True):
        assert asked == set(rows) and known == set(number) - set(rows)


def test_a_category_of_one_row_stops_no_boosting():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10_050, 1))
    value = (x[:, 0] > 0).astype(int)
    value[0] = 2
    people = imputation.Population(x, value, np.zeros(1, bool), False)
    found = imputation.impute(people, x[1:50], 0)
    assert np.mean(found == value[1:50]) > 0.9
