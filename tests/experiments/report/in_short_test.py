"""A report in short: what is claimed, and above all what is not."""

import pytest

from experiments.report import claims, in_short
from fljax import verdicts
from tests.experiments.report.short import a_card, only, sentences

_BASE = (57.0, 57.0, 57.0)
_STRONG, _WEAK, _NONE = (74.0, 75.0, 76.0), (60.0, 61.0, 62.0), (56.9, 57.1, 57.3)


def _run(rows, *attacks, **fields):
    made = rows(*_BASE, attack="majority", **fields)
    for index, values in enumerate(attacks):
        made += rows(*values, attack=("model", "trajectory", "grad")[index], **fields)
    return made


def test_the_attack_that_gains_most_is_named_with_its_gain(rows):
    made = _run(rows, _WEAK, _STRONG)
    assert sentences(a_card("run", made)) == {
        "medical, mlp": (
            "Without a defense, 2 of 2 attacks show a leak. trajectory (passive) leaks "
            "through messages: 18.00 [14.42, 21.58] points beyond the majority (over 3 "
            "seeds); 75.00 [72.52, 77.48] % of the values named rightly. Also model "
            "(passive). No defense was measured against trajectory (passive)."
        )
    }


def test_gains_are_paired_with_the_baseline_of_their_seed(rows):
    made = rows(30.0, 57.0, 90.0, attack="majority") + rows(33.0, 61.0, 93.5)
    assert "1 of 1 attacks show a leak" in only(a_card("run", made))
    unlike = rows(90.0, 57.0, 30.0, attack="majority") + rows(33.0, 61.0, 93.5)
    said = only(a_card("run", unlike))
    assert f"nothing is claimed: {verdicts.BLIND}" in said  # majorities too far apart


def test_of_whom_nothing_is_shown_is_said_beside_a_leak(rows):
    made = _run(rows, _STRONG) + rows(*_NONE, attack="model", setting="sum")
    said = only(a_card("run", made))
    assert "1 of 2 attacks show a leak." in said
    assert "No leak is shown by model (sum), which is no proof" in said
    alike = _run(rows, _STRONG, _NONE)  # of one adversary one leak is enough
    assert "No leak is shown by" not in only(a_card("run", alike))


@pytest.mark.parametrize(
    ("told", "is_ours"),
    [
        ("python -m experiments.aia '--defense=dp_sgd(clip=1, epsilon=8)'", True),
        ("python -m experiments.aia --seeds=0; rm -rf x", False),
        ("$(rm -rf x)", False),
        ("python -c 1", False),
        ("python -m experiments.aia '", False),
    ],
)
def test_only_a_program_of_ours_is_recommended(told, is_ours):
    assert claims._is_ours(told) == is_ours


def test_a_point_and_a_run_are_named_with_a_comma_each(rows):
    cards = [
        a_card(name, _run(rows, _STRONG, point="partition_alpha=0.1")) for name in "ab"
    ]
    said = only(*cards)
    assert "model (passive), partition_alpha=0.1, run a, leaks through" in said


def test_an_attack_within_a_point_shows_no_leak(rows):
    said = only(a_card("run", _run(rows, _NONE)))
    assert said.startswith("Without a defense, no leak is shown, which is no proof")


def _beside(rows, imputation, strangers):
    made = _run(rows, _STRONG)
    made += rows(*imputation, attack="imputation", setting="baseline")
    made += rows(90.0, 90.0, 90.0, attack="imputation", setting="rows_1000")
    return made + rows(*strangers, attack="model_strangers")


def test_a_leak_is_beyond_imputation_and_strangers(rows):
    said = only(a_card("run", _beside(rows, (70.0, 70.5, 71.0), _WEAK)))
    assert (
        "model (passive) leaks through messages: 4.50 [3.26, 5.74] points beyond "
        "imputation (over 3 seeds)"
    ) in said
    for beside in ((_STRONG, _WEAK), (_WEAK, _STRONG)):
        said = only(a_card("run", _beside(rows, *beside)))
        assert (
            "no leak is shown: what is inferred is predictable without messages" in said
        )
        assert "leaks" not in said
    below = only(a_card("run", _beside(rows, (80.0, 80.0, 80.0), _WEAK)))
    assert "5.00 [2.52, 7.48] points short of imputation" in below


