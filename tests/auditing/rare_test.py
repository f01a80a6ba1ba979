"""A value that few rows have: no accuracy shows that all of them are found."""

import numpy as np
import pandas as pd
import pytest

from fljax import verdicts
from fljax.attacks.estimates import Prediction
from fljax.auditing import at_risk, population, unusual, words
from fljax.auditing.fits import Fit
from fljax.auditing.lines import MISFIT, Named
from fljax.auditing.measuring import Controls, Imputed
from fljax.auditing.population import Everyone
from fljax.fit import UNLEARNT
from fljax.imputation import Population
from tests.auditing.judging import judged, truth

_FEW = truth([[0] * 48 + [1, 1], [0] * 49 + [1]])


def _controls():
    strange = truth([[0] * 45 + [1] * 5] * 2)
    said = Prediction(np.array([[1] * 4 + [0] * 44 + [1, 0], [0] * 50]))
    often = [np.array([1, 1] + [0] * 47 + [1]), np.zeros(50, int)]
    return Controls(Imputed(often), {"knows": said}, strange)


def _summary(lines):
    told = list("ab"), Fit(np.ones(2)), ("no", "yes")
    return words.summary("ill", lines, *told)


def test_it_is_said_how_many_are_found_where_nothing_else_can_be():
    (line,) = lines = judged(_FEW, _controls(), knows=Prediction(_FEW.sensitive))
    assert line.verdict == verdicts.NOT_SHOWN and verdicts.BLIND in line.doubts
    assert line.rarest.attack == Named(3, 3, 0, 97)
    assert line.rarest.references == {
        verdicts.IMPUTATION: Named(1, 3, 2, 97),
        verdicts.STRANGERS: Named(1, 10, 4, 90),
    }
    said = _summary(lines)[1]
    assert said.startswith("Of the rows whose ill is yes, knows finds 3 of 3 and says")
    assert "other columns finds 1 of 3 and says so of 2 of 97 others" in said
    assert said.endswith("finds 1 of 10 and says so of 4 of 90 others.")


def test_it_is_said_of_the_attack_that_tells_it_best():
    guess = _FEW.sensitive.copy()
    guess[:, :10] = 1  # and twenty that are not
    never = Prediction(np.zeros((2, 50), int))
    lines = judged(_FEW, never=never, often=Prediction(guess))
    assert words.foremost(lines).attack == "never"
    assert "often finds 3 of 3 and says so of 20 of 97 others." in _summary(lines)[1]


def test_nothing_is_said_of_it_where_the_rows_do_not_fit():
    (line,) = judged(_FEW, knows=Prediction(_FEW.sensitive))
    for verdict in (MISFIT, UNLEARNT):
        lines = [line._replace(verdict=verdict)]
        assert not any("finds" in each for each in _summary(lines))


def test_of_a_single_value_there_is_no_rarest():
    (line,) = judged(
        truth(np.zeros((2, 50), int)), knows=Prediction(np.zeros((2, 50), int))
    )
    assert line.rarest is None


def test_padding_has_no_value():
    padded = _FEW._replace(mask=np.arange(50) < np.array([[50], [49]]))
    (line,) = judged(padded, knows=Prediction(_FEW.sensitive))
    assert line.rarest.attack == Named(2, 2, 0, 97) and not line.rarest.references


def test_nothing_is_added_where_accuracies_tell():
    many = truth([[0] * 60 + [1] * 40] * 2)
    (line,) = lines = judged(many, blind=Prediction(np.zeros((2, 100), int)))
    assert verdicts.BLIND not in line.doubts
    assert not any("finds" in each for each in _summary(lines))


def test_of_equally_strong_attacks_that_which_tells_least_of_strangers_is_foremost():
    guess, strange = Prediction(_FEW.sensitive), truth([[0] * 45 + [1] * 5] * 2)
    wrong = Prediction(1 - strange.sensitive)
    controls = Controls(None, {"a": Prediction(strange.sensitive), "b": wrong}, strange)
    lines = judged(_FEW, controls, a=guess, b=guess)
    assert words.foremost(lines).attack == "b"


