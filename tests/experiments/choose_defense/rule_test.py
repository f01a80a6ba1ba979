"""The rule that recommends a defense, and what it makes of result rows."""

import math

import pytest

from experiments.choose_defense import candidates, choice_figure, reporting
from experiments.choose_defense.rule import Candidate, Wishes, choose
from fljax.defenses import specs
from fljax.metrics import Estimate
from fljax.results import Labels


def _candidate(defense, epsilon, utility, *, leaks=False, most=10.0):
    one = Estimate(utility, utility - 1, utility + 1, utility, 3)
    mean = 8.0 if leaks else -1.0
    gain = Estimate(mean, mean - 4.0, mean + 4.0, mean, 3)
    return Candidate(defense, epsilon, 2 * epsilon, one, "mine", gain, leaks, most)


NONE = _candidate("none", math.inf, 50.0, leaks=True, most=math.nan)
WEAK = _candidate("weak", 64.0, 49.0, leaks=True, most=40.0)
FINE = _candidate("fine", 16.0, 48.5, most=30.0)
SMALL = _candidate("small", 4.0, 47.5, most=15.0)
OTHER = _candidate("other", 4.0, 47.0, most=15.0)
POOR = _candidate("poor", 1.0, 30.0, most=5.0)
BLIND = _candidate("blind", 0.5, 1.0, most=2.0)
GRID = (NONE, WEAK, FINE, SMALL, OTHER, POOR, BLIND)


@pytest.mark.parametrize(
    ("wishes", "chosen"),
    [
        (Wishes(tolerance=0.0), "fine"),
        (Wishes(tolerance=2.0), "small"),
        (Wishes(tolerance=20.0), "poor"),
        (Wishes(tolerance=0.0, most=20.0), "small"),
        (Wishes(most=5.0), "poor"),
        (Wishes(most=1.0), None),
    ],
)
def test_the_smallest_epsilon_that_explains_nearly_as_much(wishes, chosen):
    for grid in (GRID, GRID[::-1]):
        found = choose(grid, wishes)
        assert (found.chosen and found.chosen.defense) == chosen
        assert found.why_not.keys() == {c.defense for c in GRID} - {chosen}
        assert all(found.why_not.values())


def test_what_reads_through_more_noise_reads_through_less():
    def dp(clip, noise, epsilon, **more):
        return _candidate(f"dp_sgd(clip={clip}, {noise})", epsilon, 50.0, **more)

    grid = (
        dp(1, "epsilon=32", 32.0, leaks=True), dp(1, "epsilon=64", 64.0),
        dp(1, "sigma=2", 32.0), dp(1, "epsilon=16", 16.0), dp(3, "epsilon=64", 64.0),
    )  # fmt: skip
    found = choose(grid, Wishes(tolerance=99.0))
    assert found.chosen == grid[3]
    said = [found.why_not[each.defense] for each in grid if each is not grid[3]]
    assert said[:1] + said[3:] == ["leaks", "a larger epsilon"]
    assert said[1] == said[2] == "leaks with epsilon 32 already"


def test_the_luckiest_of_one_clip_is_not_the_best():
    explained = {1: 30.0, 2: 41.5, 4: 46.0, 8: 42.0, 16: 42.0}
    grid = [
        _candidate(f"dp_sgd(clip=1, epsilon={e})", float(e), explained[e])
        for e in explained
    ]
    for each in (grid, grid[::-1]):
        found = choose(each, Wishes(tolerance=2.0))
        assert found.chosen == grid[1]
        assert (
            found.why_not[grid[0].defense] == "explains 13.3 points less than the best"
        )


def test_a_training_that_ran_away_says_nothing_of_its_neighbours():
    explained = {1: 40.0, 2: 42.0, 4: -5000.0, 64: 30.0}
    grid = [
        _candidate(f"dp_sgd(clip=3, epsilon={e})", float(e), explained[e])
        for e in explained
    ]
    found = choose(grid, Wishes())
    assert found.chosen == grid[0]
    assert found.why_not[grid[2].defense] == "the model has hardly learnt"


def _said(each, *others, seeds=3):
    found = (each, *others)
    chosen = choose(found, Wishes())
    return reporting.recommendation(found, chosen, Wishes(), seeds)


