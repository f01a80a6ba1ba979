"""Less is known: wrong and missing cells, unknown rows; clients and truth stay as they are."""

import jax
import numpy as np
import pytest
from rich.progress import Progress

from experiments.aia import baselines, knowledge, pipeline, program
from experiments.tabular.clients import load_table
from fljax import imputation, results
from fljax.data import load
from fljax.driver.config import ConfigError


@pytest.fixture
def setup(parsed):
    def make(*arguments):
        told = "--attack_kinds=model", "--seeds=0,3", "--partition_clients=3"
        parts = program.Settings(*parsed(program.PROGRAM, *told, *arguments))
        return pipeline.prepare(load_table(parts.data), parts, "")

    return make


def _changed(made, exact):
    """Share of the public cells that differ, of numbers and of codes."""
    mask = made.targets.mask
    pairs = zip(made.known.public, exact.known.public, strict=True)
    return [float((a != b)[mask].mean()) if a.shape[-1] else 0.0 for a, b in pairs]


def test_everything_is_known_unless_told_otherwise(setup):
    made = setup()
    known = knowledge.degraded(made)
    assert known is made.known
    np.testing.assert_array_equal(knowledge.of_rows(made), made.targets.mask)


@pytest.mark.parametrize("flag", ["noise", "missing"])
def test_so_many_cells_are_wrong_or_missing_and_nothing_else_changes(setup, flag):
    exact, less, more = (setup(f"--knowledge_{flag}={s}") for s in (0, 0.2, 0.6))
    shares = [_changed(made, exact)[0] for made in (less, more)]
    assert shares == pytest.approx([0.2, 0.6], abs=0.05)
    pairs = zip(less.known.public, more.known.public, strict=True)
    was = zip(pairs, exact.known.public, strict=True)
    assert all((b != c)[a != c].mean() > 0.9 for (a, b), c in was if c.shape[-1])
    for made in (less, more):
        jax.tree.map(np.testing.assert_array_equal, made.targets, exact.targets)
        jax.tree.map(
            np.testing.assert_array_equal, made.clients.rows, exact.clients.rows
        )
        np.testing.assert_array_equal(made.known.y, exact.known.y)
        assert not made.known.public.numeric[~made.targets.mask].any()
    again = setup(f"--knowledge_{flag}=0.2")
    jax.tree.map(np.testing.assert_array_equal, again.known, less.known)


def test_a_categorys_dummies_are_wrong_or_missing_together(setup, tmp_path):
    frame = load("diabetes").frame
    five = np.array(list("abcde"))[np.arange(len(frame)) % 5]
    frame.assign(kind=five).to_csv(tmp_path / "people.csv", index=False)
    told = f"--data_path={tmp_path}/people.csv", "--data_target=progression"
    told += "--data_name=csv", "--data_sensitive=sex", "--data_preset=linear"
    exact = setup(*told)
    names = exact.clients.datasets[0].encoder.numeric_names
    place = [at for at, name in enumerate(names) if name.startswith("kind_")]
    true, mask = exact.known.public.numeric[..., place], exact.targets.mask
    noisy = setup(*told, "--knowledge_noise=0.5").known.public.numeric[..., place]
    assert (
        len(np.unique(noisy[mask], axis=0)) == len(np.unique(true[mask], axis=0)) == 5
    )
    assert (noisy != true)[mask].any(axis=-1).mean() == pytest.approx(0.4, abs=0.05)
    gone = setup(*told, "--knowledge_missing=0.5").known.public.numeric[..., place]
    changed = (gone != true)[mask]
    np.testing.assert_array_equal(changed.all(axis=-1), changed.any(axis=-1))


def test_what_is_missing_is_the_columns_mean_and_categories_stay_categories(setup):
    gone = setup("--knowledge_missing=1").known
    assert not gone.public.numeric.any() and not gone.public.codes.any()
    exact = setup()
    some = setup("--knowledge_missing=0.5")
    mask = some.targets.mask[0, 0]
    numeric, true = some.known.public.numeric[0, 0], exact.known.public.numeric[0, 0]
    for number in range(numeric.shape[1]):
        wrong = numeric[mask, number] != true[mask, number]
        left = true[mask, number][~wrong].mean()
        np.testing.assert_allclose(numeric[mask, number][wrong], left, atol=1e-5)