def test_of_equally_sure_records_the_rare_come_first():
    records = pd.DataFrame(
        {"client": 0, "row": range(6), "a": ["no", "no", "yes", "no", None, "maybe"]}
    ).assign(a_probability=[1, 1, 1, 0.9, 1, 1])
    rows = at_risk.order(records, "a").row.tolist()
    assert rows == [2, 5, 0, 1, 4, 3]


_ONE_IN_TWENTY = np.array([[1] * 5 + [0] * 95] * 3)


def _most(errors, missed=0):
    """Says so of the rows that have it but some, and of others by mistake; per client."""
    said = _ONE_IN_TWENTY.copy()
    said[:, :missed] = 0
    said[:, 5 : 5 + errors] = 1
    return Prediction(said)


def _beside(strange, scores):
    """A population whose rows the other columns rank by scores; the attack on strangers."""
    said = {"most": Prediction(strange)}
    people = Imputed([np.zeros(100)] * 3, unusual=[[*scores]])
    drawn = [np.arange(100)] * 3
    return Controls(people, said, truth(_ONE_IN_TWENTY), 3.0, drawn)


_NOISE = np.random.default_rng(0).normal(size=(3, 100))
_ANYBODY = np.tile(np.arange(100) % 4 == 0, (3, 1)).astype(
    int
)  # has it one in 12 times


@pytest.mark.parametrize(
    ("strange", "scores", "leaks"),
    [
        (_ANYBODY, _NOISE, True),
        (_most(2, 1).value, _NOISE, False),
        (_ANYBODY, _most(2, 1).value + _NOISE / 9, False),
        (np.zeros((3, 100), int), _NOISE, False),
    ],
    ids=["beyond all", "of strangers, too", "of imputation", "strangers say nothing"],
)
def test_who_finds_most_leaks_what_accuracies_do_not_show(strange, scores, leaks):
    about, beside = truth(_ONE_IN_TWENTY), _beside(strange, scores)
    (line,) = lines = judged(about, beside, most=_most(2, 1))
    gain = line.total.value - line.total.references[verdicts.IMPUTATION]
    assert gain == pytest.approx(2)  # twelve found, six wrongly, of 300
    assert (line.verdict == verdicts.LEAKS) == leaks
    said = " ".join(_summary(lines))
    assert "finds 12 of 15 and says so of 6 of 285 others" in said
    assert ("unusual values of ill (most): of 18 rows that it says" in said) == leaks
    assert len(line.gains[0].alone) == (1 if leaks else 3)  # of the rule that it is by


def test_who_says_so_of_many_does_not_leak():
    lines = judged(truth(_ONE_IN_TWENTY), _beside(_ANYBODY, _NOISE), most=_most(60))
    assert lines[0].verdict == verdicts.NOT_SHOWN
    assert (
        verdicts.BLIND not in lines[0].doubts
    )  # one that is always right would be shown


def test_the_level_is_shared_by_attacks():
    beside = _beside(_ANYBODY, _NOISE)
    (alone,) = judged(truth(_ONE_IN_TWENTY), beside, most=_most(7))
    many = {f"no {at}": Prediction(np.zeros((3, 100), int)) for at in range(9)}
    beside_others = judged(truth(_ONE_IN_TWENTY), beside, most=_most(7), **many)
    assert alone.verdict == verdicts.LEAKS
    assert beside_others[0].verdict == verdicts.NOT_SHOWN


def test_of_values_that_many_have_accuracies_tell():
    assert unusual.usual([np.array([0] * 84 + [1] * 16)]) is None
    assert unusual.usual([np.array([2] * 50), np.array([2] * 35 + [1] * 15)]) == 2
    assert unusual.usual([np.zeros(9)]) is None


def _precision(case, attacks=1):
    """What an attack and its references have, by name."""
    verdict = unusual.judge(case, attacks)
    return {gain.name: gain for gain in verdict.gains}


