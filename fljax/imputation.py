"""What the other columns tell of a sensitive one, without any message.

Who has rows of the same population, sensitive column included, learns to predict it
from the public columns and the target. What an attack names beyond that comes from
messages; Jayaraman and Evans, "Are attribute inference attacks just imputation?", CCS
2022, found that most attacks have nothing beyond it.

Of a linear model and gradient boosting the one with the better score in
cross-validation is used: one choice for all groups of clients, so that it may have seen
rows that are predicted. What is fitted has not.
"""

from typing import NamedTuple

import numpy as np
import threadpoolctl
from sklearn import compose, ensemble, linear_model, model_selection, preprocessing
from sklearn import pipeline as pipelines

from fljax.types import Features

LINEAR, BOOSTING = "linear", "boosting"
FOLDS = 5
_FEWEST = 100  # rows for gradient boosting: with fewer it learns nothing
_MOST = 20_000  # rows that are learned from
_SOME = 2_000  # rows for a variance
_GROUPS = 10  # of clients
_EARLY = 10_000  # rows above which boosting stops early
_RARE = 20  # fewest of a category then
_FEW_CODES = 255  # categories that boosting can tell apart


class Population(NamedTuple):
    """Rows whose sensitive value is known.

    Attributes:
      x: `[N, D]` float64: public columns and target, as `columns` makes them.
      value: `[N]` number of the value, or a float for a continuous column.
      codes: `[D]` bool, which columns are numbers of categories.
      continuous: whether the sensitive column is a number.
    """

    x: np.ndarray
    value: np.ndarray
    codes: np.ndarray
    continuous: bool

    def take(self, rows: np.ndarray) -> "Population":
        """Some of the rows."""
        return self._replace(x=self.x[rows], value=self.value[rows])


def columns(x: Features, y: np.ndarray) -> np.ndarray:
    """Public columns and target of `N` rows side by side, `[N, D]`."""
    parts = (x.numeric, x.codes, np.asarray(y)[:, None])
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=1)


def coded(x: Features, task: str) -> np.ndarray:
    """Which of `columns` are numbers of categories, `[D]` bool."""
    numeric, codes = (np.asarray(part).shape[1] for part in (x.numeric, x.codes))
    kinds = [False] * numeric + [True] * codes + [task == "multiclass"]
    return np.array(kinds)


def sampled(population: Population, count: int, seed: int) -> Population:
    """Some of the rows, drawn without replacement.

    Args:
      population: N rows.
      count: how many; all if there are fewer.
      seed: of the draw.
    """
    rng = np.random.default_rng([seed, len(population.value)])
    order = rng.permutation(len(population.value))[:count]
    return population.take(np.sort(order))


def choose(population: Population, seed: int) -> str:
    """The method with the better score in cross-validation, `linear` on a tie.

    Accuracy for categories, mean absolute error for a number.
    """
    population = _without_rare(sampled(population, _MOST, seed))
    if len(population.value) < _FEWEST or len(np.unique(population.value)) < 2:
        return LINEAR
    folds = model_selection.KFold(3, shuffle=True, random_state=seed)

    def score(method: str, known: np.ndarray, rest: np.ndarray) -> float:
        try:
            found = _fitted(population.take(known), population.x[rest], method)
        except ValueError:  # of scikit-learn, whatever it does not take
            return -np.inf
        true = population.value[rest]
        if population.continuous:
            return -float(np.abs(found - true).mean())
        return float((found == true).mean())

    scores = {
        method: np.mean([score(method, *fold) for fold in folds.split(population.x)])
        for method in (LINEAR, BOOSTING)
    }
    return max(scores, key=lambda method: scores[method])


def impute(
    population: Population, x: np.ndarray, seed: int, method: str | None = None
) -> np.ndarray:
    """The most probable values of rows `x [n, D]`, or the mean of a number: `[n]`.

    Args:
      population: rows whose value is known, none of them among `x`.
      x: as `columns` makes them.
      seed: of what is drawn.
      method: from `choose`; chosen here if None.
    """
    population = _without_rare(sampled(population, _MOST, seed))
    if len(x) == 0:
        return population.value[:0]
    return _fitted(population, x, method or choose(population, seed))


def _fitted(population: Population, x: np.ndarray, method: str) -> np.ndarray:
    """What a method says of rows `x [n, D]`; the only value where there is one alone."""
    if len(np.unique(population.value)) < 2:
        return np.full(len(x), population.value[0])
    with _one_thread():
        model = _model(method, population).fit(population.x, population.value)
        return model.predict(x)


