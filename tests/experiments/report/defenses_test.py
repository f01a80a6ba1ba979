"""Which defense would have stopped this?"""

import pytest

from experiments.report import claims, defenses
from experiments.report.cards import card as card_of
from experiments.report.tables import Mark
from fljax import verdicts


def _text(cell):
    return cell.text if isinstance(cell, Mark) else cell


def _run(rows, name="run", *, attack=(74.0, 75.0, 76.0), loss=2.0, flags=(), **fields):
    made = rows(57.0, 57.0, 57.0, attack="majority", **fields)
    made += rows(*attack, **fields)
    for when in ("round_9", "round_10"):
        made += rows(
            loss, loss, loss, attack="none", setting=when, metric="test_loss", **fields
        )
    if fields.get("defense"):
        about = {"attack": "none", "setting": "defense", "metric": "epsilon_rdp"}
        made += rows(1.0, 1.0, 1.0, **fields | about)
    return card_of(name, made, {"flags": dict(flags)}, None)


def _only(cards):
    ((key, variants),) = defenses.groups(cards).items()
    return key, variants


def _compared(cards):
    (found,) = defenses.comparisons(cards)
    return found


def _cells(comparison):
    return [[_text(cell) for cell in line] for line in comparison.table.body]


def test_runs_on_other_files_of_one_name_do_not(rows):
    def on(digest, name, **fields):
        run = _run(rows, name, **fields)
        return run._replace(manifest={**run.manifest, "data": [{"sha256": digest}]})

    bare, other = on("1", "a"), on("2", "b", defense="dp_sgd")
    assert not defenses.groups([bare, other])
    both = [bare, other, on("1", "c", defense="median"), on("2", "d")]
    assert list(defenses.groups(both)) == [
        "medical, mlp, runs a, c", "medical, mlp, runs b, d"
    ]  # fmt: skip


def test_runs_that_differ_in_the_defense_stand_side_by_side(rows):
    defended = _run(rows, "b", defense="dp_sgd", attack=(56.9, 57.2, 57.5), loss=3.0)
    key, variants = _only([defended, _run(rows, "a")])
    assert key == "medical, mlp"
    assert [v.label for v in variants] == ["no defense", "dp_sgd, epsilon 1"]
    compared = _compared([defended, _run(rows, "a")])
    assert _cells(compared) == [
        ["majority", "baseline", "57.00 [57.00, 57.00]", "57.00 [57.00, 57.00]"],
        ["model", "passive", "75.00 [72.52, 77.48] leaks",
         "57.20 [56.45, 57.95] stopped"],
        ["loss of the last model sent", "", "2", "3, x 1.50"],
    ]  # fmt: skip
    assert compared.figure.startswith(b"<svg ")


def test_what_no_adversary_can_have_has_a_line_and_is_marked_where_it_is_beaten(rows):
    about = {"attack": "none", "setting": "defense", "metric": verdicts.CEILING}
    for attack, kind in {60.0: "leaks", 95.0: verdicts.IMPOSSIBLE}.items():
        card = _run(rows, "b", defense="dp_sgd", attack=(attack,) * 3)
        made = [*card.rows, *rows(70.0, 70.0, 70.0, defense="dp_sgd", **about)]
        made = [row._replace(n=400) for row in made]
        card = card_of("b", made, {}, None)
        compared = _compared([card, _run(rows, "a")])
        cells = _cells(compared)
        assert cells[1][-1].endswith(kind)
        assert cells[2][-2:] == ["", "70.00"]
        said = " ".join(claims.of_attacks([card]))
        assert ("bug in the noise" in said) == (kind == verdicts.IMPOSSIBLE)


def test_runs_that_infer_other_columns_are_not_compared(rows):
    flags = [{"data_sensitive": name} for name in ("smoker", "sex")]
    bare = _run(rows, "a", flags=flags[0])
    other = _run(rows, "b", flags=flags[1], defense="dp_sgd")
    assert defenses.groups([bare, other]) == {}
    same = _run(rows, "c", flags=flags[0], defense="dp_sgd")
    assert _only([bare, same])[0] == "medical, mlp, inferring smoker"


def test_a_defense_without_a_promise_is_named_without_epsilon(rows):
    made = [
        r._replace(value=float("nan")) if r.setting == "defense" else r
        for r in _run(rows, defense="pruning", point="defense=pruning").rows
    ]
    card = card_of("b", made, {}, None)
    _, variants = _only([_run(rows, "a"), card])
    assert variants[1].label == "pruning"


def test_points_of_a_sweep_over_a_defense_stand_side_by_side(rows):
    weak = _run(rows, defense="dp_sgd(epsilon=10)", point="defense=dp_sgd(epsilon=10)")
    strong = _run(
        rows,
        defense="dp_sgd(epsilon=1)",
        point="defense=dp_sgd(epsilon=1)",
        attack=(57.0, 57.0, 57.0),
    )
    made = [*weak.rows, *strong.rows]
    _, variants = _only([card_of("run", made, {}, None)])
    assert [v.label for v in variants] == ["dp_sgd(epsilon=10)", "dp_sgd(epsilon=1)"]