def _case(said, beside, real=_ONE_IN_TWENTY):
    return unusual.case("most", Prediction(said), truth(real), beside)


def test_of_rows_that_are_as_likely_any_may_be_the_likeliest():
    first, last = ([np.zeros(100)] * 3, [np.arange(100.0) // 5 == 0] * 3)
    for scores, share in ((first, 5.0), (last, 100.0)):
        told = Controls(Imputed([np.zeros(100)] * 3, unusual=[scores]))
        found = _precision(_case(_most(0).value, told))
        assert found[verdicts.IMPUTATION].mean == pytest.approx(100 - share)


def test_strangers_who_have_it_more_seldom_count_by_their_odds():
    half = _ONE_IN_TWENTY.copy()
    half[:, :3] = 0  # two in a hundred have it
    said = Prediction(_ANYBODY)
    alike, fewer = (
        _precision(
            _case(_most(2, 1).value, Controls(None, {"most": said}, truth(each)))
        )
        for each in (_ONE_IN_TWENTY, half)
    )
    right = 100 * (half * _ANYBODY).sum() / _ANYBODY.sum()
    ours = 100 * 12 / 18
    odds = right / (100 - right) * (5 / 95) / (2 / 98)
    assert ours - fewer["strangers"].mean == pytest.approx(100 * odds / (1 + odds))
    assert ours - alike["strangers"].mean == pytest.approx(
        100 * (_ONE_IN_TWENTY * _ANYBODY).sum() / _ANYBODY.sum()
    )
    nobody = Controls(None, {"most": said}, truth(np.zeros((3, 100), int)))
    assert _precision(_case(_most(2, 1).value, nobody))["strangers"].low < 0


def test_a_stranger_of_all_clients_counts_once():
    said = np.zeros((3, 100), int)
    said[:, :2] = 1  # who are right
    told = Controls(None, {"most": Prediction(said)}, truth(_ONE_IN_TWENTY))
    once = told._replace(drawn=[np.arange(100) + 100 * at for at in range(3)])
    same = told._replace(drawn=[np.arange(100)] * 3)
    rows = [
        _case(_most(0).value, each).others["strangers"].rows
        for each in (told, once, same)
    ]
    assert rows == [6, 6, 2]


def test_chance_is_of_everybodys_rows_where_a_client_has_few():
    real = np.array([[1], [0], [0], [0], [0], [0], [0], [0]])
    case = unusual.case("most", Prediction(real), truth(real), Controls())
    assert case.attack.chance == pytest.approx(1 / 8)


def test_many_rows_need_no_table_of_their_pairs():
    real = (np.arange(100_000) % 20 == 0).astype(int)[None]
    case = unusual.case("most", Prediction(real), truth(real), Controls())
    assert case.attack.chance == pytest.approx(0.05) and case.attack.right.all()


def test_a_leak_of_one_of_many_unusual_values_is_not_said_of_the_rarest():
    real = np.zeros((3, 100), int)
    real[:, :5], real[0, 5] = 1, 2
    lines = judged(truth(real), Controls(), most=_most(2, 1))
    said = words.summary("ill", lines, list("abc"), Fit(np.ones(3)), ("a", "b", "c"))
    assert lines[0].verdict == verdicts.LEAKS and "finds" not in " ".join(said)


@pytest.mark.slow
def test_both_methods_of_imputation_rank_the_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 3))
    likely = x[:, 0] * x[:, 1] > 1.2  # of which a line through the inputs knows nothing
    has = (rng.random(800) < np.where(likely, 0.6, 0.03)).astype(int)
    owner = np.arange(800) % 4
    own = [np.flatnonzero(owner == client) for client in range(4)]
    people = Population(x, has, np.zeros(3, bool), False)
    ways = population.imputed(Everyone(None, owner, own, people), None, 0).unusual
    count = int(likely.sum())
    every = np.concatenate([has[rows] for rows in own])
    shares = [every[np.argsort(-np.concatenate(each))[:count]].mean() for each in ways]
    assert min(shares) < 0.2 and max(shares) > 0.4