def test_what_is_not_sure_of_a_recommendation_is_said():
    assert "promises little" in _said(FINE) and "promises little" not in _said(SMALL)
    assert "Two seeds can hardly show" in _said(SMALL, seeds=2)
    assert "not safe" not in _said(SMALL)
    wide = SMALL._replace(gain=Estimate(6.0, -9.0, 21.0, 6.0, 3))
    assert "the interval reaches 21.0" in _said(wide)
    client = OTHER._replace(unit="client")
    assert "of a record and of a client" in _said(SMALL, client)
    assert "of a record and of a client" not in _said(SMALL, NONE)


def test_a_number_is_told_by_its_error():
    gain = Estimate(0.012, -0.004, 0.028, 0.012, 3)
    number = SMALL._replace(gained="less error than", gain=gain)
    said = _said(number)
    assert "has 0.012 [-0.004, 0.028] less error than imputation" in said
    assert "the interval reaches 0.028" in said
    assert "points beyond" in _said(SMALL)


def test_what_was_not_judged_or_has_no_interval_is_not_recommended_in_silence():
    nan = math.nan
    lost = SMALL._replace(gain=Estimate(nan, nan, nan, nan, 0))
    assert choose([lost], Wishes()).why_not == {"small": "no attack was judged"}
    bare = SMALL._replace(gain=Estimate(12.0, nan, nan, 12.0, 1))
    assert "has no interval" in _said(bare, seeds=1)


def test_every_other_defense_is_told_why_it_is_not():
    assert choose(GRID, Wishes(most=15.0)).why_not == {
        "none": "promises nothing",
        "weak": "leaks",
        "fine": "its bound is 30.0 points",
        "other": "explains less",
        "poor": "explains 17.5 points less than the best",
        "blind": "the model has hardly learnt",
    }
    unknown = _candidate("x", 1.0, 50.0, most=math.nan)
    assert choose([unknown], Wishes(most=9.0)).why_not == {"x": "its bound is unknown"}
    assert choose([unknown], Wishes()).chosen is unknown


@pytest.mark.parametrize(
    ("grid", "tried"),
    [
        ("dp_sgd(clip=1|2|4, sigma=2)", 3),
        ("dp_sgd(clip=4, decay_to=1|2|3, sigma=2)", 3),
        ("dp_sgd(clip=1, sigma=2) + pruning(ratio=0.1|0.3|0.5)", 3),
        ("dp_sgd(clip=1|2, sigma=2|3)", 2),
        ("dp_sgd(clip=1, epsilon=2); fed_cdp(clip=1, epsilon=2)", 1),
    ],
)
def test_every_training_of_the_same_noise_is_charged(grid, tried):
    every = [one for each in specs.parse_all(grid) for one in specs.alternatives(each)]
    alike = [
        each for each in every if candidates.noise(each) == candidates.noise(every[0])
    ]
    assert len(alike) == tried


def test_the_recommendation_has_its_numbers():
    text = reporting.recommendation(GRID, choose(GRID, Wishes()), Wishes(), 3)
    for part in (
        "Recommended: small (--tolerance=2, 3 seeds): epsilon 4; 8 with the choice",
        "explains 47.5 [46.5, 48.5] % of the variation of the training targets (without a",
        "no adversary can have more than 15.0 points.",
    ):
        assert part in text
    grid = [each._replace(held_out=7) for each in GRID]
    text = reporting.recommendation(grid, choose(grid, Wishes()), Wishes(), 3)
    assert "of the variation of 7 held-out targets (without" in text
    assert "So few held-out rows hardly tell neighbours of the grid apart." in text
    grid = [each._replace(not_run="trajectory") for each in GRID]
    assert "A stronger one, trajectory, was not run" not in text
    text = reporting.recommendation(grid, choose(grid, Wishes()), Wishes(), 3)
    assert "A stronger one, trajectory, was not run" in text
    asked = Wishes(most=1.0)
    text = reporting.recommendation(GRID, choose(GRID, asked), asked, 1)
    assert "none of this grid (--tolerance=2 and --most_beyond=1, 1 seed)" in text


def test_bars_of_the_figure_stand_at_what_no_adversary_is_above():
    axes = choice_figure.choice(GRID, choose(GRID, Wishes()), "grid").axes[0]
    bars = [
        tuple(line.get_xydata()[0]) for line in axes.lines
        if line.get_marker() == "_" and len(line.get_xydata())
    ]  # fmt: skip
    assert bars == [(each.utility.mean, each.most) for each in GRID[1:]]
    assert choice_figure.choice([], choose([], Wishes()), "nothing") is None


