"""What too few seeds, clients or rows cannot show."""

from fljax import verdicts
from tests.experiments.report.short import a_card, only


def test_where_not_even_a_perfect_attack_would_be_shown_nothing_is_claimed(rows):
    def one(majority, *attacks):
        made = rows(majority, attack="majority", client=0, n=4)
        made += rows(majority, attack="majority", n=4)
        for index, value in enumerate(attacks):
            about = {"attack": ("model", "grad")[index], "n": 4}
            made += rows(value, **about) + rows(value, client=0, **about)
        return only(a_card("run", made))

    assert f"nothing is claimed: {verdicts.BLIND}" in one(75.0, 50.0, 75.0)
    assert "no leak is shown, which is no proof" in one(0.0, 0.0)


def test_two_seeds_are_said_to_be_too_few(rows):
    made = rows(50.0, 60.0, attack="majority") + rows(98.0, 99.0)
    said = only(a_card("run", made))
    assert "no leak is shown, but two seeds can hardly show one: expected three" in said


def test_of_a_single_seed_nothing_is_claimed(rows):
    made = rows(57.0, attack="majority") + rows(90.0)
    made += rows(57.0, attack="majority", defense="dp_sgd") + rows(
        57.0, defense="dp_sgd"
    )
    said = only(a_card("run", made))
    assert said.startswith("Without a defense, nothing is claimed: one seed")
    assert "The furthest is model (passive): 33.00 points beyond" in said
    assert "leak" not in said