def of_clients(
    everyone: Population,
    owner: np.ndarray,
    rows: list[np.ndarray],
    seed: int,
    most: int = _MOST,
    asked: np.ndarray | None = None,
    method: str | None = None,
) -> list[np.ndarray]:
    """Each client's rows imputed from rows that are not its own.

    Clients share an imputer in groups, of which there are no more than ten; none of it
    has a row of any of them. Where nobody else's rows are known, see `crossed`.

    Args:
      everyone: all rows.
      owner: `[N]` number of the client that a row belongs to, negative for nobody's.
      rows: of each client, numbers of its rows.
      seed: of what is drawn.
      most: rows that are known, drawn where there are more.
      asked: `[N, D]` all rows as they are asked about, where columns of them are not
        known as they are; None for `everyone.x`.
      method: as in `impute`.
    """
    asked = everyone.x if asked is None else asked
    found: dict[int, np.ndarray] = {}
    for group in np.array_split(np.arange(len(rows)), min(_GROUPS, len(rows))):
        others = np.flatnonzero(~np.isin(owner, group))
        if not len(others):
            found |= {
                int(c): crossed(everyone.take(rows[c]), seed, method) for c in group
            }
            continue
        known = sampled(everyone.take(others), most, seed)
        method = method or choose(known, seed)
        together = np.concatenate([rows[client] for client in group])
        value = impute(known, asked[together], seed, method)
        ends = np.cumsum([len(rows[client]) for client in group])[:-1]
        found |= dict(zip(group.tolist(), np.split(value, ends), strict=True))
    return [found[client] for client in range(len(rows))]


def residual(population: Population, seed: int) -> float:
    """Variance of a continuous column that imputation leaves, by cross-validation."""
    some = sampled(population, _SOME, seed)
    return float(np.mean(np.square(crossed(some, seed) - some.value)))


def crossed(population: Population, seed: int, method: str | None = None) -> np.ndarray:
    """Every row imputed from the others of a five-fold split: `[N]`.

    What remains where nobody else's rows are known. It is hard on an attack, since it
    supposes that the adversary knows most of the audited rows.
    """
    count = len(population.value)
    found = np.zeros(count, population.value.dtype)
    if count < 2:  # of a row alone nothing is known
        return np.full(count, np.nan if population.continuous else -1)
    folds = model_selection.KFold(min(FOLDS, count), shuffle=True, random_state=seed)
    method = method or choose(population, seed)
    for known, rest in folds.split(population.x):
        found[rest] = impute(population.take(known), population.x[rest], seed, method)
    return found


def crossed_with_owner(
    population: Population, owner: np.ndarray, seed: int, method: str | None = None
) -> np.ndarray:
    """`crossed` where it is also known whose each row is.

    Args:
      population: of all clients, and of others.
      owner: `[N]` client of each row, from 0; -1 for nobody's.
      seed: of the split and of the model.
      method: as in `impute`.
    """
    x = np.column_stack([population.x, owner + 1])
    codes = np.append(population.codes, True)
    return crossed(population._replace(x=x, codes=codes), seed, method)


def informed(
    everyone: Population,
    rows: list[np.ndarray],
    others: list[np.ndarray],
    every: np.ndarray,
) -> list[np.ndarray]:
    """Imputation from others, or by who knows whose a row is if that is shown to tell more.

    Clients may differ, so that rows of others say little of one, or the contrary: what is
    peculiar to a client is no leak of its rows. Shown is what lies three standard errors
    above nothing, of all rows together or else of a client's.

    Args:
      everyone: all rows.
      rows: as in `of_clients`.
      others: what `of_clients` says of them.
      every: `[N]` what `crossed_with_owner` says.
    """
    own = [every[each] for each in rows]

    def off(guesses):
        pairs = zip(guesses, rows, strict=True)
        away = [guess - everyone.value[each] for guess, each in pairs]
        return [np.square(a) if everyone.continuous else 1.0 * (a != 0) for a in away]

    gains = [one - other for one, other in zip(off(others), off(own), strict=True)]
    if _is_shown(np.concatenate(gains)):
        return own
    pairs = zip(others, own, gains, strict=True)
    return [other if _is_shown(gain) else one for one, other, gain in pairs]


def _is_shown(gain: np.ndarray) -> bool:
    if len(gain) < 2:
        return False
    return bool(gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain)))


def _one_thread():
    """Tables this small are learned fastest by one thread, which waits for no other."""
    return threadpoolctl.threadpool_limits(1)


def _without_rare(population: Population) -> Population:
    """Without rows of categories that few have, where boosting sets rows aside.

    It stops early by them, and needs some of each category on both sides.
    """
    if population.continuous or len(population.value) <= _EARLY:
        return population
    _, number, counts = np.unique(
        population.value, return_inverse=True, return_counts=True
    )
    return population.take(np.flatnonzero(counts[number] >= _RARE))


def _model(method: str, population: Population):
    """An estimator that is not fitted."""
    categories = population.codes
    if method == BOOSTING:
        if population.x[:, categories].max(initial=0) >= _FEW_CODES:
            categories = np.zeros_like(categories)  # numbers order them then
        make = (
            ensemble.HistGradientBoostingRegressor
            if population.continuous
            else ensemble.HistGradientBoostingClassifier
        )
        # scikit-learn has no types; pyright takes that of the default, a text.
        return make(
            categorical_features=categories,  # pyright: ignore[reportArgumentType]
            random_state=0,
        )
    written = compose.make_column_transformer(
        (preprocessing.OneHotEncoder(handle_unknown="ignore"), population.codes),
        (preprocessing.StandardScaler(), ~population.codes),
    )
    last = (
        linear_model.RidgeCV(np.logspace(-3, 3, 13))
        if population.continuous
        else linear_model.LogisticRegression(max_iter=1000)
    )
    return pipelines.make_pipeline(written, last)