def test_what_speaks_against_the_best_of_a_grid_is_said():
    def of(bare, *others):
        grid = [bare, *others]
        return reporting.recommendation(grid, choose(grid, Wishes()), Wishes(), 3)

    leaky = NONE._replace(gain=Estimate(8.0, 4.0, 12.0, 8.0, 3))
    assert "costs more than half" in of(leaky, _candidate("dear", 8.0, 20.0))
    for fine in (
        of(leaky, SMALL),
        reporting.recommendation(GRID, choose(GRID, Wishes()), Wishes(), 3),
    ):
        assert "costs" not in fine and "no attack shows a leak" not in fine
    assert "no attack shows a leak here, either" in of(
        NONE._replace(leaks=False), SMALL
    )


def _rows(defense, accuracy, explained, more=()):
    labels = Labels("aia", "d", "m", defense, f"defense={defense}")
    for seed in range(3):
        by = 0.1 * seed
        yield labels.row("none", "round_9", seed, "train_explained_percent", 99, 9)
        yield labels.row(
            "none", "round_9", seed, "test_explained_percent", explained, 9
        )
        for attack, setting, value in (
            ("majority", "baseline", 50.0),
            ("imputation", "baseline", 60.0),
            ("imputation", "rows_100", 0.0),
            ("trajectory", "passive", accuracy + by),
            ("trajectory_strangers", "passive", 50.0 + by),
        ):
            yield labels.row(attack, setting, seed, "aia_accuracy_percent", value, 9)
        for metric, value in more:
            yield labels.row("none", "defense", seed, metric, value, 9)


def test_candidates_are_read_from_result_rows():
    promised = {
        candidates.EPSILON: 4.0, candidates.TUNED: 7.0, "accuracy_ceiling_percent": 75.0,
    }  # fmt: skip
    rows = [
        *_rows("none", 90.0, 50.0, [("epsilon_rdp", math.inf)]),
        *_rows("mine", 59.0, 40.0, promised.items()),
    ]
    none, mine = candidates.of_rows(rows)
    assert (none.epsilon, none.leaks, none.attack) == (math.inf, True, "trajectory")
    assert none.gain.mean == pytest.approx(30.1)
    assert math.isnan(none.most)
    assert (mine.epsilon, mine.tuned, mine.leaks) == (4.0, 7.0, False)
    assert (mine.most, mine.utility.mean) == (15.0, 40.0)
    assert mine.gain.mean == pytest.approx(-0.9)


def test_noise_that_is_not_against_who_attacks_promises_nothing():
    told = {"client_epsilon_rdp": 3.9, "accuracy_ceiling_percent": math.nan}
    (server,) = candidates.of_rows([*_rows("server", 59.0, 40.0, told.items())])
    assert server.epsilon == math.inf
    names = candidates.EPSILON, candidates.TUNED
    charged = told | {f"client_{name}": 3.9 for name in names}
    (client,) = candidates.of_rows([*_rows("client", 59.0, 40.0, charged.items())])
    assert (client.epsilon, client.unit) == (3.9, "client")
    text = reporting.recommendation([client], choose([client], Wishes()), Wishes(), 3)
    assert "epsilon 3.9 of a client;" in text


def test_what_anyone_can_have_is_beyond_what_the_attack_is_beyond():
    told = {
        candidates.EPSILON: 4.0,
        candidates.TUNED: 7.0,
        "accuracy_ceiling_percent": 75.0,
    }
    rows = [
        row._replace(value=65.0) if row.attack == "majority" else row
        for row in _rows("mine", 70.0, 40.0, told.items())
    ]
    (mine,) = candidates.of_rows(rows)
    assert mine.beyond == "imputation"  # though the majority is right more often
    assert (mine.gain.mean, mine.most) == (pytest.approx(10.1), 15.0)


def test_a_training_of_which_nothing_is_known_does_not_matter():
    lost = _candidate("dp_sgd(clip=1, epsilon=2)", 2.0, math.nan)
    kept = _candidate("dp_sgd(clip=1, epsilon=8)", 8.0, 40.0)
    found = choose([lost, kept], Wishes())
    assert found.chosen == kept
    assert found.why_not == {lost.defense: "the model has hardly learnt"}
