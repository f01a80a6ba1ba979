"""Guesses of a continuous attribute: rows, and the audit's verdict on them."""

import numpy as np
import pytest

from experiments.aia import errors
from experiments.aia.errors import Imputed
from experiments.report import cards, gains, in_short, kept
from experiments.tabular.targets import Targets
from fljax import verdicts
from fljax.attacks.estimates import Prediction
from fljax.auditing import measuring, scoring
from fljax.auditing.truth import Truth
from fljax.results import Labels

_SHAPE = 3, 40  # clients and rows
_UNIT = 5.0
_LABELS = Labels("aia", "people", "mlp")


class _World:
    """The same numbers for both programs."""

    def __init__(self, noise: float):
        rng = np.random.default_rng(1)
        self.real, self.others = rng.normal(size=(2, *_SHAPE))
        self.base, self.their_base = (
            0.6 * each + 0.5 * rng.normal(size=_SHAPE)
            for each in (self.real, self.others)
        )
        self.guess = self.real + noise * rng.normal(size=_SHAPE)
        self.blind = 2 * rng.normal(size=_SHAPE)

    def rows(self):
        """As experiments.aia writes them."""
        own, theirs = (_targets(each) for each in (self.real, self.others))
        median = np.broadcast_to(np.median(self.real, axis=1)[:, None], _SHAPE)
        made = [
            row
            for row in errors.rows(_LABELS, "majority", "baseline", median[None], own)
            if row.metric == errors.ERROR
        ]
        made += errors.rows(_LABELS, "imputation", "baseline", self.base[None], own)
        made += self._attack("model", self.guess, own, self.base)
        return made + self._attack(
            "model_strangers", self.blind, theirs, self.their_base
        )

    def _attack(self, name, guess, targets, base):
        imputed = Imputed(base[None], np.array([0.25]))
        return errors.rows(_LABELS, name, "passive", guess[None], targets, imputed)

    def line(self):
        """As an audit writes it."""
        imputed = measuring.Imputed(list(self.base), list(self.their_base), 0.25)
        beside = measuring.Controls(
            imputed, {"model": Prediction(self.blind)}, _truth(self.others)
        )
        answers = {"model": Prediction(self.guess)}
        return scoring.lines(
            answers, _truth(self.real), continuous=True, controls=beside
        )[0]


def _targets(value):
    ones = np.ones((1, *_SHAPE), bool)
    return Targets(
        value[None], ones, ones.sum(-1), True, np.array([_UNIT]), None, None, (7,), {}
    )


def _truth(value):
    rows = np.zeros((*_SHAPE, 1))
    labels = np.zeros((_SHAPE[0], 2))
    return Truth(value, np.ones(_SHAPE, bool), _UNIT, labels, rows, np.ones(1))


@pytest.mark.parametrize(
    ("noise", "kind"), [(0.8, verdicts.LEAKS), (9.0, verdicts.NOT_SHOWN)]
)
def test_a_run_is_judged_by_the_rule_of_an_audit(noise, kind):
    world = _World(noise)
    (score,), line = gains.scores(world.rows()), world.line()
    assert score.verdict.kind == line.verdict == kind
    for ours, theirs in zip(score.verdict.gains, line.gains, strict=True):
        assert ours.name == theirs.name
        np.testing.assert_allclose(ours[1:4], theirs[1:4], rtol=1e-9)
    total = line.total
    assert score.estimate.mean == pytest.approx(total.value)
    assert score.estimate.low == pytest.approx(total.low)


def test_what_is_kept_of_a_run_is_judged_alike():
    rows = _World(0.8).rows()
    (score,), (again,) = gains.scores(rows), gains.scores(kept.of_rows(rows))
    for ours, theirs in zip(again.verdict.gains, score.verdict.gains, strict=True):
        np.testing.assert_allclose(ours[1:4], theirs[1:4], rtol=1e-6)


def test_an_error_is_told_in_a_sentence_with_what_it_explains():
    rows = _World(0.8).rows()
    card = cards.card("run", rows, {"flags": {"data_sensitive": "age"}}, None)
    ((_, said, _),) = in_short.sentences([card])
    assert "model (passive) leaks through messages: " in said
    assert "less error than imputation (over 3 clients, each alike)" in said
    assert "mean absolute error; correlation 0." in said
    assert ", beyond imputation 0." in said
    assert "% of the variance that imputation leaves" in said
    blind = _World(9.0).rows()
    ((_, said, _),) = in_short.sentences([cards.card("run", blind, {}, None)])
    assert "no leak is shown" in said