@pytest.mark.parametrize(
    "second",
    [{}, {"defense": "dp_sgd", "data": "toy"}, {"defense": "dp_sgd", "model": "linear"},
     {"defense": "dp_sgd", "point": "batch_size=64"}],
    ids=["no defense", "other data", "other model", "point of another sweep"],
)  # fmt: skip
def test_what_differs_in_more_is_not_compared(rows, second):
    assert defenses.groups([_run(rows, "a"), _run(rows, "b", **second)]) == {}


def test_runs_that_only_trained_are_not_compared(rows):
    cards = [_run(rows, "a"), _run(rows, "b", defense="dp_sgd")]
    bare = [
        card._replace(rows=[r for r in card.rows if r.attack == "none"])
        for card in cards
    ]
    assert defenses.groups(bare) == {}


def test_flags_that_differ_too_are_named(rows):
    flags = {"num_rounds": 60, "seeds": [0], "defense": "none"}
    other = {"num_rounds": 80, "seeds": [0, 1], "defense": "dp_sgd"}
    cards = [
        _run(rows, "a", flags=flags),
        _run(rows, "b", flags=other, defense="dp_sgd"),
    ]
    assert _compared(cards).differing == "num_rounds"


def test_defenses_of_the_same_name_get_the_name_of_their_run(rows):
    cards = [_run(rows, name, defense="dp_sgd") for name in ("a", "b")]
    _, variants = _only([_run(rows, "c"), *cards])
    assert [v.label for v in variants] == [
        "no defense",
        "dp_sgd, epsilon 1 (a)",
        "dp_sgd, epsilon 1 (b)",
    ]


def test_an_accuracy_ends_at_100_percent(rows):
    attack = (98.0, 99.0, 100.0)
    defended = _run(rows, "b", attack=attack, defense="dp_sgd")
    assert (
        _cells(_compared([_run(rows, "a"), defended]))[1][3]
        == "99.00 [96.52, 100.00] leaks"
    )


def test_what_no_adversary_does_is_not_judged(rows):
    cards = [_run(rows, "a"), _run(rows, "b", defense="dp_sgd")]
    oracle = rows(90.0, 90.0, attack="model_oracle", setting="oracle")
    chosen = rows(90.0, 90.0, attack="grad_oracle")
    control = rows(70.0, 70.0, attack="trajectory_permuted")
    cards[0] = card_of("a", [*cards[0].rows, *oracle, *chosen, *control], {}, None)
    body = _compared(cards).table.body
    assert ["model_oracle", "oracle", "90.00 [82.56, 94.48]", ""] in body
    assert ["grad_oracle", "passive", "90.00 [82.56, 94.48]", ""] in body
    assert [line[0] for line in body if isinstance(line[2], Mark)] == ["model"]


def test_a_model_that_a_defense_destroyed_protects_nobody(rows):
    ruined = _run(rows, "b", defense="dp_sgd", attack=(56.9, 57.2, 57.5), loss=9e4)
    about = {"defense": "dp_sgd", "attack": "none", "setting": "passive"}
    fits = rows(-9e6, -8e6, -9e6, metric="train_explained_percent", **about)
    ruined = card_of("b", [*ruined.rows, *fits], {"flags": {}}, None)
    cards = [ruined, _run(rows, "a")]
    assert _cells(_compared(cards))[1][-1] == "57.20 [56.45, 57.95] hardly learnt"
    said = " ".join(claims.of_attacks(cards))
    assert "no conclusion: the model has hardly learnt under dp_sgd" in said
    assert "no leak shown under" not in said


def test_what_did_not_leak_without_a_defense_was_not_stopped_by_it(rows):
    quiet = (56.9, 57.2, 57.5)
    defended = _run(rows, "b", defense="dp_sgd", attack=quiet)
    cells = _cells(_compared([defended, _run(rows, "a", attack=quiet)]))
    assert cells[1][2:] == ["57.20 [56.45, 57.95] not shown"] * 2


@pytest.mark.parametrize(
    ("percent", "said"),
    [
        (70.0, "nobody can be above 70.0 %)"),
        (95.0, "nobody can be above 95.0 %, more than is read without it)"),
    ],
)
def test_a_defense_that_stops_an_attack_is_named_with_what_it_promises(
    rows, percent, said
):
    metric, about = verdicts.CEILING, {"attack": "none", "defense": "dp_sgd"}
    bound = rows(*[percent] * 3, setting="defense", metric=metric, **about)
    for attack in ((56.9, 57.2, 57.5), (50.0, 58.0, 66.0)):  # stopped, not shown
        made = _run(rows, "run", defense="dp_sgd", attack=attack)
        card = card_of("run", [*_run(rows).rows, *made.rows, *bound], {}, None)
        assert said in " ".join(claims.of_attacks([card]))
