"""Messages that have, or have not, the noise that their defense is said to add."""

import numpy as np
import pandas as pd
import pytest

import fljax
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.auditing import declared_noise
from fljax.auditing.lines import MISFIT
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Known, Transcript

_TOLD = {
    "target": "y", "sensitive": "married", "client_column": "client",
    "attacks": ("model",),
}  # fmt: skip


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize(("count", "size"), [(2, 400), (3, 40), (12, 4), (30, 100)])
def test_who_adds_the_noise_is_never_said_to_lack_it(law, count, size):
    rng, unit = np.random.default_rng(0), np.sqrt(2) if law == "laplace" else 1
    found = 0
    for _ in range(200):
        deviation = rng.uniform(0.1, 2, count)
        signal = np.cumsum(rng.normal(size=(count, size)), axis=0) * rng.integers(2)
        noise = getattr(rng, law)(size=(count, size)) * deviation[:, None] / unit
        found += declared_noise._is_less(
            signal + noise, np.square(deviation), count, 1e-6
        )
    assert found == 0


@pytest.mark.parametrize(("count", "size"), [(2, 400), (12, 4), (30, 100)])
def test_a_fifth_of_the_deviation_is_told_from_the_whole(count, size):
    rng = np.random.default_rng(0)
    delta, declared = rng.normal(size=(count + 5, size)), np.full(count + 5, 25.0)
    assert declared_noise._is_less(delta, declared, count, 1e-6)
    assert not declared_noise._is_less(delta, declared, 1, 1e-6)  # without a pair
    assert not declared_noise._is_less(delta, declared, count, 8.0)  # rounded away
    still = np.where(np.arange(size) < size / 2, delta, 5 * delta)
    assert not declared_noise._is_less(still, declared, count, 1e-6)
    frozen = np.concatenate([5 * delta, np.zeros((count + 5, 9 * size))], axis=1)
    assert not declared_noise._is_less(frozen, declared, count, 1e-6)


def test_of_noise_that_later_steps_take_back_the_last_draw_counts():
    rng, rounds, size = np.random.default_rng(0), 12, 60
    path, shrinks = np.zeros((2, rounds, size)), 0.3  # curvature times rate, 40 steps
    for _ in range(40):
        path = (1 - shrinks) * path + 0.1 * rng.normal(size=path.shape)
    seen = Transcript(
        np.arange(rounds), np.tile([0, 1], (rounds, 1)), {"w": np.zeros((rounds, size))},
        {"w": np.moveaxis(path, 0, 1)},
    )  # fmt: skip
    view = AdversaryView(
        seen, views.client_view(seen, [0, 1]), np.array([0, 1]),
        Known(None, np.zeros((2, 10)), np.ones((2, 10), bool)), np.eye(2), False, None,
        None, "regression", 1, False, LocalTraining(learning_rate=0.1, steps=40), 0,
        defense=specs.parse("gaussian(deviation=1, on=steps)"),
    )  # fmt: skip
    assert declared_noise.lacking(view) == ""
    ten = view._replace(defense=specs.parse("gaussian(deviation=20, on=steps)"))
    assert declared_noise.lacking(ten).startswith("messages of 2 of 2 clients")
    cut = "gaussian(deviation=20, on=steps) + pruning(ratio=0.5)"
    assert declared_noise.lacking(view._replace(defense=specs.parse(cut))) == ""


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_an_audit_under_noise_that_is_not_there_concludes_nothing(
    linear, record, share
):
    rows, rng = pd.read_csv(linear / "rows.csv"), np.random.default_rng(0)
    deviation = 0.1 * 32 / 30  # rate times sigma over the rows of a full batch

    def change(_, model, returned):
        for client, theirs in returned.items():
            for name, leaf in theirs.items():
                moved = 1e-3 * (client + rng.normal(size=leaf.shape))
                noise = share * deviation * rng.normal(size=leaf.shape)
                theirs[name] = model[name] - moved + noise

    record(linear / "seen", rows, change=change)
    findings = fljax.audit(
        linear / "seen", rows, defense="dp_sgd(clip=1, sigma=32)", **_TOLD
    )
    said = "of 2 clients have less than a tenth of the noise's variance that dp_sgd"
    ceiling = findings.audited.ceiling
    if share:
        assert not findings.audited.fit.lacking and ceiling.percent is not None
    else:
        line = next(each for each in findings.lines if each.attack == "model")
        assert line.verdict == MISFIT and f"messages of 2 {said}" in line.detail
        assert findings.outcome == "no_conclusion" and said in findings.summary[0]
        assert ceiling.percent is None and any(said in n for n in findings.notes)
