"""What other columns tell of a row: from other people's rows, or from its client's."""

import numpy as np
import pytest
from sklearn import model_selection

from fljax import imputation
from fljax.auditing import population
from fljax.imputation import Population


def test_nobodys_rows_are_imputed_from_its_own(monkeypatch):
    number = np.arange(12)
    people = Population(
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


def _told_by_a_number(rows, value):
    """People of whom a number tells the sensitive value."""
    x = np.random.default_rng(0).normal(size=(rows, 1))
    return Population(x, value(x[:, 0]).astype(int), np.zeros(1, bool), False)


@pytest.mark.parametrize(
    ("rows", "value", "method"),
    [
        (600, lambda x: x > 0, imputation.LINEAR),
        (600, lambda x: np.abs(x) > 0.7, imputation.BOOSTING),
        (99, lambda x: np.abs(x) > 0.7, imputation.LINEAR),
        (600, lambda x: 0 * x, imputation.LINEAR),
    ],
    ids=["a line", "an interval", "few rows", "one value"],
)
def test_the_method_is_that_which_is_right_more_often(rows, value, method):
    assert imputation.choose(_told_by_a_number(rows, value), 0) == method


@pytest.mark.parametrize("seed", range(3))
def test_a_value_that_a_fold_lacks_does_not_rule_out_what_tells_it(seed, recwarn):
    rng, x = np.random.default_rng(seed), np.zeros((120, 4))
    folds = model_selection.KFold(3, shuffle=True, random_state=seed)
    rare = next(rest for _, rest in folds.split(x))[:3]  # all in one fold
    value = np.isin(np.arange(120), rare).astype(int)
    x += rng.normal(size=x.shape)
    x[:, 0] = 6 * value + 0.3 * x[:, 0]
    known = imputation.Population(x, value, np.zeros(4, bool), False)
    assert imputation.choose(known, seed) == imputation.LINEAR
    assert not recwarn.list


def test_a_category_of_one_row_stops_no_boosting():
    people = _told_by_a_number(10_050, lambda x: x > 0)
    people.value[0] = 2
    found = imputation.impute(people, people.x[1:50], 0, imputation.BOOSTING)
    assert np.mean(found == people.value[1:50]) > 0.9


def test_more_categories_than_boosting_tells_apart_are_numbers_to_it():
    codes = np.arange(3000) % 600
    value = (codes < 200).astype(int)
    people = Population(codes[:, None].astype(float), value, np.ones(1, bool), False)
    found = imputation.impute(people, people.x[:600], 0, imputation.BOOSTING)
    assert np.mean(found == value[:600]) > 0.9


_CLIENTS, _SIZE = 6, 150


def _clients(signs, continuous=False, seed=0):
    """Clients of whom a public column tells the sensitive value, or its opposite."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(_CLIENTS), _SIZE)
    value = rng.integers(0, 2, len(owner))
    if continuous:
        value = value + 0.1 * rng.normal(size=len(owner))
    x = np.repeat(signs, _SIZE) * (2 * value - 1) + 0.6 * rng.normal(size=len(owner))
    people = Population(x[:, None], value, np.zeros(1, bool), continuous)
    return people, owner, [np.flatnonzero(owner == each) for each in range(_CLIENTS)]


def _informed(people, owner, rows):
    others = imputation.of_clients(people, owner, rows, seed=0)
    every = imputation.crossed_with_owner(people, owner, seed=0)
    return imputation.informed(people, rows, others, every)


def _error(people, rows, guesses):
    """`[C]` mean distance from the truth."""
    pairs = zip(rows, guesses, strict=True)
    return np.array([np.mean(np.abs(people.value[r] - guess)) for r, guess in pairs])


@pytest.mark.slow
@pytest.mark.parametrize("continuous", [False, True], ids=["category", "number"])
def test_opposite_clients_are_imputed_from_their_own_rows(continuous):
    people, owner, rows = _clients([1, 1, 1, -1, -1, -1], continuous)
    others = imputation.of_clients(people, owner, rows, seed=0)
    found = _informed(people, owner, rows)
    assert (_error(people, rows, others) > 0.4).all()
    assert (_error(people, rows, found) < 0.2).all()
    everyone = population.Everyone(None, owner, rows, people)
    for one, other in zip(
        population.imputed(everyone, None, 0).own, found, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_one_that_is_unlike_the_others_is_imputed_from_its_own_rows():
    people, owner, rows = _clients([1, 1, 1, 1, 1, -1])
    error = _error(people, rows, _informed(people, owner, rows))
    assert (error < 0.2).all()


@pytest.mark.parametrize(
    "continuous",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["category", "number"],
)
def test_clients_that_are_alike_are_imputed_from_other_peoples_rows(continuous):
    given = _clients([1] * _CLIENTS, continuous)
    others = imputation.of_clients(*given, seed=0)
    for one, other in zip(_informed(*given), others, strict=True):
        np.testing.assert_array_equal(one, other)


def test_of_a_row_nothing_is_shown():
    assert not imputation._is_shown(np.ones(1))
    assert imputation._is_shown(np.ones(2))
    assert not imputation._is_shown(np.zeros(2))