def test_one_seed_is_judged_by_its_clients_and_their_rows(rows):
    def clients(values, **fields):
        made = rows(sum(values) / len(values), **fields)
        return made + [
            row._replace(client=client, n=400)
            for client, value in enumerate(values)
            for row in rows(value, **fields)
        ]

    base = clients((60.0, 70.0, 55.0), attack="majority")
    said = only(a_card("run", base + clients((65.0, 75.0, 60.5))))
    assert "1 of 1 attacks show a leak" in said
    assert "5.17 [2." in said and "(over 3 clients, each alike)" in said
    assert "no leak is shown" in only(a_card("run", base + clients((65.0, 75.0, 50.0))))
    alone = clients((60.0,), attack="majority") + clients((80.0,))
    assert "show a leak" in only(a_card("run", alone))


def test_who_knows_more_than_an_adversary_does_not_count(rows):
    made = _run(rows, _WEAK)
    made += rows(*_STRONG, attack="grad_oracle") + rows(*_STRONG, attack="model_other")
    made += rows(*_STRONG, attack="model_oracle", setting="oracle")
    said = only(a_card("run", made))
    assert "1 of 1 attacks" in said
    assert "oracle" not in said
    assert "model_other" not in said


def _defended(rows, values, name, epsilon, loss, point=""):
    made = _run(rows, values, defense=name, point=point)
    about = {"attack": "none", "defense": name, "point": point}
    if epsilon:
        made += rows(*[epsilon] * 3, setting="defense", metric="epsilon_pld", **about)
    return made + rows(*[loss] * 3, setting="round_9", metric="test_loss", **about)


def test_a_defense_is_named_with_what_it_costs_and_promises(rows):
    made = _run(rows, _STRONG)
    made += rows(2.0, 2.0, attack="none", setting="round_9", metric="test_loss")
    for value, epsilon, loss in (("1", 0.91, 3.0), ("9", 8.8, 2.2)):
        values = _NONE if value == "1" else _WEAK
        made += _defended(
            rows, values, f"dp_sgd({value})", epsilon, loss, f"defense=dp_sgd({value})"
        )
    made += _defended(rows, (50.0, 58.0, 66.0), "pruning", 0, 2.0)
    said = only(a_card("run", made))
    assert said.endswith(
        "With a defense: no leak shown under dp_sgd(1) (epsilon 0.91, loss 3, 1.50 "
        "times that without), a lower bound on what leaks; leaks under dp_sgd(9); not shown under pruning."
    )


def test_defenses_of_other_runs_are_read_together_and_named(rows):
    cards = [
        a_card("a", _run(rows, _STRONG)),
        a_card("b", _defended(rows, _STRONG, "median", 0, 2.0)),
        a_card("c", _defended(rows, _NONE, "dp_sgd", 1.0, 2.0)),
    ]
    said = only(*cards)
    assert "model (passive), run a, leaks through messages:" in said
    assert said.endswith(
        "With a defense: no leak shown under dp_sgd, run c (epsilon 1, loss 2), "
        "a lower bound on what leaks; leaks under "
        "median, run b."
    )


def test_other_data_and_models_have_sentences_of_their_own(rows):
    made = _run(rows, _STRONG) + _run(rows, _NONE, data="toy") + rows(1.0, model="none")
    said = sentences(a_card("run", made))
    assert list(said) == ["medical, mlp", "toy, mlp", "medical, none"]
    assert said["medical, none"] == "No attack with a baseline was run."


def test_runs_that_infer_other_columns_have_sentences_of_their_own(rows):
    flags = [{"data_sensitive": name} for name in ("smoker", "sex", None)]
    cards = [
        a_card(f"run{i}", _run(rows, values), flags=flags[i])
        for i, values in enumerate((_STRONG, _NONE, _WEAK))
    ]
    said = sentences(*cards)
    assert list(said) == [
        "medical, mlp, inferring smoker", "medical, mlp, inferring sex", "medical, mlp"
    ]  # fmt: skip
    assert not any("run0" in each for each in said.values())
    assert "no leak is shown" in said["medical, mlp, inferring sex"]


def test_several_audits_are_named(rows):
    made, verdicts = rows(90.0, experiment="audit"), {"model": "leaks", "grad": "none"}
    one, two = (
        a_card(name, made, verdicts=verdicts, flags={"sensitive": "married"})
        for name in "ab"
    )
    assert "In run" not in only(one)
    assert sentences(one, two) == {
        "medical, mlp, inferring married": (
            "In run a, 1 of 2 attacks show a leak: model. In run b, 1 of 2 attacks show "
            "a leak: model. No leak shown is no proof that there is none."
        )
    }


