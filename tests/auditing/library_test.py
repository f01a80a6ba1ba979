"""`fljax.audit` from Python, as notebooks call it."""

import jax
import numpy as np
import pandas as pd
import pytest

import fljax
from experiments.report import finished
from fljax import fit, models, transcript, verdicts
from fljax.attacks.estimates import Prediction
from fljax.attacks.needs import Needs
from fljax.attacks.spec import AttackSpec
from fljax.auditing import ceilings
from fljax.auditing.lines import Line, Number

_TOLD = {
    "target": "y", "sensitive": "married", "client_column": "client",
    "attacks": ("model", "reconstruct", "label_distribution"),
}  # fmt: skip


@pytest.fixture
def rows(linear):
    return pd.read_csv(linear / "rows.csv")


def test_an_audit_in_one_call(linear, rows):
    findings = fljax.audit(linear / "seen", rows, **_TOLD)
    # Married is a third of the target, which the adversary knows; models are random.
    assert findings.verdicts["reconstruct"].startswith(fit.UNLEARNT)
    assert "multiclass" in findings.verdicts["predictor"]
    table = findings.table.set_index("attack")
    assert table.value["reconstruct"] > 95 and table.baseline["reconstruct"] < 70
    assert table.imputation["reconstruct"] > 80 and table.strangers["reconstruct"] > 80
    assert np.isnan(table.value["predictor"])
    records = findings.records
    assert list(records.row) == list(range(60))
    hits = records.reconstruct.astype(int) == rows.married
    assert 100 * hits.mean() == table.value["reconstruct"]
    assert str(findings).splitlines() == [*findings.summary, *findings.notes]
    shown = findings._repr_html_()
    assert shown.startswith("<table>") and "reconstruct" in shown


def test_files_arrays_and_frames_give_the_same(linear, rows):
    seen, _ = transcript.load(linear / "seen")
    told = {**_TOLD, "batch_size": 0, "learning_rate": 0.1, "local_epochs": 1}
    one = fljax.audit(seen, rows, **told)
    other = fljax.audit(str(linear / "seen"), str(linear / "rows.csv"), **_TOLD)
    pd.testing.assert_frame_equal(one.table, other.table)
    pd.testing.assert_frame_equal(one.records, other.records)


def test_permuted_targets_are_attacked_on_request(linear, rows):
    told = _TOLD | {"attacks": ("model",), "controls": ("permuted",)}
    findings = fljax.audit(linear / "seen", rows, **told)
    (line, _) = findings.lines
    assert list(line.total.references) == ["majority", "permuted"]
    again = fljax.audit(linear / "seen", rows, **told)
    assert again.lines[0].total.references == line.total.references


def test_what_is_saved_can_be_reported(linear, rows, tmp_path):
    findings = fljax.audit(linear / "seen", rows, **_TOLD)
    findings.save(tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"rows.jsonl", "manifest.json", "records.csv", "report.html"}
    run = finished.read(tmp_path / "out", ("audit",))
    assert run.manifest["verdicts"] == findings.verdicts


def test_a_folder_of_somebody_elses_is_left_alone(linear, rows, tmp_path):
    findings = fljax.audit(linear / "seen", rows, **_TOLD | {"attacks": ("model",)})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="^folder: .* holds files .* choose another"):
        findings.save(tmp_path / "mine")


@pytest.mark.slow
def test_an_audit_of_other_rows_or_messages_has_a_folder_of_its_own(
    linear, rows, tmp_path
):
    seen, about = transcript.load(linear / "seen")
    told = _TOLD | about | {"attacks": ("model",), "controls": ()}
    told = told | {"batch_size": 0}

    def saved(seen, rows):
        fljax.audit(seen, rows, **told).save(tmp_path / "out")

    saved(seen, rows)
    saved(seen, rows)
    refused = "^folder: .* of other rows or messages; choose another folder"
    twice = jax.tree.map(lambda leaf: 2 * leaf, seen.delta)
    with pytest.raises(ValueError, match=refused):
        saved(seen._replace(delta=twice), rows)
    with pytest.raises(ValueError, match=refused):
        saved(seen, rows.assign(married=1 - rows.married))


def test_where_no_attack_could_be_run_nothing_is_concluded(linear, rows):
    told = _TOLD | {"attacks": ("inversion", "predictor"), "controls": ()}
    (said,) = fljax.audit(linear / "seen", rows, **told).summary[:1]
    assert said.startswith("No conclusion about married: no attack could be run: ")
    assert "predictor: needs a multiclass target; inversion: " in said


@pytest.mark.slow
def test_a_sensitive_number_is_estimated_in_the_units_of_the_file(linear, rows):
    told = _TOLD | {"sensitive": "age", "attacks": ("reconstruct",), "controls": ()}
    findings = fljax.audit(linear / "seen", rows, standardise=False, **told)
    error = np.abs(findings.records.reconstruct - rows.age).mean()
    assert findings.table.value[0] == pytest.approx(error, rel=1e-4)