def test_unknown_rows_are_others_and_are_not_scored(setup):
    exact, made, fewer = (setup(f"--knowledge_rows={s}") for s in (1, 0.5, 0.2))
    rows, few = knowledge.of_rows(made), knowledge.of_rows(fewer)
    assert not (few & ~rows).any() and not (rows & ~exact.targets.mask).any()
    counts = made.clients.sizes
    np.testing.assert_array_equal(rows.sum(-1), np.round(0.5 * counts))
    same = (made.known.public.numeric == exact.known.public.numeric).all(-1)
    assert same[rows].all() and not same[made.targets.mask & ~rows].any()
    np.testing.assert_array_equal(made.known.mask, exact.known.mask)
    held = made.clients.datasets[0].test.y
    strange = made.known.y[0, 0][(made.targets.mask & ~rows)[0, 0]]
    assert np.isin(strange, [*held, *exact.known.y[0, 1:].ravel()]).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--knowledge_noise=0.1", "--attack_score=pooled"], "--attack_score=own"),
        (["--knowledge_rows=0.5", "--save_guesses"], "--save_guesses"),
    ],
    ids=["pooled", "guesses"],
)
def test_flags_that_do_not_fit_are_refused(setup, arguments, said):
    with pytest.raises(ConfigError, match=said):
        setup(*arguments)


@pytest.mark.slow
def test_only_known_rows_are_scored(run, tmp_path):
    code, _, errors = run("--sweep=knowledge_rows=0.5", "--attack_kinds=model")
    assert code == 0, errors
    rows = results.read_rows(tmp_path / "out" / "rows.jsonl")
    counts = {
        row.n
        for row in rows
        if row.attack in ("model", "majority") and row.client == "all"
        if row.metric == "aia_accuracy_percent"
    }
    assert counts == {199}  # of 198 and 199 rows of two clients


def test_unknown_targets_are_what_other_peoples_rows_say_of_them(setup, monkeypatch):
    monkeypatch.setattr(imputation, "choose", lambda *_: imputation.LINEAR)
    few = "--seeds=0", "--partition_clients=2"
    exact, half, none = (setup(f"--knowledge_targets={s}", *few) for s in (1, 0.5, 0))
    mask, true = exact.targets.mask, exact.known.y
    assert (half.known.y != true)[mask].mean() == pytest.approx(0.5, abs=0.02)
    assert ((half.known.y != true) <= (none.known.y != true)).all()
    told = none.known.y[mask], true[mask]
    assert 0.3 < np.corrcoef(*told)[0, 1] < 0.9 and (told[0] != told[1]).all()
    for made in (half, none):
        jax.tree.map(np.testing.assert_array_equal, made.targets, exact.targets)
        same = zip(made.known.public, exact.known.public, strict=True)
        assert all((a == b).all() for a, b in same)
        np.testing.assert_array_equal(made.known.y[~mask], true[~mask])


@pytest.mark.slow
def test_imputation_is_done_from_what_is_known_too(setup):
    made = setup("--knowledge_missing=1", "--seeds=0")
    assert knowledge.is_exact(setup("--knowledge_rows=0.5").config.knowledge)
    shared, bars = baselines.Shared(), Progress(disable=True)
    labels = results.Labels("aia", "diabetes", "mlp")
    rows = baselines.imputed(made, labels, made.targets, None, shared, bars).rows
    found = {row.setting: row.value for row in rows if row.client == "all"}
    # Without any column but the target little is left.
    assert found["as_known"] < found["baseline"] - 5


@pytest.mark.slow
def test_unknown_targets_are_learned_from_rows_of_others_alone(setup, monkeypatch):
    made, learned = setup("--knowledge_targets=0.5"), []

    def impute(people, x, seed):
        learned.append(len(people.value))
        return np.zeros(len(x))

    monkeypatch.setattr(knowledge.imputation, "impute", impute)
    knowledge.degraded(made)
    assert learned == (442 - made.clients.sizes.ravel()).tolist()
