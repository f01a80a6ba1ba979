"""Audits of what somebody recorded who sees no single messages."""

import numpy as np
import pandas as pd
import pytest

import fljax
from fljax import transcript
from fljax.auditing import case, fits, inputs, recording, words
from fljax.auditing import settings as s
from fljax.transcript import sums

_KNOWN = {"target": "y", "sensitive": "married", "model": "linear"}


@pytest.fixture
def recorded(linear):
    """Records the linear federation as others see it: (rows, record)."""
    seen, about = transcript.load(linear / "seen")
    rows = pd.read_csv(linear / "rows.csv")
    server = sums.Server(np.array([4, 7]), np.array([30.0, 30.0]))

    def record(sees, **more):
        stem = linear / sees
        if sees == "sum":
            transcript.save(stem, sums.add_up(seen, server), about | more)
            return stem
        stem.with_suffix(".npz").unlink(missing_ok=True)
        with transcript.Recorder(stem, about | more) as recorder:
            for at, number in enumerate(seen.round if sees == "models" else [0]):
                model = {k: leaf[at] for k, leaf in _flat(seen.params).items()}
                recorder.record_model(int(number), model)
        return stem

    return rows, record


def _flat(tree):
    return {f"{a}/{b}": leaf for a, part in tree.items() for b, leaf in part.items()}


@pytest.mark.parametrize(
    "sees", ["sum", pytest.param("models", marks=pytest.mark.slow), "final"]
)
def test_an_audit_says_who_the_adversary_is(recorded, sees):
    rows, record = recorded
    found = fljax.audit(
        record(sees), rows, client_column="client", attacks=["model", "reconstruct"],
        controls=("imputation", "others"), **_KNOWN,
    )  # fmt: skip
    lines = {line.attack: line for line in found.lines}
    assert lines["model"].setting == sees
    assert len(lines["model"].clients) == 2
    assert "the adversary sees only" in lines["reconstruct"].detail
    assert any("controls=others needs" in note for note in found.notes)
    assumed = any("Only global models" in note for note in found.notes)
    assert assumed == (sees == "models")


@pytest.mark.parametrize(
    ("groups", "setting", "said"),
    [
        ([[4], [7]], "sum_of_1", "sums of single clients, which are their messages"),
        ([[4, 7]], "sum", "sums of all clients' messages"),
        (
            [[4, 7], [4]],
            "sum_of_1_to_2",
            "1 to 2 clients' messages, some a single client's,",
        ),
    ],
)
def test_sums_are_said_to_be_of_as_many_as_they_are(
    linear, recorded, groups, setting, said
):
    (rows, _), (seen, about) = recorded, transcript.load(linear / "seen")
    with transcript.Recorder(linear / "sums", about) as recorder:
        for at, number in enumerate(seen.round):
            model = {k: leaf[at] for k, leaf in _flat(seen.params).items()}
            moved = {k: leaf[at] for k, leaf in _flat(seen.delta).items()}
            some = groups[at % len(groups)] if setting == "sum_of_1_to_2" else None
            whole = [
                (
                    dict.fromkeys(members, 30.0),
                    {
                        k: model[k] - leaf[[[4, 7].index(m) for m in members]].mean(0)
                        for k, leaf in moved.items()
                    },
                )
                for members in ([some] if some else groups)
            ]
            recorder.record_sums(int(number), model, whole)
    found = fljax.audit(
        linear / "sums", rows, client_column="client", attacks=["model"], **_KNOWN
    )
    (line,) = (each for each in found.lines if each.attack == "model")
    assert line.setting == setting
    assert said in words.who(setting)


def test_global_models_need_to_know_whose_rows_made_them(recorded):
    rows, record = recorded
    with pytest.raises(ValueError, match="client_column: .* global models only"):
        fljax.audit(record("models"), rows, attacks=["model"], **_KNOWN)
    stem = record("models", participation="uniform")
    found = fljax.audit(
        stem, rows, client_column="client", attacks=["trajectory"], **_KNOWN
    )
    assert "who is in each sum" in found.lines[0].detail
    assert not any("taken for the mean" in note for note in found.notes)


