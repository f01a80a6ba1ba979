"""Which defense stops it at what cost: accuracy, loss, epsilon and bound of each."""

import math

from experiments.report import cases as cases_lib
from experiments.report import kept
from experiments.report.cases import Case
from experiments.report.documents import writing

_NAME = "aia.defenses.diabetes"
_UNAWARE = f"{_NAME}.unaware"  # the same with --attack_knows_defense=false
_ATTACKS = ("model", "trajectory")
_GUESSES = {"majority": "the most frequent value", "imputation": "imputation"}


def text() -> str:
    """A line for each defense, the undefended federation first."""
    card = kept.shown(_NAME)
    cases = sorted(cases_lib.of_run(card), key=lambda case: case.defended)
    bare = cases[0].loss
    most = {
        (each.line.row.defense, each.line.row.point): f"{each.line.ceiling:.1f}"
        for each in card.judged
        if each.line.ceiling is not None
    }
    unaware = {each.label: each for each in cases_lib.of_run(kept.shown(_UNAWARE))}
    body = [
        [case.label if case.defended else "none", case.epsilon.text if case.epsilon else "",
         f"{case.loss / bare:.2f}" if math.isfinite(case.loss) else "",
         *(_accuracy(case, attack) for attack in _ATTACKS),
         _accuracy(unaware[case.label], _ATTACKS[-1]),
         most.get((case.defense, case.point), ""),
         _verdict(case)]
        for case in cases
    ]  # fmt: skip
    header = [
        "defense", "epsilon at delta 1e-5, of a record if nothing is said", "test loss, times that of none",
        *(f"{attack}, accuracy %" for attack in _ATTACKS),
        "that does not know the defense, accuracy %", "no adversary above, %",
        f"verdict on {_ATTACKS[-1]}",
    ]  # fmt: skip
    lines = writing.table(header, body, header[2:7])
    guesses = (
        f"{said} {writing.plain(kept.accuracy(_NAME, name, 'baseline'))} %"
        for name, said in _GUESSES.items()
    )
    return "\n\n".join(
        [
            writing.command(card.manifest["command"]),
            lines,
            f"Without any message: {', '.join(guesses)}.",
        ]
    )


def _accuracy(case: Case, attack: str) -> str:
    found = [score for score in case.scores if score.row.attack == attack]
    return writing.plain(found[0].shown) if found else ""


def _verdict(case: Case) -> str:
    found = [score for score in case.scores if score.row.attack == _ATTACKS[-1]]
    return found[0].verdict.kind if found else ""