def test_an_attack_of_ones_own(linear, rows):
    def run(view, settings):
        return {"zeros": Prediction(np.zeros(view.known.y.shape))}  # of floats

    spec = AttackSpec("zeros", Needs(), run)
    findings = fljax.audit(linear / "seen", rows, **_TOLD | {"attacks": (spec,)})
    assert list(findings.verdicts) == ["zeros"]
    assert findings.records.zeros.nunique() == 1


@pytest.mark.slow
def test_options_may_be_numbers_and_lists_of_numpy_and_pandas(linear, rows):
    told = _TOLD | {"attacks": ("model",)}
    one = rows.client.unique()[:1]
    plain = fljax.audit(linear / "seen", rows, **told, client=one.tolist())
    other = fljax.audit(
        linear / "seen", rows, **told, client=one, seed=np.int64(0), drop=pd.Index([])
    )
    pd.testing.assert_frame_equal(plain.records, other.records)


@pytest.mark.parametrize("given", [{"a": [1]}, np.ones((2, 2)), None])
def test_rows_are_a_path_or_a_frame(linear, given):
    said = "^rows: expected a path or a pandas DataFrame, got "
    with pytest.raises(ValueError, match=said):
        fljax.audit(linear / "seen", given, **_TOLD)


def test_a_model_may_be_the_object_itself(linear, rows):
    told = _TOLD | {"attacks": ("model",)}
    own = fljax.audit(linear / "seen", rows, model=models.mlp(3, hidden=()), **told)
    named = fljax.audit(linear / "seen", rows, model="linear", **told)
    pd.testing.assert_frame_equal(own.records, named.records)


def test_errors_are_in_the_words_of_arguments(linear, rows):
    with pytest.raises(ValueError, match="^sensitive: .*no column 'wed'"):
        fljax.audit(linear / "seen", rows, **_TOLD | {"sensitive": "wed"})
    with pytest.raises(ValueError, match="^learning_rate: expected a number > 0"):
        fljax.audit(linear / "seen", rows, **_TOLD, learning_rate=-1.0)
    for name in ("attacks", "drop", "controls"):
        with pytest.raises(
            ValueError, match=f"^{name}: expected a list of names, got 'm"
        ):
            fljax.audit(linear / "seen", rows, **_TOLD | {name: "model"})
    with pytest.raises(
        ValueError, match="^client: expected a list of integers >= 0, g"
    ):
        fljax.audit(linear / "seen", rows, **_TOLD, client=3)
    for name in ("categorical", "drop"):
        with pytest.raises(
            ValueError, match=f"^rows: no column 'ag' of {name}= .did you"
        ):
            fljax.audit(linear / "seen", rows, **_TOLD, **{name: ["ag"]})
    with pytest.raises(ValueError, match="^proxy: rows to encode lack the column 'y'$"):
        fljax.audit(linear / "seen", rows, **_TOLD, proxy=rows.drop(columns="y"))
    with pytest.raises(ValueError, match="^proxy: no rows below the header$"):
        fljax.audit(linear / "seen", rows, **_TOLD, proxy=rows.iloc[:0])
    for wrong in (None, {"w": 1}):
        with pytest.raises(ValueError, match="^transcript: expected a path or a Trans"):
            fljax.audit(wrong, rows, **_TOLD)
    with pytest.raises(ValueError, match="^attacks: .* AttackSpec objects, got one of"):
        fljax.audit(linear / "seen", rows, **_TOLD | {"attacks": [len]})
    with pytest.raises(ValueError, match="^model: expected .* got None"):
        fljax.audit(linear / "seen", rows, **_TOLD | {"model": None})
    with pytest.raises(ValueError, match="unknown attack 'modl'; known: "):
        fljax.audit(linear / "seen", rows, **_TOLD | {"attacks": ["modl"]})
    for name in ("learn", "known", "run_dir", "dry_run"):
        with pytest.raises(TypeError, match=f"no option '{name}'$"):
            fljax.audit(linear / "seen", rows, **_TOLD, **{name: 1})
    with pytest.raises(TypeError, match=r"'optimizer' \(did you mean 'optimiser'\?\)$"):
        fljax.audit(linear / "seen", rows, **_TOLD, optimizer="sgd")
    seen, _ = transcript.load(linear / "seen")
    twice = seen._replace(client=np.full_like(seen.client, 4))
    with pytest.raises(ValueError, match="client 4 twice in round 0"):
        fljax.audit(twice, rows, **_TOLD)