def test_an_accuracy_ends_at_100_percent(rows):
    said = only(a_card("run", _run(rows, (98.0, 99.0, 100.0))))
    assert "99.00 [96.52, 100.00] %" in said and "42.00 [39.52, 44.48] points" in said


def test_a_model_that_hardly_learnt_allows_for_no_conclusion(rows):
    about = {"attack": "none", "setting": "round_9"}
    fit = rows(*[0.4] * 3, metric="train_explained_percent", **about)
    said = only(a_card("run", _run(rows, _NONE) + fit))
    assert "no conclusion: the model has hardly learnt: it explains 0.4 %" in said
    assert "no leak is shown" not in said
    assert "1 of 1 attacks show a leak" in only(
        a_card("run", _run(rows, _STRONG) + fit)
    )
    learnt = [row._replace(value=30.0) for row in fit]
    assert "no leak is shown" in only(a_card("run", _run(rows, _NONE) + learnt))


def test_where_the_strongest_attack_was_not_run_it_says_so_and_why(rows):
    made = _run(rows, _NONE)
    assert "The strongest attack, trajectory, was not run." in only(a_card("run", made))
    why = {"run": {"trajectory": "they use adam", "grad": "other"}}
    said = only(a_card("run", made, not_run=why))
    assert "trajectory, was not run: they use adam." in said
    assert "was not run" not in only(a_card("run", _run(rows, _NONE, _NONE)))


def test_least_and_most_named_clients_have_their_names(rows):
    made = _run(rows, _STRONG)
    for client, value in enumerate((60.0, 98.1, 75.7)):
        each = rows(value, value)
        made += [row._replace(client=client, n=40 + client) for row in each]
    said = only(a_card("run", made))
    assert "By client from 60.0 % in client 0 (40 rows) to 98.1 % in client 1" in said
    said = only(a_card("run", made, clients=["hospital: Nord", "Sud", "Ost"]))
    assert "from 60.0 % in hospital: Nord (40 rows) to 98.1 % in Sud (41 rows)." in said


def test_a_leak_without_a_defense_comes_with_the_command_for_one(rows):
    command = "python -m experiments.aia --defense=x"

    def told(values, more=()):
        made = [*_run(rows, values), *more]
        (said,) = in_short.sentences([a_card("run", made, what_to_do=command)])
        return said.command

    assert told(_STRONG) == command
    assert told(_NONE) == ""
    defended = _defended(rows, _NONE, "median", 0, 2.0)
    assert told(_STRONG, more=defended) == ""


def test_a_decoded_model_below_the_majority_is_no_leak(rows):
    about = {"experiment": "lmra", "metric": "train_accuracy_percent"}
    made = rows(50.0, 50.5, 51.0, attack="last_returned", **about)
    made += rows(53.0, 53.5, 54.0, attack="decoded", **about)
    low = rows(40.0, 40.0, 40.0, attack="majority", **about, setting="passive")
    high = rows(60.0, 60.0, 60.0, attack="majority", **about, setting="passive")
    said = only(a_card("run", made + low))
    assert "leaks through messages: 3.00 [3.00, 3.00] points beyond the model" in said
    said = only(a_card("run", made + high))
    assert "leak is shown" in said and "leaks" not in said


def test_distances_leak_where_they_are_small_and_vary_over_clients(rows):
    base = {"experiment": "label_distribution", "metric": "total_variation"}
    half = base | {"metric": "total_variation_half_width"}
    made = rows(0.3, attack="mean_distribution", setting="baseline", **base)
    made += rows(0.01, attack="mean_distribution", setting="baseline", **half)
    made += rows(0.1, **base) + rows(0.02, **half)
    made += rows(0.0, point="alpha=1", **base) + rows(0.0, point="alpha=1", **half)
    said = only(a_card("run", made))
    assert (
        "model (passive) leaks through messages: 0.2 [0.1776, 0.2224] nearer than the "
        "mean distribution of the shadow clients; 0.1 [0.08, 0.12] total variation "
    ) in said


def test_a_client_without_a_number_hides_no_leak_of_another(rows):
    made = []
    for attack, setting, values in (
        ("majority", "baseline", (50.0, 50.0)),
        ("model", "passive", (99.0, float("nan"))),
    ):
        about = {"attack": attack, "setting": setting}
        made += [row._replace(n=400) for row in rows(75.0, **about)]
        for client, value in enumerate(values):
            each = rows(value, **about)
            made += [row._replace(client=client, n=200) for row in each]
    assert "model (passive) leaks through messages: 49.00 [" in only(
        a_card("run", made)
    )
