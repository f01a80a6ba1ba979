"""What messages show of a training that was not declared."""

import numpy as np
import pandas as pd
import pytest

import fljax
from fljax.attacks.adversary import AdversaryView, LocalTraining
from fljax.auditing import undeclared
from fljax.auditing.lines import MISFIT
from fljax.defenses import specs
from fljax.transcript import views
from fljax.types import Known, Transcript

_ROUNDS, _WIDTH = 20, 40
_RNG = np.random.default_rng(0)
_SENT = np.random.default_rng(1).normal(size=(_ROUNDS, _WIDTH)).astype(np.float32)
_PLAIN = _RNG.normal(size=(_ROUNDS, _WIDTH)) * np.linspace(2, 0.1, _ROUNDS)[:, None]


def _largest(moved, share):
    """What is sent of each row with error feedback, and the rest kept for the next."""
    kept, sent = np.zeros(moved.shape[1]), np.zeros(moved.shape)
    for number, each in enumerate(moved):
        kept = kept + each
        chosen = np.abs(kept) >= np.quantile(np.abs(kept), 1 - share)
        sent[number], kept = np.where(chosen, kept, 0), np.where(chosen, 0, kept)
    return sent


def _spoilt(every):
    moved = _PLAIN.copy()
    moved[1::every] += 40
    return moved


def _dying(moved):
    """Units that stop, one after the other."""
    return np.where(
        np.arange(_WIDTH) + _ROUNDS - 25 < np.arange(_ROUNDS)[:, None], 0, moved
    )


@pytest.fixture
def view():
    """The view of an adversary of two clients, the first of whom sends plain messages."""

    def make(moved, names=("w",), **about):
        both, sent = np.stack([_PLAIN, moved], axis=1), _SENT
        parts = np.split(np.arange(_WIDTH), len(names))
        seen = Transcript(
            np.arange(_ROUNDS), np.tile([0, 1], (_ROUNDS, 1)),
            {n: sent[:, at] for n, at in zip(names, parts, strict=True)},
            {n: both[..., at] for n, at in zip(names, parts, strict=True)},
        )  # fmt: skip
        told = LocalTraining(batch_size=10, learning_rate=0.1, epochs=1)
        made = AdversaryView(
            seen, views.client_view(seen, [0, 1]), np.array([0, 1]),
            Known(None, np.zeros((2, 10)), np.ones((2, 10), bool)), np.eye(2), False, None,
            None, "regression", 1, False, told, 0,
        )  # fmt: skip
        return made._replace(**about)

    return make


@pytest.mark.parametrize(
    "moved",
    [_PLAIN, _dying(_PLAIN), np.r_[10 * _PLAIN[:5], _PLAIN[5:]], 0 * _PLAIN],
    ids=["plain", "units that stop", "a rate that falls", "nothing"],
)
def test_plain_messages_show_nothing(view, moved):
    assert undeclared.found(view(moved)) == ""


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        (_spoilt(2), "two kinds"),
        (_spoilt(10), "two kinds"),
        (
            np.where(np.arange(_ROUNDS)[:, None] % 3, _PLAIN, _SENT + 0.1 * _PLAIN),
            "two kinds",
        ),
        (_largest(_PLAIN, 0.1), "the largest"),
        (_largest(_PLAIN, 0.5), "the largest"),
        (np.sign(_PLAIN) * np.abs(_PLAIN).mean(axis=1, keepdims=True), "their signs"),
    ],
    ids=[
        "every second",
        "every tenth",
        "a change as a model",
        "a tenth",
        "half",
        "signs",
    ],
)
def test_another_training_shows_in_the_messages_of_who_has_it(view, moved, said):
    found = undeclared.found(view(moved))
    assert found.startswith("messages of 1 of 2 clients ") and said in found
    declared = view(moved, defense=specs.parse("dssgd(fraction=0.1)"))
    assert undeclared.found(declared) == ""
    assert undeclared.found(view(moved, sees="sums")) == ""


def test_signs_of_adam_and_rows_that_are_not_all_visited_are_no_sign(view):
    signs, rare = np.sign(_PLAIN), _largest(_PLAIN, 0.1)
    told = LocalTraining(batch_size=10, learning_rate=0.1, steps=1)
    assert undeclared.found(view(signs, training=told._replace(optimiser="adam"))) == ""
    assert undeclared.found(view(rare, training=told)) == ""


