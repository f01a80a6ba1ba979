"""An audit in one word, for a script that has to go on or stop."""

import json

import numpy as np
import pytest

from fljax import fit, verdicts
from fljax.auditing import doubts, program, words
from fljax.auditing import lines as lines_lib
from fljax.auditing.fits import Fit
from fljax.auditing.lines import Line, Number
from fljax.driver import launch


def _line(verdict, run=True):
    total = Number(60.0, 50.0, 70.0, 30, {verdicts.MAJORITY: 50.0}) if run else None
    metric = verdicts.ACCURACY.metric
    return Line("model", "passive", metric, total, (), verdict, "")


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ([verdicts.NOT_SHOWN, verdicts.LEAKS], "leaks"),
        ([lines_lib.MISFIT, verdicts.LEAKS], "leaks"),
        ([lines_lib.MISFIT, verdicts.NOT_SHOWN], "no_conclusion"),
        ([fit.UNLEARNT], "no_conclusion"),
        ([verdicts.PREDICTABLE, verdicts.NOT_SHOWN], "no_leak_shown"),
    ],
)
def test_one_leak_is_a_leak_and_what_does_not_fit_is_no_conclusion(kinds, said):
    lines = [_line(kind) for kind in kinds]
    assert words.outcome(lines) == said
    if said != "leaks":  # in sentences, too
        first = words.summary("sex", lines, [], Fit(np.zeros(1)), ())[0]
        assert first.startswith("No conclusion") == (said == "no_conclusion")


@pytest.mark.parametrize("kind", [verdicts.NOT_SHOWN, verdicts.PREDICTABLE])
def test_nothing_is_concluded_where_the_strongest_attacks_were_not_run(kind):
    lines = [_line(kind)._replace(doubts=(doubts.STRONGEST,))]
    assert words.outcome(lines) == "no_conclusion"
    first, second = words.summary("sex", lines, [], Fit(np.zeros(1)), ())
    assert first.startswith("No conclusion about sex") and "were not run" in second
    assert words.outcome([*lines, _line(verdicts.LEAKS)]) == "leaks"


def test_nothing_is_concluded_of_shares_of_labels_where_the_best_could_not_be_shown():
    quiet, metric = _line(verdicts.NOT_SHOWN), verdicts.DISTANCE.metric
    total = quiet.total
    assert total is not None
    near, nearer, nearest = (
        quiet._replace(metric=metric, total=total._replace(value=value))
        for value in (0.3, 0.2, 0.1)
    )
    blind = nearer._replace(doubts=(verdicts.BLIND,))
    assert words.outcome([near, blind]) == "no_conclusion"
    said = words.summary("sex", [near, blind], [], Fit(np.zeros(1)), ())[0]
    assert said.startswith(
        "No conclusion about the clients' shares of labels: not even"
    )
    assert words.outcome([nearest, blind]) == "no_leak_shown"
    column = quiet._replace(doubts=(verdicts.BLIND,))
    assert words.outcome([quiet, column]) == "no_leak_shown"


def test_nothing_is_concluded_where_no_attack_could_be_run():
    line = _line(lines_lib.NOT_APPLICABLE, run=False)
    assert words.outcome([line]) == "no_conclusion"


@pytest.mark.parametrize(
    ("given", "code"),
    [((), 0), (("leaks",), 0), (("leaks", "no_conclusion"), 3)],
)
def test_an_outcome_that_was_named_has_an_exit_code(linear, config, given, code):
    told = config(linear, attacks=("reconstruct",), fail_on=given)
    with pytest.raises(SystemExit) as stop:
        launch.app_main(lambda: program.PROGRAM.run(told), argv=["audit"])
    assert (stop.value.code or 0) == code
    manifest = json.loads((linear / "out" / "manifest.json").read_text())
    assert manifest["outcome"] == "no_conclusion"  # its model has learnt nothing
    mean, low, high = manifest["gains"]["reconstruct"][verdicts.MAJORITY]
    assert 0 < low < mean <= high