def test_who_is_in_the_same_sums_is_no_stranger_to_them(recorded):
    rows, record = recorded
    told = {"client_column": "client", "attacks": ["model"], **_KNOWN}
    others = rows.assign(client=99, height=rows.height + 1)
    for given, there in ((rows, False), (pd.concat([rows, others]), True)):
        found = fljax.audit(record("sum"), given, **told)
        line = next(line for line in found.lines if line.attack == "model")
        assert ("strangers" in {gain.name for gain in line.gains}) == there
        said = any("there are no strangers" in note for note in found.notes)
        assert said != there


def test_models_of_rounds_apart_make_no_sums(tmp_path):
    with transcript.Recorder(tmp_path / "apart") as recorder:
        for number in (0, 2, 4):
            recorder.record_model(number, {"w": np.full(2, float(number))})
    read = recording.read(str(tmp_path / "apart"))
    (said,) = recording.notes(read)
    assert read.sees == "final" and "Record every round" in said
    assert len(recording.with_sums(read, np.array([0, 1])).seen.round) == 1


def test_who_leaves_members_of_sums_out_is_told(recorded):
    rows, record = recorded
    found = fljax.audit(
        record("sum"), rows, client_column="client", client=[4], attacks=["trajectory"],
        controls=[], **_KNOWN,
    )  # fmt: skip
    assert any("client leaves out 1 of 2 clients" in note for note in found.notes)
    assert "has none of client 7" in found.lines[0].detail


def test_one_final_model_needs_no_column_of_whose_rows_made_it(recorded):
    rows, record = recorded
    found = fljax.audit(
        record("final"), rows.drop(columns="client"), attacks=["model"], **_KNOWN
    )
    assert found.lines[0].setting == "final"
    assert any("there are no strangers" in note for note in found.notes)


def _summed(stem, frame, true, told):
    """Linear regression of two clients, whose server weighs them by `true`."""
    about = {"batch_size": None, "learning_rate": 0.05, "local_epochs": 1}
    model = {"out/kernel": np.zeros((3, 1)), "out/bias": np.zeros(1)}
    with transcript.Recorder(stem, about) as recorder:
        for number in range(15):
            moved = {name: np.zeros_like(leaf) for name, leaf in model.items()}
            for weight, (_, mine) in zip(true, frame.groupby("client"), strict=True):
                x = mine[["age", "married", "height"]].to_numpy(float)
                fit = x @ model["out/kernel"][:, 0] + model["out/bias"]
                error = fit - mine.y.to_numpy()
                step = 0.1 * weight / sum(true)
                moved["out/kernel"] -= step * x.T @ error[:, None] / len(x)
                moved["out/bias"] -= step * error.mean()
            after = {name: leaf + moved[name] for name, leaf in model.items()}
            whole = dict(zip((4, 7), told, strict=True)), after
            recorder.record_sums(number, model, [whole])
            model = after


@pytest.mark.parametrize(
    ("true", "told", "said"),
    [
        pytest.param(
            [1.0, 1.0],
            [10.0, 50.0],
            "the server takes the plain mean of clients",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            [10.0, 50.0],
            [1.0, 1.0],
            "the server weighs clients by their rows",
            marks=pytest.mark.slow,
        ),
        ([1.0, 1.0], [1.0, 1.0], ""),
    ],
)
def test_other_weights_than_were_told_are_named(linear, config, true, told, said):
    frame = pd.read_csv(linear / "rows.csv").assign(client=[4] * 10 + [7] * 50)
    frame["y"] += np.where(frame.client == 4, 3.0, -1.0)
    frame.to_csv(linear / "rows.csv", index=False)
    _summed(linear / "uneven", frame, true, told)
    audit = config(linear, transcript=str(linear / "uneven"))
    ready = case.prepare(audit, inputs.read(audit.files, audit.rows))
    found = fits.of_rows(ready.view, ready.truth, s.simulation(audit.audit), 100)
    assert found.misfit is not None and (found.misfit.max() > 3) == bool(said)
    assert said in found.slip and bool(said) == bool(found.slip)