@pytest.mark.parametrize("moved", [_spoilt(2), _largest(_PLAIN, 0.1), np.sign(_PLAIN)])
def test_of_few_rows_in_a_round_honest_messages_do_so_too(view, moved):
    few = LocalTraining(batch_size=1, learning_rate=0.1, steps=4)
    assert undeclared.found(view(moved, training=few)) == ""
    known = Known(None, np.zeros((2, 9)), np.ones((2, 9), bool))
    assert undeclared.found(view(moved, known=known)) == ""


def test_sizes_that_differ_without_a_gap_are_of_one_kind(view):
    sizes = 10 ** np.random.default_rng(0).uniform(-2, 1, _ROUNDS)[:, None]
    assert (
        undeclared.found(view(_PLAIN / np.abs(_PLAIN).mean(axis=1)[:, None] * sizes))
        == ""
    )


def test_what_fewer_than_half_of_the_clients_show_is_not_said(view):
    two = view(_spoilt(2))
    moved = two.transcript.delta["w"][:, [0, 0, 1]]
    seen = two.transcript._replace(
        client=np.tile([0, 1, 2], (_ROUNDS, 1)), delta={"w": moved}
    )
    three = two._replace(
        transcript=seen, messages=views.client_view(seen, [0, 1, 2]),
        known=Known(None, np.zeros((3, 10)), np.ones((3, 10), bool)),
    )  # fmt: skip
    assert undeclared.found(three) == ""


def test_signs_are_told_array_by_array(view):
    scale = np.repeat([1, 7], _WIDTH // 2)
    assert "signs" in undeclared.found(view(np.sign(_PLAIN) * scale, names=("a", "b")))


def test_batch_norm_is_told_while_it_counts(view):
    names = "layer/kernel", "layer/running_mean"
    assert "batch norm" in undeclared.found(view(_PLAIN, names))
    still = view(_PLAIN, names)
    still.transcript.params["layer/running_mean"][:] = 0
    assert "batch norm" in undeclared.found(still)  # sent as it was, returned moved
    still.transcript.delta["layer/running_mean"][:] = 0
    assert undeclared.found(still) == ""


@pytest.mark.slow
def test_what_an_audit_would_miss_is_no_conclusion():
    seen, frame = _federation()
    found = fljax.audit(
        seen, frame, target="y", sensitive="married", client_column="client",
        batch_size=15, learning_rate=0.1, local_epochs=1,
        attacks=("linear_inversion",),
    )  # fmt: skip
    assert {line.verdict for line in found.lines} == {MISFIT}
    assert found.outcome == "no_conclusion"
    assert "of 2 clients are of two kinds" in found.summary[0]


def _federation():
    """Two clients' linear regression, in every second round recorded in another unit."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 2)), columns=["age", "height"])
    frame["married"], frame["client"] = rng.integers(0, 2, 120), np.arange(120) % 3
    tells = frame.age + 0.4 * frame.married - frame.height
    frame["y"] = tells + 0.5 * rng.normal(size=120)
    frame.loc[frame.client == 2, "client"] = -1  # strangers
    model, sent, delta = np.zeros((4, 1)), [], []
    for number in range(30):
        sent.append(model)
        moves = []
        for client in range(2):
            mine, own = model, frame[frame.client == client]
            for batch in np.array_split(rng.permutation(len(own)), 4):
                some = own.iloc[batch]
                x = np.c_[some[["age", "height", "married"]], np.ones(len(some))]
                errors = x @ mine - some[["y"]].to_numpy()
                mine = mine - 0.2 * x.T @ errors / len(some)
            moves.append(model - mine)
        model = model - np.mean(moves, axis=0)
        delta.append(np.array(moves) * (1000 if number % 2 else 1))
    kernel, bias = (np.float32(np.stack(each)) for each in (sent, delta))
    seen = Transcript(
        np.arange(30), np.tile([0, 1], (30, 1)),
        {"Dense_0": {"kernel": kernel[:, :3], "bias": kernel[:, 3]}},
        {"Dense_0": {"kernel": bias[:, :, :3], "bias": bias[:, :, 3]}},
    )  # fmt: skip
    return seen, frame
