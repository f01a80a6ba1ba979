"""Rows of other people, to whom the messages say nothing of their own."""

import numpy as np
import pandas as pd
import pytest

import fljax
from fljax import attack_names, verdicts
from fljax.attacks.estimates import Prediction
from fljax.auditing import case, doubts, inputs, population, reporting, scoring
from fljax.auditing.measuring import Controls
from fljax.auditing.population import Strangers
from fljax.auditing.truth import Truth

_SHAPE = (4, 200)  # clients, rows


def _people(rng) -> Truth:
    of_rows = np.zeros((*_SHAPE, 1)), np.ones(1)
    sensitive = rng.integers(0, 2, _SHAPE)
    return Truth(sensitive, np.ones(_SHAPE, bool), 1.0, np.zeros((4, 2)), *of_rows)


def _lowest_gain(rows) -> float:
    """Of an attack that names all rows of clients, and half of these strangers'."""
    rng = np.random.default_rng(0)
    own, strange = _people(rng), _people(rng)
    estimates = {"attack": Prediction(rng.integers(0, 2, _SHAPE))}
    uses = Strangers(None, strange, list(rows)).uses
    controls = Controls(None, estimates, strange, uses)
    told = {"attack": Prediction(own.sensitive)}
    (line,) = scoring.lines(told, own, continuous=False, controls=controls)
    (gain,) = (each for each in line.gains if each.name == "strangers")
    return gain.low


def test_the_same_few_strangers_of_every_client_tell_less():
    distinct = np.arange(800).reshape(_SHAPE)
    assert _lowest_gain(distinct % 200) < _lowest_gain(distinct) - 2  # percent points


@pytest.mark.parametrize("continuous", [False, True])
def test_what_others_messages_tell_of_a_clients_rows_is_no_leak_of_its_own(continuous):
    rng = np.random.default_rng(0)
    own, strange = _people(rng), _people(rng)
    if continuous:
        own, strange = (
            each._replace(sensitive=rng.normal(size=_SHAPE)) for each in (own, strange)
        )
    unlike = {"attack": Prediction(rng.permuted(strange.sensitive, axis=1))}
    read = {"attack": Prediction(own.sensitive)}
    controls = Controls(None, unlike, strange)
    told = {"continuous": continuous}
    (line,) = scoring.lines(read, own, controls=controls, **told)
    assert line.verdict == verdicts.LEAKS
    controls = controls._replace(others=read)  # who are of the clients' kind
    (line,) = scoring.lines(read, own, controls=controls, **told)
    assert line.verdict in doubts.QUIET
    assert verdicts.OTHERS in line.total.references


def test_an_audit_takes_others_messages_where_there_are_any(linear):
    findings = fljax.audit(
        linear / "seen", pd.read_csv(linear / "rows.csv"), target="y",
        sensitive="married", client_column="client", attacks=("model", "reconstruct"),
        controls=("imputation", "others"),
    )  # fmt: skip
    lines = {line.attack: line for line in findings.lines}
    told = lines["reconstruct"].total.references
    assert told[verdicts.OTHERS] > 90  # of a model that all have in common
    assert not any("--controls=others needs" in note for note in findings.notes)
    names = {row.attack for row in reporting.results(findings).rows}
    assert {"model_others", "reconstruct_others"} <= names
    assert not attack_names.is_judged("reconstruct_others", "passive")
    shown = findings.table.set_index("attack")[verdicts.OTHERS]
    assert shown["reconstruct"] == told[verdicts.OTHERS]
    assert ">others</th>" in findings._repr_html_()
    shown = reporting.screen(findings)
    table = next(each for each in shown if hasattr(each, "columns"))
    assert "others" in str([column.header for column in table.columns])


def test_strangers_are_nobodys_rows_first_and_never_the_clients_own(monkeypatch):
    monkeypatch.setattr(population.rows_lib, "split", lambda *_: (None, None))
    own = [np.arange(6), np.arange(6, 12)]
    owner = np.repeat([0, 1, -1], [6, 6, 4])
    everyone = population.Everyone(None, owner, own, None)
    drawn = population.strangers(everyone, None, 1, seed=0).rows
    for client, rows in enumerate(drawn):
        assert len(set(rows)) == 6
        assert owner[rows].tolist() == [-1] * 4 + [1 - client] * 2


def test_rows_of_participants_who_are_not_audited_are_somebodys(monkeypatch):
    monkeypatch.setattr(population.rows_lib, "split", lambda *_: (None, None))
    owner = np.repeat([0, -1, -1], [6, 6, 4])
    everyone = population.Everyone(None, owner, [np.arange(6)], None)
    everyone = everyone.with_others(np.repeat([3, 5, 9], [6, 6, 4]), np.array([3, 5]))
    (rows,) = population.strangers(everyone, None, 1, seed=0).rows
    assert set(rows[:4]) == {12, 13, 14, 15} and len(rows) == 6


@pytest.mark.parametrize(
    ("clients", "controls", "told"),
    [
        ([4], ("imputation", "strangers"), True),
        ([4], ("imputation",), False),
        ([4, 7], ("imputation", "strangers"), False),
    ],
    ids=["one client", "not asked for", "others are there"],
)
def test_that_there_are_no_strangers_is_told(linear, config, clients, controls, told):
    rows = pd.read_csv(linear / "rows.csv")
    rows[rows.client.isin(clients)].to_csv(linear / "rows.csv", index=False)
    chosen = config(linear, controls=controls)
    notes = case.prepare(chosen, inputs.read(chosen.files, chosen.rows)).notes
    said = "All rows are of one client, so that there are no strangers"
    assert any(note.startswith(said) for note in notes) == told