@pytest.mark.slow
def test_warnings_and_notes_are_in_the_words_of_arguments(linear, rows):
    marked = rows.assign(town=np.where(rows.index % 9, "a", "?"))
    marked.loc[rows.index % 4 == 0, "town"] = "b"
    told = _TOLD | {"attacks": ("model",), "drop": [], "learning_rate": 0.3}
    with (
        pytest.warns(
            UserWarning, match="^rows: '.' of 'town' .* missing_codes=. takes"
        ),
        pytest.raises(ValueError, match="the rows make"),
    ):
        fljax.audit(linear / "seen", marked, **told)
    holes = rows.assign(age=rows.age.where(rows.index > 0))
    with pytest.warns(UserWarning, match="^proxy: 1 rows without age are left out$"):
        found = fljax.audit(linear / "seen", rows, **told, missing="drop", proxy=holes)
    assert any("learning_rate=0.3 replaces" in note for note in found.notes)
    assert "proxy: 1 rows without age are left out" in found.notes
    assert not any("--" in note for note in found.notes)


def test_dates_in_a_frame_are_refused_in_the_words_of_arguments(linear, rows):
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(np.arange(len(rows)), "D")
    said = r"^rows: 'day' holds dates such as '2021-03-01', .* with drop=day, or"
    with pytest.raises(ValueError, match=said):
        fljax.audit(linear / "seen", rows.assign(day=days), **_TOLD)


def test_what_no_adversary_is_above_stands_beside_every_accuracy(linear, rows, record):
    rows["y"] = np.random.default_rng(0).normal(size=len(rows)).round(3)
    record(linear / "seen", rows)
    told = _TOLD | {
        "attacks": ("model", "label_distribution"), "controls": ("imputation",),
    }  # fmt: skip
    most = []
    for sigma in (2, 32):
        told["defense"] = f"dp_sgd(clip=1, sigma={sigma})"
        findings = fljax.audit(linear / "seen", rows, **told)
        table = findings.table.set_index("attack")
        most.append(table.ceiling["model"])
        assert np.isnan(table.ceiling["predictor"])
        assert any(f"more than {most[-1]:.1f} %" in note for note in findings.notes)
        assert "any adversary" in findings._repr_html_()
    assert table.baseline["model"] < most[1] < most[0] < 100


def test_an_attack_above_the_ceiling_says_that_the_noise_was_not_as_declared():
    number = Number(99.0, 98.0, 100.0, 1000, {"majority": 50.0})
    line = Line("model", "passive", verdicts.ACCURACY.metric, number, [number], "leaks")
    for percent, broken in ((60.0, True), (99.5, False)):
        limit = ceilings.Ceiling(np.array([percent]))
        (found,), beaten = ceilings.beside([line], limit)
        assert (verdicts.IMPOSSIBLE in found.detail) == broken
        assert ("names 99.0 % of these rows, and" in beaten.note[0]) == broken
    shares = line._replace(metric=verdicts.DISTANCE.metric)
    assert not ceilings.beside([shares], ceilings.Ceiling(np.array([60.0])))[1].note
    few = number._replace(n=3)  # carries half of the mean
    line = line._replace(total=number._replace(n=1003), clients=[number, few])
    (found,), _ = ceilings.beside([line], ceilings.Ceiling(np.array([60.0, 60.0])))
    assert verdicts.IMPOSSIBLE not in found.detail


@pytest.mark.parametrize(
    ("defense", "why"),
    [
        pytest.param("dp_sgd(clip=1, epsilon=8)", "--delta", marks=pytest.mark.slow),
        ("pruning(ratio=0.5)", "nothing is promised"),
    ],
)
def test_where_there_is_no_ceiling_the_reason_is_said(linear, rows, defense, why):
    told = {**_TOLD, "attacks": ("label_distribution",), "defense": defense}
    findings = fljax.audit(linear / "seen", rows, **told)
    assert findings.audited.ceiling.percent is None
    assert any(why in note for note in findings.notes)


@pytest.mark.slow
def test_what_contradicts_the_recording_and_who_has_no_rows_is_said(linear, rows):
    seen, _ = transcript.load(linear / "seen")
    clients = np.unique(seen.client)
    frame = pd.read_csv(rows) if not isinstance(rows, pd.DataFrame) else rows
    column = _TOLD["client_column"]
    others = frame.assign(**{column: frame[column].replace({clients[0]: 99})})
    told = _TOLD | {"attacks": ["model"], "controls": [], "learning_rate": 0.123}
    notes = fljax.audit(linear / "seen", others, **told).notes
    assert any("learning_rate=0.123 replaces the recording's" in note for note in notes)
    both = told | {"local_steps": 2, "local_epochs": 1}
    with pytest.raises(ValueError, match="local_epochs: expected none beside"):
        fljax.audit(linear / "seen", others, **both)
    assert any(f"({clients[0]}) have no row in" in note for note in notes)
    assert any("are of nobody in the transcript" in note for note in notes)
